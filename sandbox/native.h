/*
 * The provider `native`: namespaces of this kernel, by system calls. What it
 * is made of, file by file: native.c is the provider, native_record.c knows a
 * sandbox again, native_make.c begins one, native_init.c is its first process,
 * native_mount.c and native_etc.c are what that sees; native_pool.c keeps some
 * that wait for a name and a workspace, which native_claim.c gives them.
 */
#ifndef SANDBOX_NATIVE_H
#define SANDBOX_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct native_record;
struct sandbox_made;
struct sandbox_provider;
struct sandbox_spec;

/* Static; for the registry's table. */
const struct sandbox_provider *sandbox_native(void);

#define NATIVE_WORKSPACE "/workspace"

/* What the first process is made with. */
struct native_plan {
	const struct sandbox_spec *spec;
	uint64_t ns_flags;    /* CLONE_NEW* of the clone */
	int workspace_fd;     /* a detached mount of it, or -1: by descriptor */
	int workspace_dir_fd; /* -1: it has none, as a member of a pool */
	int rootfs_fd; /* a detached mount of it, or -1: this host's system */
	int go_fd;     /* readable when its ids are mapped */
	int report_fd; /* takes "" or a sentence that says what failed */
};

/* The record of S, and a pidfd of what it is about; else a negative errno. */
int native_open(const struct sandbox_spec *s, struct native_record *out);

/* Ends what the record of S is about, removes its groups and the record. */
int native_end(const struct sandbox_spec *s, struct err *e);

/*
 * Removes groups of S that are empty: whoever makes one and is killed leaves them
 * without a record.
 */
void native_forget_groups(const struct sandbox_spec *s);

/*
 * In berth-sandbox: makes namespaces and the first process, which has the
 * workspace WORKSPACE_FD (-1: none, a member of a pool), and its record; returns when it is ready. A negative
 * errno with a sentence, and nothing is left.
 */
int native_make(const struct sandbox_spec *s, int workspace_fd,
    struct sandbox_made *out, struct err *e);

/* The first process: never returns. It has not been anywhere yet. */
_Noreturn void native_init(struct native_plan *p);

/*
 * In the first process, whose mount namespace is its own: makes the tree that
 * the sandbox sees and goes there. 0 or a negative errno with a sentence.
 */
int native_mount(struct native_plan *p, struct err *e);

/*
 * Fills the directory "etc" of the present one: what programs look up, and of
 * the host's /etc below FROM what is in a list. 0 or a negative errno.
 */
int native_etc(const struct sandbox_spec *s, const char *from, struct err *e);

/*
 * Binds FROM to TO, which exists, with all that is mounted below it and with
 * ATTR (MOUNT_ATTR_*) on top of what it has. 0 or a negative errno.
 */
int native_bind(const char *from, const char *to, uint64_t attr);

/* Makes the mount at PATH, and no other, read-only, or writable again. */
int native_seal(const char *path, bool is_sealed, struct err *e);

/*
 * A detached mount of the directory DIR_FD with all below it, which is of no
 * namespace: the caller closes it. Or a negative errno.
 */
int native_tree(int dir_fd);

/*
 * Where P has no mount of its workspace yet: an ordinary user may not detach one
 * of the host, but in a mount namespace of the sandbox's user namespace it may.
 */
int native_find_workspace(struct native_plan *p, struct err *e);

/* Attaches it, the present directory being the sandbox's root. */
int native_attach_workspace(const struct native_plan *p, struct err *e);

/* Writes what has the sandbox's name into the directory "etc". */
int native_etc_name(const struct sandbox_spec *s, struct err *e);

/*
 * In berth-sandbox: what runs behind PIDFD, without a name and a workspace, gets
 * those of S. Half of it may be done when it fails.
 */
int native_claim(
    const struct sandbox_spec *s, int pidfd, int workspace_fd, struct err *e);

/*
 * In berth-sandbox, with the lock of S: true if the member of the spec is now
 * what the record of S is about. What went wrong is in the log.
 */
bool native_pool_claim(
    const struct sandbox_spec *s, int workspace_fd, struct sandbox_made *out);

/* Of the provider; see provider.h. */
int native_fill(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e);
int native_drain(const struct sandbox_spec *s, const char *ids, struct err *e);
void native_members(const struct sandbox_spec *s,
    void (*fn)(const char *id, void *arg), void *arg);
int native_watch_member(const struct sandbox_spec *s);
bool native_was_member(const struct sandbox_spec *s);

/* Makes TO a link to where the link FROM leads. 0 or a negative errno. */
int native_copy_link(const char *from, const char *to);

#endif
