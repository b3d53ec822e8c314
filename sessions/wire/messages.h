/*
 * The payloads that are more than a number: a struct each, an encoder and a
 * decoder. Decoders check every length and range, return -EPROTO for anything
 * that does not fit exactly, and leave their output released on failure.
 */
#ifndef SESSIONS_WIRE_MESSAGES_H
#define SESSIONS_WIRE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "sessions/wire/frame.h"

#define WIRE_SID_MAX      32  /* "ses-" + 16 hex and a NUL */
#define WIRE_NAME_MAX     160 /* sandbox+session and a NUL */
#define WIRE_TERM_MAX     64
#define WIRE_COMMAND_MAX  (256U << 10)
#define WIRE_ENV_MAX      64   /* variables */
#define WIRE_ENV_LEN_MAX  4096 /* bytes of one NAME=VALUE */
#define WIRE_ARGV_MAX     1024 /* arguments */
#define WIRE_USER_MAX     1024 /* bytes of an SSH user name */
#define WIRE_IDENTITY_MAX 256
#define WIRE_LABEL_MAX    2048 /* bytes that the manager gives a viewer */
#define WIRE_NOTICE_MAX   256
#define WIRE_ANSWER_MAX   64  /* name of a terminal and a NUL */
#define WIRE_KEYS_MAX     2   /* of a detach key */
#define WIRE_HOST_MAX     256 /* a host name and a NUL */
#define WIRE_ENDS_MAX     144 /* "host port host port", numeric */

/* A terminal's size; 0 = unknown, kept as it is. */
struct wire_size {
	uint32_t cols, rows, xpixel, ypixel;
};

/* The note of what was killed because its sandbox has no more memory. */
#define WIRE_NOTE_OOM "out of memory: the limit of the sandbox was reached"

/* What happened to a process; in FRAME_EXIT, FRAME_EXITED. */
struct wire_exit {
	uint8_t is_signal; /* 1: `value` is the signal that killed it */
	uint8_t core_dumped;
	uint32_t value;
	char note[256]; /* why berth ended it, "" if it ended by itself */
};

enum wire_launch_flags {
	LAUNCH_PTY = 1u << 0,   /* else three pipes */
	LAUNCH_BOUND = 1u << 1, /* ends when its one viewer is gone; lossless */
	LAUNCH_LOGIN = 1u << 2, /* argv[0] of the child gets a leading '-' */
	LAUNCH_RECORD = 1u << 3,   /* FRAME_LAUNCH carries the recording */
	LAUNCH_REC_STOP = 1u << 4, /* recording.on_error = stop */
	LAUNCH_SETUID = 1u << 5,   /* become uid/gid/user before exec */
	/* 2: stderr goes to the manager, as FRAME_LOG; of bound pipes only */
	LAUNCH_LOG_STDERR = 1u << 6,
	/* 2: SSH_TTY of the process names its terminal */
	LAUNCH_SSH_TTY = 1u << 7,
	/* 2: the terminal is raw from the start: another one is behind it */
	LAUNCH_RAW = 1u << 8,
	/* 2: limits of the process follow; set by the encoder */
	LAUNCH_LIMITS = 1u << 9
};

/* What a viewer with a terminal gets first. */
enum wire_replay {
	REPLAY_SCREEN, /* the scrollback and the screen as it is */
	REPLAY_RAW,    /* the end of the ring */
	REPLAY_NONE
};

/* A key: `]` with ctrl is Ctrl-]. Letters with ctrl are in lower case. */
struct wire_key {
	uint32_t ch; /* code point; 27 is Escape */
	uint8_t is_ctrl;
};

/* Typed one after the other they detach a viewer. */
struct wire_detach_key {
	uint8_t n; /* 0 = there is none */
	struct wire_key keys[WIRE_KEYS_MAX];
};

/* What the session's terminal claims to be; colours are 0xrrggbb. */
struct wire_answer {
	char name[WIRE_ANSWER_MAX];
	uint32_t foreground, background, cursor;
};

/* Everything a keeper must know; it reads no configuration. */
struct wire_launch {
	uint32_t version; /* of the frames that the manager speaks */
	char sid[WIRE_SID_MAX];
	char title[WIRE_NAME_MAX]; /* sandbox+name, for the recording */
	uint64_t generation;       /* of the manager that launches */
	uint32_t flags;            /* enum wire_launch_flags */
	char *path;                /* program to execute, absolute */
	char **argv;               /* at least one */
	char **env;                /* complete; nothing is inherited */
	char *cwd;
	uint32_t uid, gid;
	char user[64];         /* for initgroups() */
	struct wire_size size; /* never 0 in cols and rows */
	uint64_t buffer_bytes; /* cap of the ring */
	uint32_t stop_grace_ms;
	uint32_t rec_flush_ms;
	uint64_t rec_min_free, rec_max_bytes;
	uint32_t rec_index_ms;  /* a recording_index row at least this often */
	uint32_t resize_policy; /* enum wire_resize; FIXED keeps `size` */
	uint32_t replay;        /* enum wire_replay */
	uint32_t scrollback_lines;
	uint64_t scrollback_bytes;
	struct wire_detach_key detach_key;
	struct wire_answer answer;
	char term[WIRE_TERM_MAX]; /* TERM of the process, "" without a PTY */
	/* RLIMIT_NPROC and RLIMIT_DATA, 0: as they are */
	uint64_t max_processes, max_data;
};

