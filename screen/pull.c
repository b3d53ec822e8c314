/*
 * Lines of the history as rows again; see pull.h. They are taken all at once:
 * what is made of them may be pushed into the same history. Pure.
 */
#include "screen/pull.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "screen/history.h"
#include "screen/intern.h"

static uint32_t
pull_cluster(struct screen *s, const struct cluster *k)
{
	uint32_t ch = intern_cluster(s, k->text, k->len);
	utf8proc_int32_t first = ' ';

	if (!ch) {
		utf8proc_iterate(k->text, k->len, &first);
		ch = (uint32_t)first;
	}
	return ch;
}

static uint16_t
pull_ext(struct screen *s, const struct history_reader *r, uint16_t ext)
{
	struct cell_ext e = r->tables.exts[ext];

	if (e.link) {
		const struct cell_link *l = &r->tables.links[e.link];

		e.link = intern_link(s, l->id, l->uri);
	}
	return intern_ext(s, &e);
}

/* Gives the N cells at C, which have the numbers of R, those of S. */
static void
pull_intern(struct screen *s, struct pull *p, const struct history_reader *r,
    struct cell *c, unsigned n)
{
	uint16_t from = 0, to = 0; /* the ext of the cell before */

	for (unsigned i = 0; i < n; i++) {
		bool is_cluster = c[i].ch & CELL_CLUSTER;

		if (!c[i].ext && !is_cluster)
			continue;
		if (!p->is_held)
			intern_hold(s);
		p->is_held = true;
		if (is_cluster)
			c[i].ch = pull_cluster(
			    s, &r->tables.clusters[c[i].ch & ~CELL_CLUSTER]);
		if (c[i].ext != from) {
			from = c[i].ext;
			to = from ? pull_ext(s, r, from) : 0;
		}
		c[i].ext = to;
	}
}

/* The line that R has read. */
static struct row
pull_row(struct screen *s, struct pull *p, const struct history_reader *r)
{
	unsigned n = r->n + r->is_padded;
	struct row row = { .used = (uint16_t)n, .is_wrapped = r->is_wrapped };

	row.cells = xcalloc(n + 1, sizeof(*row.cells));
	if (r->n)
		memcpy(row.cells, r->cells, r->n * sizeof(*row.cells));
	pull_intern(s, p, r, row.cells, r->n);
	return row;
}

void
pull_take(struct screen *s, unsigned n, struct pull *p)
{
	uint64_t end = history_end(s->history);
	uint64_t most = end - history_start(s->history);
	struct history_reader r = { 0 };

	*p = (struct pull){ 0 };
	if (n > most)
		n = (unsigned)most;
	if (!n)
		return;
	p->rows = xcalloc(n, sizeof(*p->rows));
	while (p->n < n && history_read(s->history, &r, end - n + p->n)) {
		p->rows[p->n] = pull_row(s, p, &r);
		p->n++;
	}
	history_reader_release(&r);
	history_pop(s->history, n);
}

void
pull_release(struct screen *s, struct pull *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->rows[i].cells);
	free(p->rows);
	if (p->is_held)
		intern_unhold(s);
	*p = (struct pull){ 0 };
}
