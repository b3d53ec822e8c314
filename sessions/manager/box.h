/*
 * The sandboxes that the manager knows: their phase, the job that works on one,
 * who waits for it. Every change of phase is a row and an audit event before
 * anybody is let in. Nothing here waits: slow work is a job of berth-sandbox.
 */
#ifndef SESSIONS_MANAGER_BOX_H
#define SESSIONS_MANAGER_BOX_H

#include "base/list.h"
#include "sandbox/provider.h"
#include "sessions/manager/manager.h"
#include "store/store.h"

struct event;
struct job;
struct request;

struct box {
	struct list node; /* of manager->boxes */
	struct manager *m;
	int64_t id; /* of its row */
	struct sandbox_spec spec;
	char template[STORE_NAME_MAX];
	const struct sandbox_provider *provider; /* NULL: not registered */
	enum sandbox_phase phase;
	char detail[256];
	bool is_leaving; /* is being removed or halted: nobody gets in */
	bool is_removed; /* and the workspace goes too */
	int64_t leave_deadline_ms; /* monotonic: sessions end until then */
	struct job *job;
	int watch_fd; /* readable when it is lost, or -1 */
	struct event *watch_ev, *leave_ev;
	struct list requests; /* that wait for it */
};

/* Boxes of all rows that are not gone; what ran is looked at. */
void boxes_load(struct manager *m);
void boxes_free(struct manager *m);

/* The sandbox NAME, or NULL. */
struct box *box_find(struct manager *m, const char *name);

enum box_answer {
	BOX_READY,  /* go on */
	BOX_WAITS,  /* the request hangs on it and is resumed or answered */
	BOX_REFUSED /* *CODE_OUT and E say why */
};

/*
 * The sandbox that R names: made when it is not there and that is allowed,
 * begun again when it was lost. TEMPLATE is for a new one, NULL for the default.
 */
enum box_answer box_want(struct request *r, const char *template,
    enum manager_code *code_out, struct err *e);

/* `sandbox create`: R is answered when it is there; -EEXIST if it was. */
enum box_answer box_create(struct request *r, const char *template,
    enum manager_code *code_out, struct err *e);

/*
 * `sandbox rm`: ends its sessions, removes it; R is answered then. BOX_READY if
 * there was nothing to remove.
 */
enum box_answer box_remove(
    struct request *r, enum manager_code *code_out, struct err *e);

/* How a process gets into B, which is ready. 0 or a negative errno. */
int box_place(struct box *b, struct sandbox_place *out, struct err *e);

/*
 * Ends what runs in contained sandboxes, at a closing that ends sessions too;
 * true once nothing runs any more.
 */
bool boxes_halt(struct manager *m);

#endif
