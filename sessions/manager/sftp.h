/*
 * What becomes of a request for file transfer: whether OpenSSH's sftp-server is
 * to run in the sandbox, and with which arguments. Lives in berthd; decides
 * from the key, the request and the configuration alone.
 */
#ifndef SESSIONS_MANAGER_SFTP_H
#define SESSIONS_MANAGER_SFTP_H

#include <stdbool.h>

#include "sessions/manager/manager.h"

#define SFTP_ARGS_MAX 24

/* Arguments of sftp-server behind its own name. */
struct sftp_args {
	char *v[SFTP_ARGS_MAX + 1]; /* NULL-terminated; borrowed of `words` */
	unsigned n;
	char *words; /* owned; of the key's command= */
};

/*
 * Looks at a request of WHO. MANAGER_OK and *IS_SFTP_OUT false: it has nothing
 * to do with sftp. MANAGER_OK and true: sftp-server runs with OUT, which the
 * caller releases. Else *WHY_OUT says in a static sentence why not.
 */
enum manager_code sftp_plan(const struct conf *conf,
    const struct principal *who, const struct wire_run *run, bool *is_sftp_out,
    struct sftp_args *out, const char **why_out);

/* Frees what OUT of sftp_plan() owns; harmless on a zeroed one. */
void sftp_args_release(struct sftp_args *a);

#endif