#define WIRE_CGROUPS_MAX 8

/* How a process gets into a sandbox; ids are those of FRAME_LAUNCH. */
struct wire_entry {
	uint32_t ns_flags; /* CLONE_NEW* that are joined */
	uint64_t pids_max; /* RLIMIT_NPROC, 0: as it is */
	char *oom_path;    /* counts out-of-memory kills, or "" */
	char **cgroups;    /* files that take its pid, absolute */
};

enum wire_resize {
	RESIZE_LATEST,
	RESIZE_SMALLEST,
	RESIZE_LARGEST,
	RESIZE_FIRST,
	RESIZE_FIXED
};

enum wire_viewer_flags {
	VIEWER_MAY_TYPE = 1u << 0, /* input, signals, break, size */
	VIEWER_REPLAY = 1u << 1,   /* send the ring first */
	VIEWER_FOLLOW = 1u << 2, /* then live output; else end after the ring */
	VIEWER_RAW_TAIL = 1u << 3, /* the last `tail_lines` lines only */
	VIEWER_TERMINAL = 1u << 4, /* it shows the bytes on a terminal */
	VIEWER_RAW = 1u << 5       /* wants the bytes of the ring, no repaint */
};

struct wire_viewer {
	uint64_t attachment; /* row id */
	uint32_t flags;      /* enum wire_viewer_flags */
	uint32_t tail_lines; /* 0 = all of the ring */
	/*
	 * Of its terminal, 0 = unknown or none. It decides the session's size
	 * only with VIEWER_MAY_TYPE.
	 */
	struct wire_size size;
	/* Since version 2. */
	uint32_t version; /* of the frames that the viewer speaks, else 1 */
	char *label;  /* opaque to the keeper, comes back in VIEWERS; or NULL */
	char *notice; /* printed first, before all output; one line; or NULL */
	char *identity; /* whose key it is, for markers; or NULL */
};

/* A viewer that left. */
struct wire_left {
	uint64_t attachment; /* row id */
	uint64_t bytes_out, bytes_in;
	uint32_t resyncs;
	uint64_t left_ms; /* wall clock, since version 2; else 0 */
};

/* What FRAME_SCREEN wants beside the text of the screen. */
enum wire_screen {
	WIRE_SCREEN_ANSI = 1u << 0,    /* colours and attributes, as SGR */
	WIRE_SCREEN_HISTORY = 1u << 1, /* the scrollback before it */
	WIRE_SCREEN_ALL = 3u
};

struct wire_take {
	uint32_t version; /* that both speak from now on */
	uint64_t generation;
};

struct wire_stats {
	uint64_t bytes_out, bytes_in; /* of the process's point of view */
	uint32_t cols, rows;
	uint64_t rec_bytes, rec_duration_ms;
	uint32_t rec_gaps;
};

struct wire_exited {
	struct wire_exit exit;
	uint64_t exited_ms; /* wall clock */
	struct wire_stats stats;
	uint8_t rec_state; /* 0 none, 1 complete, 2 truncated */
};

enum wire_session_state {
	STATE_STARTING,
	STATE_RUNNING,
	STATE_EXITED
};

struct wire_hello {
	uint32_t version; /* FRAME_VERSION */
	char sid[WIRE_SID_MAX];
	uint64_t generation; /* highest the keeper has seen */
	uint8_t state;       /* enum wire_session_state */
	uint32_t pid;        /* of the leader, 0 while starting */
	uint64_t pid_start;
	struct wire_stats stats;
	uint32_t n_viewers;
};

enum wire_auth_method {
	AUTH_NONE,      /* "none", or any method that is not offered */
	AUTH_KEY_PROBE, /* a key offered without a signature */
	AUTH_KEY_PROVEN /* libssh verified the signature */
};

struct wire_auth {
	uint8_t method;           /* enum wire_auth_method */
	char user[WIRE_USER_MAX]; /* as sent by the client, NUL-free */
	char key_type[64];        /* "ssh-ed25519" */
	char *key_base64; /* the blob as in authorized_keys; "" for none */
	char client_version[256]; /* identification string of the peer */
};

enum wire_verdict {
	VERDICT_DENY,
	VERDICT_ALLOW,
	VERDICT_DISCONNECT
};

enum wire_may {
	WIRE_MAY_PTY = 1u << 0,
	WIRE_MAY_FORWARD = 1u << 1
};

enum wire_open {
	OPEN_SESSION,
	OPEN_DIRECT_TCPIP,
	OPEN_OTHER
};

