/*
 * Reads libssh's log, see lib_log.h. Runs in berth-sshd. The queue holds one
 * bit for each logged request that was not yet taken; a client that confuses it
 * gets at worst its own break misread.
 */
#include "sshd/connection/lib_log.h"

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <stdint.h>

#include "base/log.h"

#define LIB_LOG_MAX 4096 /* requests between two turns of the loop */

/* Message numbers of RFC 4253 12 and RFC 8308. */
#define MSG_IGNORE  2
#define MSG_DEBUG   4
#define MSG_NEWKEYS 21

static const char lib_log_request[] = " channel_request for channel (";

static struct {
	uint8_t bits[LIB_LOG_MAX / 8];
	unsigned head, count;
	bool has_keys; /* the first NEWKEYS came */
	const char *offence;
} lib_log;

static void
lib_log_add_request(const char *name)
{
	unsigned at = (lib_log.head + lib_log.count) % LIB_LOG_MAX;
	bool is_break;

	if (lib_log.count == LIB_LOG_MAX)
		return;
	is_break = strncmp(name, "break", 5) == 0 &&
		   strncmp(name + 5, lib_log_request,
		       sizeof(lib_log_request) - 1) == 0;
	lib_log.bits[at / 8] &= (uint8_t) ~(1U << at % 8);
	if (is_break)
		lib_log.bits[at / 8] |= (uint8_t)(1U << at % 8);
	lib_log.count++;
}

/* "packet: read type 2 [len=12,...": one received message. */
static void
lib_log_add_packet(const char *number)
{
	unsigned long type = strtoul(number, NULL, 10);

	if (type == MSG_NEWKEYS)
		lib_log.has_keys = true;
	else if (type >= MSG_IGNORE && type <= MSG_DEBUG)
		lib_log.offence = "a message that is no key exchange before it"
				  " was over";
}

/* The log line is "FUNCTION: TEXT". */
void
lib_log_feed(const char *line)
{
	static const char packet[] = "packet: read type ";
	const char *start = strstr(line, "Received a ");

	if (start && strstr(start, lib_log_request)) {
		lib_log_add_request(start + sizeof("Received a ") - 1);
		return;
	}
	if (!lib_log.has_keys && (start = strstr(line, packet)))
		lib_log_add_packet(start + sizeof(packet) - 1);
	else if (strstr(line, "Received an invalid signature from peer") ||
		 strstr(line, "Invalid signature packet from peer"))
		lib_log.offence = "a signature that is not valid";
}

const char *
lib_log_offence(void)
{
	return lib_log.offence;
}

bool
lib_log_next_break(void)
{
	unsigned at = lib_log.head;

	if (lib_log.count == 0)
		return false;
	lib_log.head = (at + 1) % LIB_LOG_MAX;
	lib_log.count--;
	return (lib_log.bits[at / 8] >> at % 8 & 1) != 0;
}

static void
lib_log_on_line(
    int priority, const char *function, const char *line, void *userdata)
{
	(void)function;
	(void)userdata;
	if (priority <= SSH_LOG_WARN)
		log_debug("libssh", "text", line, NULL);
	lib_log_feed(line);
}

void
lib_log_set_packets(bool is_on)
{
	/* What was not logged cannot be matched with what was. */
	if (!is_on)
		lib_log.count = 0;
	ssh_set_log_level(is_on ? SSH_LOG_PACKET : SSH_LOG_WARN);
}

void
lib_log_watch(void)
{
	ssh_set_log_callback(lib_log_on_line);
	lib_log_set_packets(true);
}
