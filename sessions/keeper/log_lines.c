/* Lines of a process for the manager; see log_lines.h. */
#include "sessions/keeper/log_lines.h"

#include <event2/event.h>
#include <string.h>

#include "base/mem.h"
#include "sessions/keeper/keeper.h"

/* So long lines are gathered: thousands of files make few frames. */
#define LOG_LINES_DELAY_MS 50

static void
log_lines_arm(struct log_lines *l)
{
	struct timeval tv = { .tv_usec = LOG_LINES_DELAY_MS * 1000 };

	if (!event_pending(l->flush_ev, EV_TIMEOUT, NULL))
		event_add(l->flush_ev, &tv);
}

static void
log_lines_on_flush(evutil_socket_t fd, short what, void *arg)
{
	struct log_lines *l = arg;

	(void)fd;
	(void)what;
	/* A manager that does not read gets no queue of lines. */
	if (manager_link_is_flushed(&l->k->manager))
		log_lines_flush(l);
	else
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
	struct wire *w = l->k->manager.wire;
	struct buf b = { 0 };

	if (!w || !log_lines_are_waiting(l))
		return;
	if (w->version >= 2) {
		buf_put_u32(&b, l->lost);
		buf_put_u32(&b, l->n);
		buf_put(&b, buf_head(&l->queue), buf_len(&l->queue));
		manager_link_send(&l->k->manager, FRAME_LOG, 0, 0, &b);
		buf_release(&b);
	}
	buf_release(&l->queue);
	l->n = l->lost = 0;
}

bool
log_lines_are_waiting(const struct log_lines *l)
{
	return l->n || l->lost;
}
