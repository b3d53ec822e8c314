/* A bucket of log lines; see gate.h. Runs in berthd. */
#include "sshd/listener/gate.h"

#define GATE_LINE 1000

bool
gate_pass(struct gate *g, int64_t now_ms, uint64_t *dropped_out)
{
	g->used -= (now_ms - g->last_ms) * GATE_PER_SECOND;
	g->last_ms = now_ms;
	if (g->used < 0)
		g->used = 0;
	if (g->used + GATE_LINE > GATE_BURST * GATE_LINE) {
		g->dropped++;
		return false;
	}
	g->used += GATE_LINE;
	*dropped_out = g->dropped;
	g->dropped = 0;
	return true;
}
