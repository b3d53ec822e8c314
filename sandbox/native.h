/*
 * The provider `native`: namespaces of this kernel, by system calls. What it
 * is made of, file by file: native.c is the provider, native_record.c knows a
 * sandbox again, native_make.c begins one, native_init.c is its first process,
 * native_mount.c and native_etc.c are what that sees.
 */
#ifndef SANDBOX_NATIVE_H
#define SANDBOX_NATIVE_H

#include <stdint.h>

struct err;
struct sandbox_made;
struct sandbox_provider;
struct sandbox_spec;

/* Static; for the registry's table. */
const struct sandbox_provider *sandbox_native(void);

#define NATIVE_WORKSPACE "/workspace"

/* What the first process is made with. */
struct native_plan {
	const struct sandbox_spec *spec;
	uint64_t ns_flags; /* CLONE_NEW* of the clone */
	int workspace_fd;  /* a detached mount of it, or -1: by descriptor */
	int workspace_dir_fd;
	int rootfs_fd; /* a detached mount of it, or -1: this host's system */
	int go_fd;     /* readable when its ids are mapped */
	int report_fd; /* takes "" or a sentence that says what failed */
};

/*
 * In berth-sandbox: makes namespaces and the first process, which has the
 * workspace WORKSPACE_FD, and its record; returns when it is ready. A negative
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

/* Makes TO a link to where the link FROM leads. 0 or a negative errno. */
int native_copy_link(const char *from, const char *to);

#endif
