/*
 * Starts berth-sshd: descriptor 3 is the client, 4 the link to us, 5 a sealed
 * memory file with its settings and the host keys. Lives in berthd. The child
 * gets a clean environment and nothing else of ours.
 */
#ifndef SSHD_LISTENER_SPAWN_H
#define SSHD_LISTENER_SPAWN_H

#include <sys/types.h>

struct err;
struct host_keys;
struct wire_settings;

/*
 * Runs PATH for the accepted socket CLIENT_FD with LINK_FD as its link; both
 * are borrowed. Returns the pid and the child's pidfd, which the caller closes,
 * or a negative errno.
 */
pid_t spawn_connection(const char *path, int client_fd, int link_fd,
    const struct wire_settings *s, int *pidfd_out);

/*
 * Lets `PATH --check-host-keys` import each key, at most 5 s for each; it says
 * on stderr what it dislikes. Blocks: before the loop only. 0, or a negative
 * errno with a sentence that names the file.
 */
int spawn_check_host_keys(
    const char *path, const struct host_keys *keys, struct err *e);

#endif