enum wire_run_kind {
	RUN_SHELL,
	RUN_EXEC,
	RUN_SUBSYSTEM
};

/* A shell, exec or subsystem request with what came before it. */
struct wire_run {
	uint8_t kind; /* enum wire_run_kind */
	uint8_t has_pty;
	char term[WIRE_TERM_MAX];
	struct wire_size size;
	char **env;    /* NAME=VALUE as the client sent them, unfiltered */
	char *command; /* RUN_EXEC: command line; RUN_SUBSYSTEM: its name */
};

/* A forwarded connection: where it leads, or came in, and from where. */
struct wire_forward {
	uint32_t id; /* 0 in FRAME_FORWARD */
	char host[WIRE_HOST_MAX];
	uint16_t port;
	char
	    origin[WIRE_HOST_MAX]; /* as the client tells it: may be anything */
	uint32_t origin_port;
};

/* FRAME_LISTEN and FRAME_UNLISTEN. */
struct wire_listen {
	char address[WIRE_HOST_MAX]; /* as the client wrote it, "" for all */
	uint16_t port;
};

struct wire_forward_end {
	uint32_t id;
	uint64_t bytes_in, bytes_out; /* to the sandbox, from it */
};

/*
 * Encoders append to B, in the shape of VERSION where it made a difference.
 * Decoders take exactly N bytes: 0, or -EPROTO and nothing to release. What a decoder allocated its _release() frees.
 */
void wire_exit_encode(struct buf *b, const struct wire_exit *m);
int wire_exit_decode(const void *p, size_t n, struct wire_exit *out);
void wire_launch_encode(struct buf *b, const struct wire_launch *m);
int wire_launch_decode(const void *p, size_t n, struct wire_launch *out);
void wire_launch_release(struct wire_launch *m);
void wire_entry_encode(struct buf *b, const struct wire_entry *m);
int wire_entry_decode(const void *p, size_t n, struct wire_entry *out);
void wire_entry_release(struct wire_entry *m);
void wire_viewer_encode(
    struct buf *b, const struct wire_viewer *m, uint32_t version);
int wire_viewer_decode(
    const void *p, size_t n, uint32_t version, struct wire_viewer *out);
void wire_viewer_release(struct wire_viewer *m);
void wire_left_encode(
    struct buf *b, const struct wire_left *m, uint32_t version);
int wire_left_decode(
    const void *p, size_t n, uint32_t version, struct wire_left *out);
void wire_take_encode(struct buf *b, const struct wire_take *m);
int wire_take_decode(const void *p, size_t n, struct wire_take *out);
void wire_size_encode(struct buf *b, const struct wire_size *m);
int wire_size_decode(const void *p, size_t n, struct wire_size *out);
void wire_stats_encode(struct buf *b, const struct wire_stats *m);
int wire_stats_decode(const void *p, size_t n, struct wire_stats *out);
void wire_exited_encode(struct buf *b, const struct wire_exited *m);
int wire_exited_decode(const void *p, size_t n, struct wire_exited *out);
void wire_hello_encode(struct buf *b, const struct wire_hello *m);
int wire_hello_decode(const void *p, size_t n, struct wire_hello *out);
void wire_auth_encode(struct buf *b, const struct wire_auth *m);
int wire_auth_decode(const void *p, size_t n, struct wire_auth *out);
void wire_auth_release(struct wire_auth *m);
void wire_run_encode(struct buf *b, const struct wire_run *m);
int wire_run_decode(const void *p, size_t n, struct wire_run *out);
void wire_run_release(struct wire_run *m);
void wire_forward_encode(struct buf *b, const struct wire_forward *m);
int wire_forward_decode(const void *p, size_t n, struct wire_forward *out);
void wire_listen_encode(struct buf *b, const struct wire_listen *m);
int wire_listen_decode(const void *p, size_t n, struct wire_listen *out);
void wire_forward_end_encode(struct buf *b, const struct wire_forward_end *m);
int wire_forward_end_decode(
    const void *p, size_t n, struct wire_forward_end *out);

/*
 * What berth-sshd is told at its start, in a sealed memory file. The host keys
 * are secret: released with sodium-free explicit zeroing.
 */
struct wire_settings {
	uint32_t version;     /* of the frames that the manager speaks */
	char conn_id[32];     /* for logs, "con-" + 8 hex */
	char remote_addr[64]; /* "ADDRESS:PORT" of the peer */
	uint32_t login_grace_ms;
	uint32_t keepalive_ms, keepalive_count;
	uint32_t max_channels;
	uint64_t rekey_bytes; /* 0: as the SSH library does it */
	uint8_t log_level, log_json;
	char **host_keys; /* PEM texts, in order of preference */
};

/* As above. The keys are zeroed before they are freed. */
void wire_settings_encode(struct buf *b, const struct wire_settings *m);
int wire_settings_decode(const void *p, size_t n, struct wire_settings *out);
void wire_settings_release(struct wire_settings *m);

#endif
