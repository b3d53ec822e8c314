/*
 * The configuration: one table of options (conf/options.c) from which the
 * loader, --show-config, the sample file and the manual's text all come. Read
 * by berthd only; every other process is told what it needs.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/log.h"

struct err;

#define CONF_LIST_MAX 16

enum conf_resize {
	CONF_RESIZE_LATEST,
	CONF_RESIZE_SMALLEST,
	CONF_RESIZE_LARGEST,
	CONF_RESIZE_FIRST,
	CONF_RESIZE_FIXED
};

/* What somebody who attaches gets to see first. */
enum conf_replay {
	CONF_REPLAY_SCREEN,
	CONF_REPLAY_RAW,
	CONF_REPLAY_NONE
};

enum conf_notice {
	CONF_NOTICE_NO,
	CONF_NOTICE_LOST, /* a fresh session where one was lost */
	CONF_NOTICE_YES   /* every new session, and who joins a running one */
};

enum conf_on_shutdown {
	CONF_SHUTDOWN_KEEP,
	CONF_SHUTDOWN_KILL
};
enum conf_sftp_mode {
	CONF_SFTP_RW,
	CONF_SFTP_RO,
	CONF_SFTP_OFF
};
enum conf_on_error {
	CONF_ON_ERROR_CONTINUE,
	CONF_ON_ERROR_STOP
};

struct conf_key {
	uint32_t ch; /* the key's character, a letter in lower case with ctrl */
	bool is_ctrl;
};

struct conf_detach_key {
	unsigned n; /* 0: none, 1 or 2 keys one after the other */
	struct conf_key keys[2];
};

/* Room for the name that session.answer gives, and a NUL. */
#define CONF_ANSWER_NAME 64

/* What a session's terminal says about itself; colours are 0xrrggbb. */
struct conf_answer {
	char name[CONF_ANSWER_NAME];
	uint32_t foreground, background, cursor;
};

enum conf_network {
	CONF_NETWORK_LOOPBACK,
	CONF_NETWORK_HOST,
	CONF_NETWORK_NONE
};

/* Uids from FIRST to LAST; FIRST 0: none. */
struct conf_uids {
	uid_t first, last;
};

#define CONF_TEMPLATES_MAX     64
#define CONF_TEMPLATE_NAME_MAX 32 /* inih cuts sections at 50 */
#define CONF_POOL_MAX          1000

/* The template that is native where that works, and else refuses. */
#define CONF_TEMPLATE_AUTO "auto"

/* What a sandbox is made from: a section [template NAME]. */
struct conf_template {
	char *name;     /* NULL for one that is built in */
	char *provider; /* native, local or a section [provider NAME] */
	char *rootfs;   /* absolute, or "" for the system of this host */
	char *image;    /* for providers that have some, or "" */
	enum conf_network network;
	uint64_t cpu_percent;  /* of one processor; 0: no limit */
	uint64_t memory_bytes; /* 0: no limit */
	uint64_t pids_max;     /* 0: no limit */
	char *env;             /* for conf_variables(), or "" */
	char *init;            /* for the shell, once; or "" */
	uint64_t init_timeout_ms;
	bool sftp, forward;       /* may be done with it */
	uint64_t workspace_bytes; /* 0: no limit */
	uint64_t pool_size;       /* sandboxes that wait for a name */
	uint64_t idle_suspend_ms, idle_teardown_ms, lifetime_ms; /* 0: never */
	bool viewers_wake; /* who only watches wakes it and keeps it awake */
	unsigned given;    /* bits of keys, for the loader */
};

#define CONF_PROVIDERS_MAX     16
#define CONF_PROVIDER_NAME_MAX 32
#define CONF_PROVIDER_KEYS_MAX 40

/* An engine driven by commands: a section [provider NAME]. */
struct conf_provider {
	char *name;
	char *value[CONF_PROVIDER_KEYS_MAX];   /* NULL: not given */
	unsigned file[CONF_PROVIDER_KEYS_MAX]; /* for the loader */
};

/*
 * Values after loading: strings are never NULL ("" where the default is
 * "none"), paths are absolute, times are milliseconds, sizes bytes.
 */
