/*
 * Lines of libssh's log, into which a peer's text may find its way: every
 * request that is logged is told once and in order, as a break exactly when its
 * name is one. Input: lines separated by NUL, an empty one takes a request.
 * The state is the process's, so each input ends with an empty queue.
 */
#include <stdbool.h>

#include "sshd/connection/lib_log.h"
#include "tests/fuzz/fuzz.h"

#define LIB_LOG_QUEUE 4096

static struct {
	bool is_break[LIB_LOG_QUEUE];
	unsigned head, count;
} model;

/* "...Received a NAME channel_request for channel (...": is there a NAME? */
static void
model_feed(const char *line)
{
	static const char mark[] = " channel_request for channel (";
	const char *name = strstr(line, "Received a ");

	if (!name || !strstr(name, mark) || model.count == LIB_LOG_QUEUE)
		return;
	name += strlen("Received a ");
	model.is_break[(model.head + model.count++) % LIB_LOG_QUEUE] =
	    strncmp(name, "break channel_request for channel (", 35) == 0;
}

static void
model_next(void)
{
	bool want = model.count && model.is_break[model.head];

	FUZZ_CHECK(lib_log_next_break() == want);
	if (!model.count)
		return;
	model.head = (model.head + 1) % LIB_LOG_QUEUE;
	model.count--;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	const char *before = lib_log_offence();

	while (in.n) {
		char *line = fuzz_str(&in);

		if (*line) {
			lib_log_feed(line);
			model_feed(line);
		} else {
			model_next();
		}
		free(line);
	}
	/* What was found to be wrong once stays wrong. */
	FUZZ_CHECK(!before || lib_log_offence());
	while (model.count)
		model_next();
	FUZZ_CHECK(!lib_log_next_break());
	return 0;
}
