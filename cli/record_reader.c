/* Whole lines of a recording; see record_reader.h. */
#include "cli/record_reader.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/lines.h"

#define READER_READ_MAX (64U << 10)

/* No event is nearly as long; what is, is no recording. */
#define READER_LINE_MAX (8U << 20)

int
record_open(
    const struct cli *c, const char *recording, int *fd_out, struct err *e)
{
	json_t *answer = NULL;
	int code = client_ask_once(c->socket,
	    json_pack("{s:s, s:s}", "verb", "rec_cat", "recording", recording),
	    &answer, fd_out, e);

	json_decref(answer);
	return code;
}

int
record_reader_next(
    struct record_reader *r, const char **p, size_t *n, struct err *e)
{
	buf_consume(&r->buf, r->n_given);
	r->n_given = 0;
	while (!r->is_bad) {
		ssize_t got;

		*p = (const char *)buf_head(&r->buf);
		*n = lines_whole(*p, buf_len(&r->buf), &r->is_bad);
		r->n_given = *n;
		if (*n)
			return 1;
		if (r->is_over || r->is_bad)
			break;
		if (buf_len(&r->buf) > READER_LINE_MAX)
			return err_set(e, -EBADMSG,
			    "the recording has a line over %u bytes",
			    READER_LINE_MAX);
		got = read(r->fd, buf_reserve(&r->buf, READER_READ_MAX),
		    READER_READ_MAX);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read the recording");
		r->is_over = got == 0;
		buf_commit(&r->buf, (size_t)got);
	}
	return 0;
}

void
record_reader_release(struct record_reader *r)
{
	buf_release(&r->buf);
}
