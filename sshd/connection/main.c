/*
 * berth-sshd: one SSH connection. berthd starts it by exec with descriptor 3
 * the accepted socket, 4 the link to the manager, 5 a sealed memory file with
 * struct wire_settings. With --check-host-keys and descriptor 5 alone it only
 * says whether libssh can use the host keys.
 */
#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "sessions/wire/messages.h"
#include "sshd/connection/confine.h"
#include "sshd/connection/lib_log.h"
#include "sshd/connection/peer.h"
#include "sshd/connection/transport.h"

enum main_fds {
	MAIN_TCP_FD = 3,
	MAIN_MANAGER_FD,
	MAIN_SETTINGS_FD
};

#define MAIN_SETTINGS_MAX (1U << 20)

static int
main_read_settings(struct wire_settings *out, struct err *e)
{
	struct buf b = { 0 };
	int rc;

	/* The file is shared with whoever made it: read from its start. */
	if (lseek(MAIN_SETTINGS_FD, 0, SEEK_SET) < 0)
		return err_sys(e, -errno, "descriptor 5");
	rc = fd_read_all(MAIN_SETTINGS_FD, MAIN_SETTINGS_MAX, &b);
	close(MAIN_SETTINGS_FD);
	if (rc < 0)
		return err_sys(e, rc, "read the settings");
	rc = wire_settings_decode(b.data, buf_len(&b), out);
	if (b.data)
		explicit_bzero(b.data, b.cap);
	buf_release(&b);
	if (rc < 0)
		return err_set(e, rc, "the settings do not decode");
	return 0;
}

static int
main_fail(const struct err *e)
{
	fprintf(stderr, "berth-sshd: %s\n", e->msg);
	return 1;
}

static int
main_check_host_keys(void)
{
	struct wire_settings s = { 0 };
	struct err e = { 0 };
	int rc = main_read_settings(&s, &e);

	if (rc == 0)
		rc = transport_check_host_keys(&s, &e);
	wire_settings_release(&s);
	return rc < 0 ? main_fail(&e) : 0;
}

static int
main_serve(void)
{
	struct wire_settings s = { 0 };
	struct err e = { 0 };

	if (main_read_settings(&s, &e) < 0)
		return main_fail(&e);
	log_open("berth-sshd", (enum log_level)s.log_level, s.log_json);
	log_set_id("conn", s.conn_id);
	lib_log_watch();
	if (fd_set_cloexec(MAIN_MANAGER_FD, true) < 0 ||
	    fd_set_cloexec(MAIN_TCP_FD, true) < 0) {
		err_set(
		    &e, -EBADF, "berth-sshd is started by berthd, not by hand");
		return main_fail(&e);
	}
	if (transport_prepare() < 0) {
		err_set(&e, -EIO, "libcrypto cannot be used");
		return main_fail(&e);
	}
	if (confine_self(s.max_channels, &e) < 0)
		return main_fail(&e);
	return peer_serve(MAIN_TCP_FD, MAIN_MANAGER_FD, &s);
}

int
main(int argc, char **argv)
{
	int rc;

	if (argc == 2 && strcmp(argv[1], "--check-host-keys") == 0)
		return main_check_host_keys();
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("berth-sshd " BERTH_VERSION);
		return 0;
	}
	if (argc != 1) {
		fputs("usage: berth-sshd [--check-host-keys | --version]\n",
		    stderr);
		return 2;
	}
	rc = main_serve();
	/* Everything was flushed; what libssh still holds goes with us. */
	_exit(rc);
}
