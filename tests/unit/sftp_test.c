/* Who gets sftp-server: the table of keys, requests and modes. */
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"
#include "sessions/manager/sftp.h"
#include "tests/unit/unit.h"

static void
requests_of_every_kind_of_key(void **state)
{
	static const struct {
		const char *forced;
		enum wire_run_kind kind;
		const char *command;
		enum conf_sftp_mode mode;
		enum manager_code code;
		const char *args; /* NULL: no sftp-server */
	} rows[] = {
		{ NULL, RUN_SUBSYSTEM, "sftp", CONF_SFTP_RW, MANAGER_OK,
		    "-e -l INFO" },
		{ NULL, RUN_SUBSYSTEM, "sftp", CONF_SFTP_RO, MANAGER_OK,
		    "-e -l INFO -R" },
		{ NULL, RUN_SUBSYSTEM, "sftp", CONF_SFTP_OFF, MANAGER_REFUSED,
		    NULL },
		{ NULL, RUN_SUBSYSTEM, "SFTP", CONF_SFTP_RW, MANAGER_NOT_FOUND,
		    NULL },
		{ NULL, RUN_SUBSYSTEM, "", CONF_SFTP_RW, MANAGER_NOT_FOUND,
		    NULL },
		{ NULL, RUN_EXEC, "sftp", CONF_SFTP_OFF, MANAGER_OK, NULL },
		{ NULL, RUN_SHELL, NULL, CONF_SFTP_OFF, MANAGER_OK, NULL },
		{ "date", RUN_SUBSYSTEM, "sftp", CONF_SFTP_RW, MANAGER_OK,
		    NULL },
		{ "date", RUN_SUBSYSTEM, "nosuch", CONF_SFTP_RW,
		    MANAGER_NOT_FOUND, NULL },
		{ "internal-sftp", RUN_SUBSYSTEM, "sftp", CONF_SFTP_RW,
		    MANAGER_OK, "-e -l INFO" },
		{ "internal-sftp -R  -d sub", RUN_SUBSYSTEM, "sftp",
		    CONF_SFTP_RW, MANAGER_OK, "-e -l INFO -R -d sub" },
		{ "internal-sftp", RUN_EXEC, "id", CONF_SFTP_RW,
		    MANAGER_REFUSED, NULL },
		{ "internal-sftp -R", RUN_SHELL, NULL, CONF_SFTP_RW,
		    MANAGER_REFUSED, NULL },
		{ "internal-sftp", RUN_SUBSYSTEM, "sftp", CONF_SFTP_OFF,
		    MANAGER_REFUSED, NULL },
		{ "internal-sftpd", RUN_EXEC, "id", CONF_SFTP_RW, MANAGER_OK,
		    NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf c = { .sftp.mode = rows[i].mode };
		struct principal who = {
			.forced_command = (char *)(uintptr_t)rows[i].forced
		};
		struct wire_run run = { .kind = (uint8_t)rows[i].kind,
			.command = (char *)(uintptr_t)rows[i].command };
		struct sftp_args args;
		char text[128] = "";
		const char *why = NULL;
		bool is_sftp;

		assert_int_equal(
		    sftp_plan(&c, &who, &run, &is_sftp, &args, &why),
		    rows[i].code);
		assert_true((rows[i].code == MANAGER_OK) == !why);
		assert_int_equal(is_sftp, rows[i].args != NULL);
		for (char **a = args.v; *a; a++) {
			strncat(text, *text ? " " : "", 2);
			strncat(text, *a, 32);
		}
		assert_string_equal(text, rows[i].args ? rows[i].args : "");
		sftp_args_release(&args);
	}
}

static void
endless_arguments_of_a_key_are_bounded(void **state)
{
	char command[1024] = "internal-sftp";
	struct conf c = { .sftp.mode = CONF_SFTP_RW };
	struct principal who = { .forced_command = command };
	struct wire_run run = { .kind = RUN_SUBSYSTEM,
		.command = (char *)(uintptr_t) "sftp" };
	struct sftp_args args;
	const char *why;
	bool is_sftp;

	(void)state;
	for (size_t n = strlen(command); n + 3 < sizeof(command); n += 2)
		memcpy(command + n, " x", 3);
	assert_int_equal(
	    sftp_plan(&c, &who, &run, &is_sftp, &args, &why), MANAGER_OK);
	assert_int_equal(args.n, SFTP_ARGS_MAX);
	assert_null(args.v[args.n]);
	sftp_args_release(&args);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_of_every_kind_of_key),
		cmocka_unit_test(endless_arguments_of_a_key_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
