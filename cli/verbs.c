/*
 * The table of verbs of `berth`, and how it says what went wrong. Handlers are
 * in one file per family.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"

/* clang-format off */
static const struct verb verbs_table[] = {
{ "ls", "[-a] [--json]",
	"list sessions, with -a those that ended too", verb_ls },
{ "new", "[-s SANDBOX] [-n NAME] [--no-pty] [-d DIR] [-e K=V]... [--] [CMD...]",
	"start a session without attaching; prints its id", verb_new },
{ "attach", "[--view] SANDBOX[+NAME]",
	"attach from here; Ctrl-] detaches", verb_attach },
{ "run", "[-t] [-i] [-e K=V]... [-d DIR] SANDBOX [--] CMD...",
	"run a command in a sandbox, which is made if it is not there",
	verb_run },
{ "kill", "SESSION [-SIG]",
	"stop a session, or send it a signal", verb_kill },
{ "rm", "SESSION", "forget a session that ended", verb_rm },
{ "send", "SESSION TEXT", "type TEXT, exactly as it is", verb_send },
{ "eof", "SESSION", "close the input of a session without terminal",
	verb_eof },
{ "resize", "SESSION COLSxROWS|--unpin",
	"set and keep the size of the terminal, or leave it to viewers again",
	verb_resize },
{ "screen", "[--ansi] [--history] [--json] SESSION",
	"print what the terminal shows now", verb_screen },
{ "tail", "[-n LINES] [-f] SESSION",
	"print what the session keeps of its output, with -f go on",
	verb_tail },
{ "info", "[--json] SESSION", "tell everything about a session", verb_info },
{ "who", "[--json]", "list who is attached where", verb_who },
{ "kick", "ATTACHMENT", "end an attachment by its number in `who`",
	verb_kick },
{ "rec ls", "[--json]", "list recordings", verb_rec_ls },
{ "rec cat", "RECORDING",
	"print a recording (asciicast v2), by its or its session's id",
	verb_rec_cat },
{ "rec play", "[-s SPEED] [-i SECONDS] RECORDING",
	"play a recording here; Space pauses, + - change the speed, q leaves",
	verb_rec_play },
{ "sandbox ls", "[--json]", "list sandboxes", verb_sandbox_ls },
{ "sandbox create", "[--template TEMPLATE] [--json] NAME",
	"make a sandbox before its first use", verb_sandbox_create },
{ "sandbox stats", "[--watch] [-n SECONDS] [--json] [NAME]",
	"show what sandboxes use, with --watch again and again",
	verb_sandbox_stats },
{ "sandbox exec", "[-t] [-i] [-e K=V]... [-d DIR] NAME [--] CMD...",
	"run a command in a sandbox that is there", verb_sandbox_exec },
{ "sandbox cp", "[--json] SRC DST",
	"copy files; one of them is NAME:PATH, the other may be - for a tar",
	verb_sandbox_cp },
{ "sandbox logs", "[-f] [--tail LINES] [--timestamps] [--engine] [--json] NAME",
	"print what the sessions of a sandbox printed, with -f go on",
	verb_sandbox_logs },
{ "sandbox rm", "[--json] NAME",
	"end the sessions of a sandbox and remove it with its files",
	verb_sandbox_rm },
{ "sandbox suspend", "[--json] NAME",
	"let everything in a sandbox stand still", verb_sandbox_suspend },
{ "sandbox resume", "[--json] NAME", "go on with a suspended sandbox",
	verb_sandbox_resume },
{ "sandbox snapshot",
	"[--name NAME] [--description TEXT] [--json] SANDBOX",
	"keep the files of a sandbox as they are now; prints the snapshot's id",
	verb_sandbox_snapshot },
{ "sandbox snapshots", "[--json] [SANDBOX]", "list snapshots",
	verb_sandbox_snapshots },
{ "sandbox restore", "[--to SANDBOX] [--json] SNAPSHOT",
	"bring a snapshot's files back; sessions of the sandbox end",
	verb_sandbox_restore },
{ "sandbox forget", "[--json] SNAPSHOT", "remove a snapshot",
	verb_sandbox_forget },
{ "sandbox pool",
	"ls [--json] | get [--json] TEMPLATE | scale [--json] TEMPLATE N",
	"list pools of sandboxes made ahead, or set how many of them wait",
	verb_sandbox_pool },
{ "sandbox providers", "[--json]",
	"list who makes sandboxes and what they can do",
	verb_sandbox_providers },
{ "upgrade", "", "let berthd execute its program anew, in place", verb_upgrade },
{ "doctor", "[--json]",
	"check the installation and say what is missing", verb_doctor },
};
/* clang-format on */

const struct verb *
verbs_all(size_t *n_out)
{
	*n_out = ARRAY_LEN(verbs_table);
	return verbs_table;
}

/* How many of the words ARGV the NAME "a" or "a b" is made of; 0 for others. */
static int
verb_match(const char *name, int argc, char **argv)
{
	size_t n = strcspn(name, " ");
	const char *second = name[n] ? name + n + 1 : NULL;

	if (argc < 1 || strlen(argv[0]) != n || memcmp(argv[0], name, n) != 0)
		return 0;
	if (!second)
		return 1;
	return argc > 1 && strcmp(argv[1], second) == 0 ? 2 : 0;
}

const struct verb *
verb_find(int argc, char **argv, int *n_words_out)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs_table); i++) {
		int n = verb_match(verbs_table[i].name, argc, argv);

		if (n > 0) {
			*n_words_out = n;
			return &verbs_table[i];
		}
	}
	return NULL;
}

int
cli_fail(int code, const char *fmt, ...)
{
	va_list ap;

	fputs("berth: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return code;
}

int
cli_usage(const struct cli *c, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "berth %s: ", c->verb->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nusage: berth %s %s\n", c->verb->name, c->verb->args);
	return CLI_USAGE;
}
