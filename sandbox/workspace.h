/*
 * The workspace of a sandbox: a directory of its user below sandbox.dir, which
 * is berthd's own. Invariants: no path is built from a name that was not
 * checked, no symbolic link is followed below sandbox.dir. For the providers of
 * this host; both programs.
 */
#ifndef SANDBOX_WORKSPACE_H
#define SANDBOX_WORKSPACE_H

struct err;
struct sandbox_spec;
struct stat;

/* Opens sandbox.dir, made when absent; refuses one that is not ours alone. */
int workspace_open_dir(const struct sandbox_spec *s, struct err *e);

/*
 * Makes the workspace if it is not there and gives it to its user. Returns a
 * descriptor of it (the caller closes) or a negative errno with a sentence.
 */
int workspace_make(const struct sandbox_spec *s, struct err *e);

/* Opens one that is there and its user's; the same results. */
int workspace_open(const struct sandbox_spec *s, struct err *e);

/* lstat() of it; 0 or a negative errno. */
int workspace_stat(const struct sandbox_spec *s, struct stat *out);

/*
 * Removes it with all that is in it, whatever that is; a mounted file system is
 * left alone (-EXDEV). One that is not there is success. May take long.
 */
int workspace_remove(const struct sandbox_spec *s, struct err *e);

/*
 * The same for the entry NAME of DIR_FD, whatever it is: 0, or a negative errno,
 * -ELOOP for what is nested too deep.
 */
int workspace_remove_at(int dir_fd, const char *name);

/* No directory of a workspace is deeper: one descriptor a level. */
#define WORKSPACE_DEPTH_MAX 128

#endif