struct conf {
	struct {
		char *listen; /* comma-separated host:port, [v6]:port */
		char *state_dir, *runtime_dir;
		char *host_key; /* comma-separated absolute paths */
		uint64_t login_grace_ms;
		uint64_t max_auth_tries;
		uint64_t max_connections, max_startups, max_per_source;
		char *admin_group;
		uint64_t keepalive_ms, keepalive_count;
		uint64_t max_channels;
		uint64_t rekey_bytes; /* 0: the SSH library's own limits */
		enum log_level log_level;
		bool log_json;
	} server;
	struct {
		char *authorized_keys; /* comma-separated absolute paths */
		bool autocreate;
		char *default_role; /* owner, writer or viewer */
		bool allow_sk;
		char *default_template;
	} access;
	struct {
		char *dir;
		char *user;
		char *sftp_server; /* absolute path, as a sandbox sees it */
		char *providers;   /* comma-separated absolute paths, or "" */
		char *snapshots;   /* where their files are */
		struct conf_uids uids; /* of sandbox.uid_range */
	} sandbox;
	struct {
		enum conf_sftp_mode mode;
	} sftp;
	struct {
		char *shell; /* absolute path, found at load time if unset */
		uint64_t buffer_bytes;
		enum conf_replay replay;
		uint64_t scrollback, scrollback_bytes;
		struct conf_answer answer;
		enum conf_resize resize;
		unsigned fixed_cols, fixed_rows; /* of CONF_RESIZE_FIXED */
		struct conf_detach_key detach_key;
		char *env_accept; /* comma-separated globs */
		uint64_t stop_grace_ms;
		enum conf_on_shutdown on_shutdown;
		enum conf_notice notice;
		uint64_t max_per_sandbox;
	} session;
	struct {
		char *allow, *listen; /* comma-separated endpoint patterns */
	} forward;
	struct {
		bool enabled, exec, input;
		char *dir;
		uint64_t retention_ms, sweep_interval_ms, flush_ms;
		uint64_t min_free_bytes, max_bytes;
		enum conf_on_error on_error;
	} recording;
	struct conf_template *templates[CONF_TEMPLATES_MAX];
	size_t n_templates;
	struct conf_provider *providers[CONF_PROVIDERS_MAX];
	size_t n_providers;
	struct conf_provider *open_provider; /* for the loader: whose value */
	size_t open_key;                     /* may go on */
};

/*
 * The template NAME, configured or built in (auto, native, local): OUT borrows
 * the strings of C. -ENOENT with a sentence that lists what there is.
 */
int conf_template_find(const struct conf *c, const char *name,
    struct conf_template *out, struct err *e);

/*
 * The words NAME=VALUE of TEXT, quoted as in base/argv.h but with braces that
 * are themselves; "" and "none" are no word. *OUT is for strv_free(). -EINVAL
 * with a sentence for what is none, -E2BIG for too many.
 */
int conf_variables(const char *text, char ***out, struct err *e);

/* The provider NAME of a section, or NULL. */
const struct conf_provider *conf_provider_find(
    const struct conf *c, const char *name);

/*
 * The value of KEY, which is one of the table, or its default, "" for none; and
 * of one that is a time.
 */
const char *conf_provider_get(const struct conf_provider *p, const char *key);
uint64_t conf_provider_ms(const struct conf_provider *p, const char *key);

/*
 * Loads FILE (NULL: the default path, where absence is no error), applies the
 * N_OVERRIDES strings "section.key=value" on top and fills in the defaults that
 * depend on the user and on other values. On failure E reads
 * "FILE:LINE: section.key: what is wrong" (or "-o section.key: ..."), *OUT is
 * untouched and a negative errno returned. The caller frees with conf_free().
 */
int conf_load(const char *file, const char *const *overrides,
    unsigned n_overrides, struct conf **out, struct err *e);
void conf_free(struct conf *c);

/* Every option as INI, with the value in force (berthd --show-config). */
void conf_show(const struct conf *c, FILE *out);

/* The sample file: every option commented out, with its help. */
void conf_print_sample(FILE *out);

/*
 * The options for berth.conf(5): a subsection per section and a paragraph per
 * option, in the macros of man(7).
 */
void conf_print_manual(FILE *out);

/* The path that conf_load(NULL, ...) reads for this user; the caller frees. */
char *conf_default_path(void);

/*
 * The default control socket's directory (server.runtime_dir's default) for
 * this user; the caller frees. Used by the command line too.
 */
char *conf_default_runtime_dir(void);

#endif
