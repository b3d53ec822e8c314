/*
 * The command line `berth`: what all verbs share. A verb is one row of the
 * table in verbs.c; its handler parses its arguments, asks berthd over the
 * control socket and prints. One process per call, single-threaded, may block.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stddef.h>

/* Exit codes, the same as the codes in answers. */
enum cli_code {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_NOT_FOUND = 3,
	CLI_CONFLICT = 4,
	CLI_REFUSED = 5,
	/* of attach, whose other codes belong to the process */
	CLI_OWN_FAILURE = 125,
	/* of run and exec: the command is none, or is not there */
	CLI_NOT_RUNNABLE = 126,
	CLI_NO_PROGRAM = 127
};

struct verb;

struct cli {
	const char *socket;      /* path of the control socket */
	const struct verb *verb; /* the one that runs */
};

struct verb {
	const char *name; /* "ls", "rec ls" */
	const char *args; /* for usage, "" for none */
	const char *help; /* one sentence without a full stop */
	/* ARGV holds what follows the verb's name. Returns the exit code. */
	int (*handler)(struct cli *c, int argc, char **argv);
};

/*
 * Finds the row of ARGV[0] (and ARGV[1] for verbs of two words); *N_WORDS_OUT
 * is how many words it took. NULL when there is none.
 */
const struct verb *verb_find(int argc, char **argv, int *n_words_out);

/* All rows. */
const struct verb *verbs_all(size_t *n_out);

/* Prints "berth: SENTENCE" on stderr and returns CODE. */
int cli_fail(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with how to use the verb; returns CLI_USAGE. */
int cli_usage(const struct cli *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The handlers. Each takes the words behind its name, returns an exit code. */

/* Lists sessions. */
int verb_ls(struct cli *c, int argc, char **argv);

/* Starts a session and prints its id. */
int verb_new(struct cli *c, int argc, char **argv);

/* Attaches; the exit code is the process's, 128 and its signal, or 125. */
int verb_attach(struct cli *c, int argc, char **argv);

/* Runs a process in a sandbox; exit codes as verb_attach(). */
int verb_run(struct cli *c, int argc, char **argv);

/* The same in one that is there, else CLI_NOT_FOUND. */
int verb_sandbox_exec(struct cli *c, int argc, char **argv);

/* Stops a session or sends it a signal. */
int verb_kill(struct cli *c, int argc, char **argv);

/* Forgets a session that ended. */
int verb_rm(struct cli *c, int argc, char **argv);

/* Types text. */
int verb_send(struct cli *c, int argc, char **argv);

/* Closes the input of a session without terminal. */
int verb_eof(struct cli *c, int argc, char **argv);

/* Sets the size, or frees it. */
int verb_resize(struct cli *c, int argc, char **argv);

/* Prints the screen of a session. */
int verb_screen(struct cli *c, int argc, char **argv);

/* Ends an attachment. */
int verb_kick(struct cli *c, int argc, char **argv);

/* Prints what a session keeps, and follows it. */
int verb_tail(struct cli *c, int argc, char **argv);

/* Tells all about a session. */
int verb_info(struct cli *c, int argc, char **argv);

/* Lists attachments. */
int verb_who(struct cli *c, int argc, char **argv);

/* Lists recordings. */
int verb_rec_ls(struct cli *c, int argc, char **argv);

/* Prints the whole lines of a recording. */
int verb_rec_cat(struct cli *c, int argc, char **argv);

/* Plays a recording in this terminal. */
int verb_rec_play(struct cli *c, int argc, char **argv);

/* Lists sandboxes. */
int verb_sandbox_ls(struct cli *c, int argc, char **argv);

/* Makes one, and waits until it is there. */
int verb_sandbox_create(struct cli *c, int argc, char **argv);

/* What sandboxes use, of what they may. */
int verb_sandbox_stats(struct cli *c, int argc, char **argv);

/* Prints what the sessions of a sandbox printed. */
int verb_sandbox_logs(struct cli *c, int argc, char **argv);

/* Copies files into a sandbox or out of it. */
int verb_sandbox_cp(struct cli *c, int argc, char **argv);

/* Ends its sessions and removes it with its workspace. */
int verb_sandbox_rm(struct cli *c, int argc, char **argv);

/* Everything in a sandbox stands still, and goes on. */
int verb_sandbox_suspend(struct cli *c, int argc, char **argv);
int verb_sandbox_resume(struct cli *c, int argc, char **argv);

/* `berth sandbox pool`: ls, get, scale. */
int verb_sandbox_pool(struct cli *c, int argc, char **argv);

/* Lists providers with what they can do. */
int verb_sandbox_providers(struct cli *c, int argc, char **argv);

/* `berth sandbox snapshot`, `snapshots`, `restore`, `forget`. */
int verb_sandbox_snapshot(struct cli *c, int argc, char **argv);
int verb_sandbox_snapshots(struct cli *c, int argc, char **argv);
int verb_sandbox_restore(struct cli *c, int argc, char **argv);
int verb_sandbox_forget(struct cli *c, int argc, char **argv);

/* Has berthd execute its program anew, and waits until it has. */
int verb_upgrade(struct cli *c, int argc, char **argv);

/* Checks the installation; CLI_FAILED if a check failed. */
int verb_doctor(struct cli *c, int argc, char **argv);

#endif
