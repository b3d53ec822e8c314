/*
 * The pure parts of berth-sshd: the judge of a peer's first bytes, the names of
 * signals, and the reader of request names.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sshd/connection/ident.h"
#include "sshd/connection/lib_log.h"
#include "sshd/connection/signame.h"
#include "tests/unit/unit.h"

struct ident_row {
	const char *bytes;
	enum ident_verdict verdict;
};

static const struct ident_row ident_rows[] = {
	{ "", IDENT_MORE },
	{ "S", IDENT_MORE },
	{ "SSH-2.0-x", IDENT_MORE },
	{ "SSH-2.0-OpenSSH_9.2\r\n", IDENT_OK },
	{ "SSH-2.0-a\nb", IDENT_OK },
	{ "SSH-1.99-x\r\n", IDENT_OK },
	{ "SSH-1.5-x\r\n", IDENT_OLD },
	{ "SSH-\n", IDENT_OLD },
	{ "SSH-2.0\n", IDENT_OLD },
	{ "GET / HTTP/1.0\r\n", IDENT_GARBAGE },
	{ "\026\003\001", IDENT_GARBAGE },
	{ "ssh-2.0-x\r\n", IDENT_GARBAGE },
	{ "\r\nSSH-2.0-x\r\n", IDENT_GARBAGE },
};

static void
ident_judges_each_start_as_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ident_rows); i++) {
		const struct ident_row *r = &ident_rows[i];

		assert_int_equal(
		    ident_judge(r->bytes, strlen(r->bytes)), r->verdict);
	}
}

static void
ident_refuses_a_line_over_255_bytes(void **state)
{
	char line[300] = "SSH-2.0-";

	(void)state;
	memset(line + 8, 'a', sizeof(line) - 8);
	assert_int_equal(ident_judge(line, 254), IDENT_MORE);
	assert_int_equal(ident_judge(line, 255), IDENT_GARBAGE);
	line[254] = '\n';
	assert_int_equal(ident_judge(line, 300), IDENT_OK);
	line[254] = 'a';
	line[255] = '\n';
	assert_int_equal(ident_judge(line, 300), IDENT_GARBAGE);
}

struct signame_row {
	const char *name;
	int sig;
};

static const struct signame_row signame_rows[] = {
	{ "HUP", SIGHUP },
	{ "INT", SIGINT },
	{ "QUIT", SIGQUIT },
	{ "TERM", SIGTERM },
	{ "KILL", SIGKILL },
	{ "USR1", SIGUSR1 },
	{ "SIGUSR2", SIGUSR2 },
	{ "SIGTERM", SIGTERM },
	{ "SEGV", 0 },
	{ "STOP", 0 },
	{ "term", 0 },
	{ "SIG", 0 },
	{ "", 0 },
	{ "9", 0 },
};

static void
signame_takes_seven_names_from_clients(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(signame_rows); i++)
		assert_int_equal(signame_from_client(signame_rows[i].name),
		    signame_rows[i].sig);
}

static void
signame_for_exit_is_the_rfc_name_or_ours(void **state)
{
	char name[32];

	(void)state;
	signame_for_exit(SIGSEGV, name, sizeof(name));
	assert_string_equal(name, "SEGV");
	signame_for_exit(SIGSYS, name, sizeof(name));
	assert_string_equal(name, "SYS@berth");
	signame_for_exit(250, name, sizeof(name));
	assert_string_equal(name, "250@berth");
}

static void
lib_log_feed_request(const char *name)
{
	char line[256];

	snprintf(line, sizeof(line),
	    "ssh_message_handle_channel_request: Received a %s "
	    "channel_request for channel (43:0) (want_reply=1)",
	    name);
	lib_log_feed(line);
}

static void
lib_log_tells_breaks_apart_in_order(void **state)
{
	(void)state;
	lib_log_feed_request("pty-req");
	lib_log_feed("ssh_packet_process: Dispatching handler for packet type");
	lib_log_feed_request("break");
	lib_log_feed_request("breakfast");
	lib_log_feed_request("x Received a break");
	assert_false(lib_log_next_break());
	assert_true(lib_log_next_break());
	assert_false(lib_log_next_break());
	assert_false(lib_log_next_break());
	assert_false(lib_log_next_break());
}

static void
lib_log_survives_more_requests_than_it_holds(void **state)
{
	(void)state;
	for (int i = 0; i < 10000; i++)
		lib_log_feed_request("break");
	for (int i = 0; i < 4096; i++)
		assert_true(lib_log_next_break());
	assert_false(lib_log_next_break());
}

static void
lib_log_knows_what_may_not_come_before_newkeys(void **state)
{
	(void)state;
	lib_log_feed("ssh_packet_socket_callback: packet: read type 20 [len=");
	assert_null(lib_log_offence());
	lib_log_feed("ssh_packet_socket_callback: packet: read type 21 [len=");
	lib_log_feed("ssh_packet_socket_callback: packet: read type 2 [len=");
	assert_null(lib_log_offence());
	lib_log_feed("x: Received an invalid signature from peer");
	assert_non_null(lib_log_offence());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ident_judges_each_start_as_listed),
		cmocka_unit_test(ident_refuses_a_line_over_255_bytes),
		cmocka_unit_test(signame_takes_seven_names_from_clients),
		cmocka_unit_test(signame_for_exit_is_the_rfc_name_or_ours),
		cmocka_unit_test(lib_log_tells_breaks_apart_in_order),
		cmocka_unit_test(lib_log_survives_more_requests_than_it_holds),
		cmocka_unit_test(
		    lib_log_knows_what_may_not_come_before_newkeys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
