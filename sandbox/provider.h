/*
 * What a sandbox is to the rest of berth: a provider is one struct with a name,
 * a mask of capabilities and functions. The registry refuses duplicates, and an
 * unknown name is an error that lists what there is. A provider works in two
 * processes: what may take time runs in berth-sandbox, one process a job (see
 * job.h); what is asked often and answered at once runs in berthd.
 */
#ifndef SANDBOX_PROVIDER_H
#define SANDBOX_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct conf;
struct err;
struct event_base;

#define SANDBOX_NAME_SIZE     64 /* longest name and a NUL */
#define SANDBOX_PATH_MAX      1024
#define SANDBOX_IMAGE_MAX     256
#define SANDBOX_ADDRESS_MAX   256
#define SANDBOX_CGROUPS_MAX   5
#define SANDBOX_MISSING_MAX   128
#define SANDBOX_CPU_MAX       100000 /* percent of one processor */
#define SANDBOX_TMP_BYTES     (512ULL << 20)
#define SANDBOX_PIDS_FALLBACK 4096
#define SANDBOX_HASH_SIZE     49

enum sandbox_phase {
	SANDBOX_PENDING,
	SANDBOX_RUNNING,
	SANDBOX_SUSPENDED,
	SANDBOX_FAILED,
	SANDBOX_GONE
};

/* "pending", "running", ...: as in sandbox.state; and back, or -EINVAL. */
const char *sandbox_phase_name(enum sandbox_phase p);
int sandbox_phase_parse(const char *s, enum sandbox_phase *out);

enum sandbox_capability {
	SANDBOX_CAP_EXEC = 1u << 0,
	SANDBOX_CAP_PORT_FORWARD = 1u << 1,
	SANDBOX_CAP_METRICS = 1u << 2,
	SANDBOX_CAP_SNAPSHOT = 1u << 3,
	SANDBOX_CAP_SUSPEND = 1u << 4,
	SANDBOX_CAP_POOLS = 1u << 5
};

/* A connection or a listener that a provider is making. */
struct sandbox_call {
	/* Gives it up and frees it: its function is not called any more. */
	void (*cancel)(struct sandbox_call *call);
};

/*
 * The end of a call, once and from the loop, unless it was cancelled: FD is a
 * nonblocking, close-on-exec TCP socket that the callee owns, or a negative errno
 * and then WHY says what failed. The call is gone.
 */
typedef void (*sandbox_socket_fn)(int fd, const char *why, void *arg);

/* No call takes longer, whatever names and networks do. */
#define SANDBOX_CALL_MS 10000

/* Where a socket of a sandbox leads to, or listens. */
struct sandbox_socket {
	struct event_base *base;
	const char *host; /* a name or an address; for listen an address */
	uint16_t port;    /* for listen: 0 = any */
};

enum sandbox_network {
	SANDBOX_NET_LOOPBACK, /* of its own, with nothing but lo */
	SANDBOX_NET_HOST,
	SANDBOX_NET_NONE /* of its own, and lo is down */
};

/* Which sandbox, and what it is made of: all that a provider is told. */
struct sandbox_spec {
	char name[SANDBOX_NAME_SIZE];
	char provider[32];
	char dir[900]; /* where workspaces are: absolute */
	char user[64], shell[256], sftp_server[256];
	uid_t uid; /* of everything that runs in it; never 0 */
	gid_t gid;
	bool must_setuid;               /* berthd is root and uid is not */
	char rootfs[SANDBOX_PATH_MAX];  /* "": the system of this host */
	uint32_t network;               /* enum sandbox_network */
	uint32_t cpu_percent;           /* of one processor; 0: no limit */
	uint64_t memory_bytes;          /* 0: no limit */
	uint64_t pids_max;              /* 0: no limit */
	uint64_t workspace_bytes;       /* the same */
	char image[SANDBOX_IMAGE_MAX];  /* "": the provider's own */
	char member[SANDBOX_NAME_SIZE]; /* for provision(); or "" */
	/* What a provider found out when it was made or last looked at. */
	char address[SANDBOX_ADDRESS_MAX];
	bool lacks_sftp_server;
};

/* What came of a provisioning, or of a look. */
struct sandbox_made {
	/* Limits of the spec that nobody enforces here: "memory, cpu", or "". */
	char missing[SANDBOX_MISSING_MAX];
	enum sandbox_phase phase;          /* of probe() */
	char word[32];                     /* the engine's own for it, there */
	char address[SANDBOX_ADDRESS_MAX]; /* for the spec from now on */
	bool lacks_sftp_server;
	bool is_claimed; /* it was the spec's member of a pool until now */
};

/* A process that is to run in a sandbox, all of it as seen from there. */
struct sandbox_run {
	const char *sid; /* of its session */
	char *const *argv, *const *env;
	const char *cwd;
	bool has_pty, is_login;
};

