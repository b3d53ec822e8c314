/* Lines of a process for the manager; see log_lines.h. */
#include "sessions/keeper/log_lines.h"

#include <event2/event.h>
#include <string.h>

#include "base/mem.h"
#include "sessions/keeper/keeper.h"

/*
 * So long lines are gathered: thousands of files make few frames. And so much
 * goes out at a time: what a sandbox says costs the manager little at once, and
 * 3 MB a second at most.
 */
#define LOG_LINES_DELAY_MS 20
#define LOG_LINES_FRAME    (64U << 10)

static void
log_lines_arm(struct log_lines *l)
{
	struct timeval tv = { .tv_usec = LOG_LINES_DELAY_MS * 1000 };

	if (!event_pending(l->flush_ev, EV_TIMEOUT, NULL))
		event_add(l->flush_ev, &tv);
}

/* Sends a frame of lines, the oldest; W speaks version 2. */
static void
log_lines_send(struct log_lines *l)
{
	struct reader r = reader_over(buf_head(&l->queue), buf_len(&l->queue));
	const uint8_t *begin = r.p;
	struct buf b = { 0 };
	uint32_t n = 0;
	size_t len;

	while (n < l->n && r.p - begin < (ptrdiff_t)LOG_LINES_FRAME) {
		reader_bytes(&r, LOG_LINES_LINE_MAX, &len);
		n++;
	}
	len = (size_t)(r.p - begin);
	buf_put_u32(&b, l->lost);
	buf_put_u32(&b, n);
	buf_put(&b, begin, len);
	manager_link_send(&l->k->manager, FRAME_LOG, 0, 0, &b);
	buf_release(&b);
	buf_consume(&l->queue, len);
	l->n -= n;
	l->lost = 0;
}

static bool
log_lines_may_send(struct log_lines *l)
{
	struct wire *w = l->k->manager.wire;

	if (!w || !log_lines_are_waiting(l))
		return false;
	if (w->version >= 2)
		return true;
	buf_release(&l->queue);
	l->n = l->lost = 0;
	return false;
}

static void
log_lines_on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct log_lines *l = arg;

	(void)fd;
	(void)what;
	/* A manager that does not read gets no queue of lines. */
	if (log_lines_may_send(l) && manager_link_is_flushed(&l->k->manager))
		log_lines_send(l);
	if (l->k->manager.wire && log_lines_are_waiting(l))
		log_lines_arm(l);
}

void
log_lines_init(struct log_lines *l, struct keeper *k)
{
	*l = (struct log_lines){ .k = k };
	l->flush_ev = event_new(k->base, -1, 0, log_lines_on_flush, l);
	if (!l->flush_ev)
		abort();
}

void
log_lines_release(struct log_lines *l)
{
	if (l->flush_ev)
		event_free(l->flush_ev);
	buf_release(&l->queue);
	buf_release(&l->line);
	*l = (struct log_lines){ 0 };
}

/* Ends the line that was begun. */
static void
log_lines_push(struct log_lines *l)
{
	size_t n = buf_len(&l->line);

	if (buf_len(&l->queue) + n + 4 > LOG_LINES_QUEUE_MAX) {
		l->lost++;
	} else {
		buf_put_bytes(&l->queue, buf_head(&l->line), n);
		l->n++;
	}
	buf_clear(&l->line);
	log_lines_arm(l);
}

void
log_lines_put(struct log_lines *l, const void *p, size_t n)
{
	const char *s = p, *end = s + n;

	while (s < end) {
		const char *lf = memchr(s, '\n', (size_t)(end - s));
		size_t len = (size_t)((lf ? lf : end) - s);
		size_t room = LOG_LINES_LINE_MAX - buf_len(&l->line);

		buf_put(&l->line, s, len < room ? len : room);
		s += len;
		if (lf) {
			log_lines_push(l);
			s++;
		}
	}
}

void
log_lines_end(struct log_lines *l)
{
	if (buf_len(&l->line))
		log_lines_push(l);
}

void
log_lines_flush(struct log_lines *l)
{
	while (log_lines_may_send(l))
		log_lines_send(l);
	if (!log_lines_are_waiting(l))
		buf_release(&l->queue);
}

bool
log_lines_are_waiting(const struct log_lines *l)
{
	return l->n || l->lost;
}
