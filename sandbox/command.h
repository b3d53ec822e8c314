/*
 * Providers that are command lines of the configuration: any engine with a
 * client. Each is a struct sandbox_provider of its own in the registry. berthd
 * reads them from the configuration (providers.c), berth-sandbox gets the one
 * that its task is about with the task.
 */
#ifndef SANDBOX_COMMAND_H
#define SANDBOX_COMMAND_H

#include <stdint.h>

#include "sandbox/provider.h"

struct buf;
struct reader;

/* Values of a section, in the order of command_keys. */
enum command_text {
	COMMAND_DESCRIPTION,
	COMMAND_PROGRAM,
	COMMAND_IMAGE,
	COMMAND_HOME,
	COMMAND_USER,
	COMMAND_SHELL,
	COMMAND_SFTP_SERVER,
	COMMAND_NETWORK_LOOPBACK,
	COMMAND_NETWORK_HOST,
	COMMAND_NETWORK_NONE,
	COMMAND_CREATE,
	COMMAND_CREATE_INPUT,
	COMMAND_START,
	COMMAND_STOP,
	COMMAND_REMOVE,
	COMMAND_STATUS,
	COMMAND_RUNNING,
	COMMAND_PENDING,
	COMMAND_SUSPENDED,
	COMMAND_EXEC,
	COMMAND_EXEC_TTY,
	COMMAND_SIGNAL,
	COMMAND_FORWARD,
	COMMAND_SUSPEND,
	COMMAND_RESUME,
	COMMAND_METRICS,
	COMMAND_LOGS,
	COMMAND_SNAPSHOT,
	COMMAND_RESTORE,
	COMMAND_TEXTS
};

/* The key of T in its section. */
const char *command_key(enum command_text t);

struct command {
	char *name;
	char *text[COMMAND_TEXTS]; /* never NULL; "" for none */
	char **env;                /* of the engine's client */
	uint32_t timeout_ms;       /* of a call */
	uint32_t create_ms;        /* of create and start */
	uint32_t poll_ms;
	struct sandbox_provider provider;
};

/*
 * Makes a provider of C, which it takes over, and registers it; the capabilities
 * are what there are commands for. -EEXIST and then C is freed.
 */
int command_register(struct command *c, struct err *e);

/* The one of that name, or NULL. */
const struct command *command_find(const char *name);

/* Frees C and what it holds; NULL is fine. */
void command_free(struct command *c);

/*
 * For a task: C or, for NULL, that there is none. The decoder's *OUT is the
 * caller's, NULL for none; it sets R to failed for what is none.
 */
void command_encode(struct buf *b, const struct command *c);
void command_decode(struct reader *r, struct command **out);

/* What the placeholders of one command stand for, beside those of the spec. */
struct command_fill {
	const struct command *command;
	const struct sandbox_spec *spec;
	char *const *leader, *const *signal, *const *measure;
	char *const *pack, *const *unpack;
	const char *host, *port;
	/* of logs: "true" or "", and a number or "" */
	const char *follow, *timestamps, *tail;
};

/* The words of T, for strv_free(); empty if there is no such command. */
int command_words(const struct command_fill *f, enum command_text t,
    char ***out, struct err *e);

/* NAME as the host names of engines allow it; another for each other name. */
void command_dns_name(const char *name, char *out, size_t size);

/* What status printed, N bytes at P: phase and address of OUT. */
void command_parse_status(
    const struct command *c, const char *p, size_t n, struct sandbox_made *out);

/* What {measure} printed; what is not there is -1. */
void command_parse_metrics(
    const char *p, size_t n, struct sandbox_metrics *out);

/* The functions of sandbox/command_ops.c, for command_register(). */
int command_provision(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e);
int command_teardown(const struct sandbox_spec *s, struct err *e);
int command_halt(const struct sandbox_spec *s, struct err *e);
int command_probe(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e);
int command_reap(const struct sandbox_spec *s, const char *sid, struct err *e);
int command_suspend(const struct sandbox_spec *s, struct err *e);
int command_resume(const struct sandbox_spec *s, struct err *e);
int command_measure(const struct sandbox_spec *s, const char *sids,
    struct sandbox_metrics *out, struct err *e);

/* And of sandbox/command_copy.c. */
int command_snapshot(const struct sandbox_spec *s, int out_fd,
    struct sandbox_copied *out, struct err *e);
int command_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e);
int command_restore(const struct sandbox_spec *s, int in_fd, struct err *e);

#endif