/* A program of this host that reaches it; free by sandbox_way_release(). */
struct sandbox_way {
	char **argv, **env; /* for the program berth-sandbox */
};

/* Which lines of a provider's own log are wanted. */
struct sandbox_log_query {
	bool follow, timestamps;
	bool has_tail;
	uint64_t tail; /* with has_tail: the last lines, so many */
};

/* How a new process gets into the sandbox; nothing to do if pidfd is -1. */
struct sandbox_entry {
	int pidfd;          /* of a process inside, owned; or -1 */
	uint32_t ns_flags;  /* CLONE_NEW* to join */
	uint64_t pids_max;  /* RLIMIT_NPROC, 0: as it is */
	char oom_path[512]; /* counts out-of-memory kills, or "" */
	/* Files that take "0" of who joins and has one thread, "" for none. */
	char cgroups[SANDBOX_CGROUPS_MAX][512];
};

/* Where and as whom a process of the sandbox runs. */
struct sandbox_place {
	char workspace[SANDBOX_PATH_MAX]; /* absolute there; cwd and HOME */
	char user[64], shell[256];
	char sftp_server[256]; /* absolute path; it may be missing */
	bool has_sftp_server;
	uid_t uid;
	gid_t gid;
	bool must_setuid; /* the keeper becomes uid/gid before exec */
	bool has_way;     /* wrap() has to be asked for how to run something */
	/* Of each of its processes, 0: none; where it is not entered. */
	uint64_t max_processes, max_data;
	struct sandbox_entry entry;
};

/* What a sandbox uses; what nobody counts is -1. */
struct sandbox_metrics {
	int64_t cpu_us; /* since it was made */
	int64_t memory_bytes, memory_peak_bytes;
	int64_t processes;
	int64_t net_rx_bytes, net_tx_bytes;
	int64_t disk_bytes; /* of the workspace */
	int64_t oom_kills;
};

/* What came of a copy of a workspace. */
struct sandbox_copied {
	uint64_t files;   /* of all kinds, directories too */
	uint64_t bytes;   /* of the archive */
	uint64_t skipped; /* sockets, devices and what is mounted in it */
	/* Of the archive: hexadecimal digits, which say if it is the same. */
	char hash[SANDBOX_HASH_SIZE];
};

struct sandbox_provider {
	const char *name;
	const char *description;
	/* SANDBOX_CAP_*; each equals a non-NULL function. */
	unsigned capabilities;

	/* provision() never waits for anything: berthd calls it itself. */
	bool is_quick;

	/* teardown() and halt() end the processes of the sandbox. */
	bool is_contained;

	/*
	 * Nobody can tell at once what a sandbox does: probe() is asked so often.
	 * 0 for providers with status() and watch().
	 */
	uint32_t poll_ms;
	uint32_t job_ms; /* limit of an operation; 0 for the common one */

	/* ---- in berth-sandbox ------------------------------------------ */

	/*
	 * Makes the sandbox if it is not there. Idempotent. Until it returns 0
	 * nobody is let in, so limits are in force before anything runs. With a
	 * member in the spec it makes that the sandbox, if it can.
	 */
	int (*provision)(const struct sandbox_spec *s, struct sandbox_made *out,
	    struct err *e);

	/* Removes it and its workspace. Already gone is success. */
	int (*teardown)(const struct sandbox_spec *s, struct err *e);

	/* Ends what runs and keeps the workspace. Already so is success. */
	int (*halt)(const struct sandbox_spec *s, struct err *e);

	/* Where poll_ms is set: what it does, with phase and address in OUT. */
	int (*probe)(const struct sandbox_spec *s, struct sandbox_made *out,
	    struct err *e);

	/* With wrap(): KILL to what is left of session SID in it. */
	int (*reap)(
	    const struct sandbox_spec *s, const char *sid, struct err *e);

	/* SANDBOX_CAP_SUSPEND, both. Already so is success. */
	int (*suspend)(const struct sandbox_spec *s, struct err *e);
	int (*resume)(const struct sandbox_spec *s, struct err *e);

	/* SANDBOX_CAP_METRICS; SIDS are its sessions, a blank between them. */
	int (*measure)(const struct sandbox_spec *s, const char *sids,
	    struct sandbox_metrics *out, struct err *e);

	/*
	 * SANDBOX_CAP_SNAPSHOT, all three. The workspace as a zstd tar into
	 * OUT_FD.
	 */
	int (*snapshot)(const struct sandbox_spec *s, int out_fd,
	    struct sandbox_copied *out, struct err *e);

	/*
	 * Makes, beside the workspace, one of what snapshot() wrote, from IN_FD;
	 * what there was of one is replaced. IN_FD -1 only removes it. The
	 * sandbox itself is not touched and need not be there.
	 */
	int (*unpack)(const struct sandbox_spec *s, int in_fd,
	    struct sandbox_copied *out, struct err *e);

