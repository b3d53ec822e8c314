/*
 * The sandboxes that the manager knows: their phase, the job that works on one,
 * who waits for it. Every change of phase is a row and an audit event before
 * anybody is let in. Nothing here waits: slow work is a job of berth-sandbox.
 */
#ifndef SESSIONS_MANAGER_BOX_H
#define SESSIONS_MANAGER_BOX_H

#include "base/list.h"
#include "sandbox/provider.h"
#include "sessions/manager/life.h"
#include "sessions/manager/manager.h"
#include "store/store.h"

struct conf_template;
struct event;
struct job;
struct request;
struct session;

struct box {
	struct list node; /* of manager->boxes */
	struct manager *m;
	int64_t id; /* of its row */
	struct sandbox_spec spec;
	char template[STORE_NAME_MAX];
	const struct sandbox_provider *provider; /* NULL: not registered */
	enum sandbox_phase phase;
	char detail[256];
	char unenforced[SANDBOX_MISSING_MAX]; /* its limits, "memory, cpu" */
	bool is_leaving; /* is being removed or halted: nobody gets in */
	bool is_removed; /* and the workspace goes too */
	int64_t leave_deadline_ms; /* monotonic: sessions end until then */
	struct job *job;
	struct job *probe; /* beside the other: only looks */
	struct event *probe_ev;
	bool is_known;      /* this berthd has looked at it, or made it */
	bool is_sleep_job;  /* the job suspends or resumes */
	bool is_suspending; /* the last of those did the first */
	int sleep_rc;       /* and how it went: 0 or a negative errno */
	char sleep_why[256];
	char wake_why[160];   /* it is to wake up behind the job, or "" */
	struct list settling; /* requests, until nobody is on the way in */
	bool is_unclear;      /* its engine did not answer the last time */
	int watch_fd;         /* readable when it is lost, or -1 */
	struct event *watch_ev, *leave_ev;
	struct list requests;    /* that wait for it */
	struct job *measure_job; /* beside the others */
	struct list measuring;   /* requests that wait for it */
	bool is_initialising;    /* its init command runs: nobody gets in yet */
	bool is_initialised;     /* it has run, as far as anybody asked */
	bool is_init_late;       /* it took too long and is being stopped */
	struct event *init_ev;
	uint64_t init_ms;         /* its limit, while it runs */
	struct sandbox_made made; /* what came of the job before it */
	struct life life;
	struct event *life_ev;
	int64_t life_pause_ms; /* monotonic: nothing is done before, or 0 */
	unsigned n_held;       /* forwarded connections */
	char reason[16];       /* of what ends with it, or "" */
	struct sandbox_metrics metrics;
	bool has_metrics;
	int64_t measured_ms; /* monotonic; whether it went well or not */
	/* A copy of its files is being made, or brings them back. */
	struct store_snapshot copy;
	struct list copying; /* requests for that, one at most */
	bool is_restoring;   /* what takes the place of its files is there */
	bool is_new;         /* and there was no sandbox before */
	bool is_frozen; /* a snapshot of a former berthd may have left it so */
};

/* After the configuration was read again. */
void boxes_reconfigure(struct manager *m);

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

/*
 * What B's template says now; it borrows from the configuration. False if there
 * is none of that name any more.
 */
bool box_template(const struct box *b, struct conf_template *out);

/* A session ended, with NOTE or NULL; if it is B's init command, B goes on. */
void box_on_session_end(
    struct session *s, const struct store_session_end *end, const char *note);

/* How a process gets into B, which is ready. 0 or a negative errno. */
int box_place(struct box *b, struct sandbox_place *out, struct err *e);

/*
 * Where place() says has_way: the program that runs R in B. 0 or a negative
 * errno with a sentence; free OUT with sandbox_way_release().
 */
int box_wrap(struct box *b, const struct sandbox_run *r,
    struct sandbox_way *out, struct err *e);

/*
 * Session SID of the sandbox NAME did not end by itself: what is left of it in
 * there, where no signal of this host reaches, is killed.
 */
void box_reap(struct manager *m, const char *name, const char *sid);

/* `sandbox suspend` and `resume`: R is answered when it is so. */
enum box_answer box_suspend(struct request *r, bool is_suspend,
    enum manager_code *code_out, struct err *e);

/* True if B is suspended, and can be resumed. */
bool box_is_asleep(const struct box *b);

/*
 * Resumes B if it is suspended, or will be; WHO (NULL: berth itself) and WHY go
 * to the audit trail. Nobody waits for it.
 */
void box_wake(struct box *b, const struct principal *who, const char *why);

/*
 * Suspends B, which is idle; WHY goes to the audit trail. -EBUSY when somebody
 * works on it, -EOPNOTSUPP, or another negative errno with a sentence.
 */
int box_doze(struct box *b, const char *why, struct err *e);

/* Somebody came, left, or works on B: what is due is reckoned anew. */
void box_life_changed(struct box *b);

/* B was made or woken: what was idle before that does not count. */
void box_life_woken(struct box *b);

/* The keeper of S was taken over: it hears whether its sandbox sleeps. */
void box_adopted(struct session *s);

/* A session of B has begun, or ended: who waited for that goes on. */
void box_settle(struct box *b);

/* What there is to say about B: why it failed, what nobody enforces; or "". */
void box_detail(const struct box *b, char *out, size_t size);

/* A box that runs, NAME or any, and has to be measured since then, or NULL. */
struct box *box_unmeasured(
    struct manager *m, const char *name, int64_t since_ms);

/* Measures the sandbox of R, which is answered then. */
enum box_answer box_measure(
    struct request *r, enum manager_code *code_out, struct err *e);

/*
 * `sandbox snapshot`: R, for its sandbox, is answered when the file is there. The
 * id of the row is in ID_OUT (STORE_ID_MAX) at once. NAME and DESCRIPTION may
 * be "".
 */
enum box_answer box_snapshot(struct request *r, const char *name,
    const char *description, char *id_out, enum manager_code *code_out,
    struct err *e);

/*
 * `sandbox restore`: puts the files of snapshot S in the place of those that the
 * sandbox of R has, whose sessions end; or makes that sandbox. R is answered
 * when it runs. Whatever fails before leaves it as it was.
 */
enum box_answer box_restore(struct request *r, const struct store_snapshot *s,
    enum manager_code *code_out, struct err *e);

/*
 * Ends what runs in contained sandboxes, at a closing that ends sessions too;
 * true once nothing runs any more.
 */
bool boxes_halt(struct manager *m);

#endif
