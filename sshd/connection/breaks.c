/*
 * Reads request names out of libssh's log, see breaks.h. Runs in berth-sshd.
 * The queue holds one bit for each logged request that was not yet taken; a
 * client that confuses it gets at worst its own break misread.
 */
#include "sshd/connection/breaks.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <stdint.h>

#include "base/log.h"

#define BREAKS_MAX 4096 /* requests between two turns of the loop */

static const char breaks_mark[] = " channel_request for channel (";

static struct {
	uint8_t bits[BREAKS_MAX / 8];
	unsigned head, count;
} breaks;

/* The log line is "FUNCTION: Received a NAME channel_request for ...". */
void
breaks_feed(const char *line)
{
	const char *start = strstr(line, "Received a ");
	unsigned at = (breaks.head + breaks.count) % BREAKS_MAX;

	if (!start || !strstr(start, breaks_mark))
		return;
	if (breaks.count == BREAKS_MAX)
		return;
	start += sizeof("Received a ") - 1;
	breaks.bits[at / 8] &= (uint8_t) ~(1U << at % 8);
	if (strncmp(start, "break", 5) == 0 &&
	    strncmp(start + 5, breaks_mark, sizeof(breaks_mark) - 1) == 0)
		breaks.bits[at / 8] |= (uint8_t)(1U << at % 8);
	breaks.count++;
}

bool
breaks_next(void)
{
	unsigned at = breaks.head;

	if (breaks.count == 0)
		return false;
	breaks.head = (at + 1) % BREAKS_MAX;
	breaks.count--;
	return (breaks.bits[at / 8] >> at % 8 & 1) != 0;
}

static void
breaks_on_log(
    int priority, const char *function, const char *line, void *userdata)
{
	(void)function;
	(void)userdata;
	if (priority <= SSH_LOG_WARN)
		log_debug("libssh", "text", line, NULL);
	else
		breaks_feed(line);
}

void
breaks_watch(void)
{
	ssh_set_log_callback(breaks_on_log);
	ssh_set_log_level(SSH_LOG_PACKET);
}