	/*
	 * Puts that in the place of the workspace, in one step, and removes the
	 * former one. Nothing runs in the sandbox. IN_FD is the archive again,
	 * for those who have nothing beside.
	 */
	int (*restore)(const struct sandbox_spec *s, int in_fd, struct err *e);

	/*
	 * SANDBOX_CAP_POOLS, all five. A member of a pool is a sandbox that runs
	 * with the limits of its spec and has neither workspace nor name; its id
	 * is a name for a sandbox, but nobody's. fill() makes the member
	 * s->name; what fails leaves nothing but what drain() removes.
	 */
	int (*fill)(const struct sandbox_spec *s, struct sandbox_made *out,
	    struct err *e);

	/*
	 * Removes the members IDS, a blank between them, and what is left of
	 * some that were being made or claimed; never a sandbox that one of them
	 * has become. Already gone is success.
	 */
	int (*drain)(
	    const struct sandbox_spec *s, const char *ids, struct err *e);

	/* ---- in berthd ------------------------------------------------- */

	/* The phase now; never an error for an unknown one (SANDBOX_GONE). */
	enum sandbox_phase (*status)(const struct sandbox_spec *s);

	/*
	 * A descriptor (owned by the caller) that becomes readable when the
	 * sandbox is lost, or -1: then status() has to be asked.
	 */
	int (*watch)(const struct sandbox_spec *s);

	/* Calls FN with the id of everything that drain() would remove. */
	void (*members)(const struct sandbox_spec *s,
	    void (*fn)(const char *id, void *arg), void *arg);

	/*
	 * A descriptor (owned by the caller) that becomes readable when the
	 * member s->name is lost, or -1 if it is none that can be claimed.
	 */
	int (*watch_member)(const struct sandbox_spec *s);

	/* True if the sandbox runs and was a member of a pool. */
	bool (*was_member)(const struct sandbox_spec *s);

	/*
	 * SANDBOX_CAP_EXEC: how to run a process there. The caller closes the
	 * pidfd in it.
	 */
	int (*exec)(const struct sandbox_spec *s, struct sandbox_place *out,
	    struct err *e);

	/*
	 * Where exec() says has_way: the program of this host that runs R there.
	 * It takes signals as if it were that process, and ends as that does.
	 */
	int (*wrap)(const struct sandbox_spec *s, const struct sandbox_run *r,
	    struct sandbox_way *out, struct err *e);

	/*
	 * The program of this host that prints the log which the provider keeps
	 * itself, as wrap(). NULL: there is none but what sessions recorded.
	 */
	int (*logs)(const struct sandbox_spec *s,
	    const struct sandbox_log_query *q, struct sandbox_way *out,
	    struct err *e);

	/*
	 * SANDBOX_CAP_PORT_FORWARD: a socket inside the network of the sandbox,
	 * connected or listening, as a process of it would get one. What S
	 * points at is copied. Never NULL, never blocks, never calls FN before
	 * it returns.
	 */
	struct sandbox_call *(*dial)(const struct sandbox_spec *spec,
	    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
	struct sandbox_call *(*listen)(const struct sandbox_spec *spec,
	    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
};

/* -EEXIST for a duplicate name, -EINVAL if mask and functions disagree. */
int sandbox_register(const struct sandbox_provider *p, struct err *e);

/*
 * The provider NAME, or NULL with a sentence that lists the registered names.
 */
const struct sandbox_provider *sandbox_find(const char *name, struct err *e);

/* All of them, in order of registration. */
const struct sandbox_provider *const *sandbox_all(size_t *n_out);

/*
 * 0 if P has CAPABILITY (one bit), else -EOPNOTSUPP with the sentence that says
 * so: that is everybody's answer to an operation which a provider lacks.
 */
int sandbox_require(
    const struct sandbox_provider *p, unsigned capability, struct err *e);

/* The names of the bits in MASK, "exec, metrics", into OUT. */
void sandbox_capability_names(unsigned mask, char *out, size_t size);

/* Frees what W holds. */
void sandbox_way_release(struct sandbox_way *w);

/* Registers what is built in; both programs, once. */
int sandbox_init(struct err *e);

/* `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`, and not `admin` or `exec`. */
bool sandbox_name_is_valid(const char *name);

/* -EINVAL with a printable sentence unless NAME is a name. */
int sandbox_check_name(const char *name, struct err *e);

/*
 * Fills the fields of OUT that the configuration decides alike for all: places
 * and the user. Looks accounts up. -ENOENT for an unknown sandbox.user, -EPERM
 * for uid 0.
 */
int sandbox_spec_init(
    struct sandbox_spec *out, const struct conf *c, struct err *e);

#endif
