/* Requests about a sandbox as a whole: who may, and what comes of it. */
#include "base/err.h"
#include "sessions/manager/session.h"

struct request *
manager_sandbox_want(struct manager *m, const struct principal *who,
    const char *name, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);

	if (m->is_closing)
		request_fail(r, MANAGER_FAILED, "berth is shutting down");
	else if (attach_may(r, name, NULL) && attach_box(r, NULL))
		request_go_on(r);
	return r;
}

/* Only owners and admins make and remove sandboxes by name. */
bool
attach_may_own(struct request *r, const char *name)
{
	if (!attach_may(r, name, NULL))
		return false;
	if (r->who.is_admin || r->who.role == ROLE_OWNER)
		return true;
	request_fail(
	    r, MANAGER_REFUSED, "only an owner makes and removes sandboxes");
	return false;
}

void
attach_box_answer(struct request *r, enum box_answer answer,
    enum manager_code code, const struct err *e)
{
	if (answer == BOX_REFUSED)
		request_fail(r, code, "%s", e->msg);
	else if (answer == BOX_READY)
		request_go_on(r);
}

struct request *
manager_sandbox_create(struct manager *m, const struct principal *who,
    const char *name, const char *template, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	enum manager_code code = MANAGER_FAILED;
	struct err e = { .code = 0 };
	enum box_answer answer;

	if (!attach_may_own(r, name))
		return r;
	if (!template && who->template[0])
		template = who->template;
	answer = box_create(r, template, &code, &e);
	attach_box_answer(r, answer, code, &e);
	return r;
}

static enum box_answer
sandbox_suspend(struct request *r, enum manager_code *code_out, struct err *e)
{
	return box_suspend(r, true, code_out, e);
}

static enum box_answer
sandbox_resume(struct request *r, enum manager_code *code_out, struct err *e)
{
	return box_suspend(r, false, code_out, e);
}

/* Whoever may use a sandbox may ask what it uses. */
static bool
sandbox_may_look(struct request *r, const char *name)
{
	return attach_may(r, name, NULL);
}

struct request *
manager_sandbox_act(struct manager *m, const struct principal *who,
    const char *name, enum manager_sandbox_act act, manager_answer_fn fn,
    void *arg)
{
	static const struct {
		bool (*may)(struct request *r, const char *name);
		enum box_answer (*begin)(struct request *r,
		    enum manager_code *code_out, struct err *e);
	} acts[] = {
		[MANAGER_SANDBOX_REMOVE] = { attach_may_own, box_remove },
		[MANAGER_SANDBOX_SUSPEND] = { attach_may_own, sandbox_suspend },
		[MANAGER_SANDBOX_RESUME] = { attach_may_own, sandbox_resume },
		[MANAGER_SANDBOX_MEASURE] = { sandbox_may_look, box_measure },
	};
	struct request *r = request_new(m, who, fn, arg);
	enum manager_code code = MANAGER_FAILED;
	struct err e = { .code = 0 };
	enum box_answer answer;

	if (!acts[act].may(r, name))
		return r;
	answer = acts[act].begin(r, &code, &e);
	attach_box_answer(r, answer, code, &e);
	return r;
}
