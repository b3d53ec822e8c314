/* The two clocks: wall time for people and rows, monotonic for waiting. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds since 1970-01-01 UTC. */
static inline int64_t
clock_wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Microseconds of CLOCK_MONOTONIC; never goes back. */
static inline int64_t
clock_mono_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline int64_t
clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

#endif
