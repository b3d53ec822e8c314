/*
 * Keeps what strangers cause from flooding the log: a bucket of lines that
 * refills with time. Pure.
 */
#ifndef SSHD_LISTENER_GATE_H
#define SSHD_LISTENER_GATE_H

#include <stdbool.h>
#include <stdint.h>

#define GATE_BURST      50 /* lines at once */
#define GATE_PER_SECOND 10 /* and so many again */

/* Zero-initialised is full. */
struct gate {
	int64_t used; /* in thousandths of a line */
	int64_t last_ms;
	uint64_t dropped;
};

/*
 * True if a line may be written at NOW_MS (monotonic). *DROPPED_OUT is how many
 * were held back since the last one that passed.
 */
bool gate_pass(struct gate *g, int64_t now_ms, uint64_t *dropped_out);

#endif
