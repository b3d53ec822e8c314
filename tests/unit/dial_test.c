/*
 * Sockets for forwarded ports: connected or listening, never waiting, and that
 * whoever gives a call up hears nothing more and loses no descriptor.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sandbox/dial.h"
#include "tests/unit/unit.h"

#define SOME_UID 65534 /* nobody's */

struct fixture {
	struct event_base *base;
	int server; /* listens on 127.0.0.1:port */
	uint16_t port;
};

struct result {
	struct event_base *base;
	unsigned n, want;
	int fd;
	char why[160];
};

static void
on_socket(int fd, const char *why, void *arg)
{
	struct result *r = arg;

	if (r->fd >= 0)
		close(r->fd);
	r->fd = fd;
	snprintf(r->why, sizeof(r->why), "%s", why);
	if (++r->n == r->want)
		event_base_loopbreak(r->base);
}

static int
listen_somewhere(int backlog, uint16_t *port_out)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	getsockname(fd, (struct sockaddr *)&sa, &len);
	*port_out = ntohs(sa.sin_port);
	return fd;
}

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->base = event_base_new();
	f->server = listen_somewhere(64, &f->port);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	close(f->server);
	event_base_free(f->base);
	free(f);
	return 0;
}

static const struct resolve_as as_we_are = { 0, 0, 0 };

/* Whoever has uid 0 here asks for somebody else. */
static struct resolve_as
somebody(void)
{
	return (struct resolve_as){ geteuid() ? geteuid() : SOME_UID,
		geteuid() ? getegid() : SOME_UID, geteuid() == 0 };
}

static struct sandbox_socket
to(struct fixture *f, const char *host, uint16_t port)
{
	return (struct sandbox_socket){ f->base, host, port };
}

static unsigned
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct result
dial(struct fixture *f, const char *host, uint16_t port)
{
	struct result r = { f->base, 0, 1, -1, "" };
	struct sandbox_socket s = to(f, host, port);
	struct resolve_as as = somebody();

	assert_non_null(dial_connect(&s, &as, on_socket, &r));
	assert_int_equal(r.n, 0);
	event_base_dispatch(f->base);
	assert_int_equal(r.n, 1);
	return r;
}

static void
dial_reaches_names_and_addresses(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "localhost",
		"LOCALHOST", "127.1" };
	struct fixture *f = *state;
	unsigned before = count_fds();

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct result r = dial(f, hosts[i], f->port);
		int flags;

		assert_true(r.fd >= 0);
		flags = fcntl(r.fd, F_GETFL);
		assert_true(flags & O_NONBLOCK);
		assert_true(fcntl(r.fd, F_GETFD) & FD_CLOEXEC);
		close(r.fd);
	}
	assert_int_equal(count_fds(), before);
	/* Nobody is left to reap. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Rules of the kernel for the sandbox's user must hold for its forwards. */
static void
dial_socket_belongs_to_the_user(void **state)
{
	struct fixture *f = *state;
	struct result r = dial(f, "127.0.0.1", f->port);
	struct stat st;

	assert_true(r.fd >= 0);
	assert_int_equal(fstat(r.fd, &st), 0);
	assert_int_equal(st.st_uid, somebody().uid);
	close(r.fd);
	/* And we are who we were. */
	r.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(fstat(r.fd, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	close(r.fd);
}

static void
dial_says_why_it_failed(void **state)
{
	struct fixture *f = *state;
	uint16_t port;
	struct result r;
	int fd = listen_somewhere(1, &port);

	close(fd);
	r = dial(f, "127.0.0.1", port);
	assert_int_equal(r.fd, -ECONNREFUSED);
	assert_string_equal(r.why, "Connection refused");
	r = dial(f, "localhost", port);
	assert_true(r.fd < 0);
	r = dial(f, "no-such-host.invalid", port);
	assert_int_equal(r.fd, -ENOENT);
	assert_non_null(strstr(r.why, "ame")); /* of the resolver's sentences */
}

static void
dial_many_names_take_turns(void **state)
{
	struct fixture *f = *state;
	struct result r = { f->base, 0, 50, -1, "" };
	struct sandbox_socket s = to(f, "127.1", f->port);
	unsigned before = count_fds();

	for (unsigned i = 0; i < r.want; i++)
		dial_connect(&s, &as_we_are, on_socket, &r);
	event_base_dispatch(f->base);
	assert_int_equal(r.n, 50);
	assert_true(r.fd >= 0);
	close(r.fd);
	assert_int_equal(count_fds(), before);
}

static void
dial_cancelled_is_silent_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct result r = { f->base, 0, 1, -1, "" };
	struct sandbox_call *calls[40];
	unsigned before = count_fds();
	int64_t start = clock_mono_ms();

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct sandbox_socket s =
		    to(f, i % 2 ? "127.1" : "localhost", f->port);

		calls[i] = dial_connect(&s, &as_we_are, on_socket, &r);
	}
	/* Children of sixteen run, the other names wait. */
	for (size_t i = 1; i < ARRAY_LEN(calls); i += 2)
		calls[i]->cancel(calls[i]);
	r.want = 1000;
	event_base_dispatch(f->base);
	if (r.fd >= 0)
		close(r.fd);
	assert_int_equal(r.n, ARRAY_LEN(calls) / 2);
	assert_int_equal(count_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_true(clock_mono_ms() - start < 5000);
}

static void
dial_waits_ten_seconds_for_a_silent_target(void **state)
{
	struct fixture *f = *state;
	uint16_t port;
	int full = listen_somewhere(0, &port);
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port) };
	int plugs[4];
	int64_t start;
	struct result r;

	for (size_t i = 0; i < ARRAY_LEN(plugs); i++) {
		plugs[i] = socket(
		    AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(plugs[i], (struct sockaddr *)&sa, sizeof(sa));
	}
	usleep(100000);
	start = clock_mono_ms();
	r = dial(f, "127.0.0.1", port);
	assert_int_equal(r.fd, -ETIMEDOUT);
	assert_in_range(clock_mono_ms() - start, SANDBOX_CALL_MS - 100,
	    SANDBOX_CALL_MS + 5000);
	for (size_t i = 0; i < ARRAY_LEN(plugs); i++)
		close(plugs[i]);
	close(full);
}

static struct result
offer(struct fixture *f, const char *host, uint16_t port)
{
	struct result r = { f->base, 0, 1, -1, "" };
	struct sandbox_socket s = to(f, host, port);
	struct resolve_as as = somebody();

	assert_non_null(dial_listen(&s, &as, on_socket, &r));
	assert_int_equal(r.n, 0);
	event_base_dispatch(f->base);
	assert_int_equal(r.n, 1);
	return r;
}

static void
dial_listens_and_says_why_not(void **state)
{
	struct fixture *f = *state;
	struct result r = offer(f, "127.0.0.1", 0), again;
	struct sockaddr_in sa = { 0 };
	socklen_t len = sizeof(sa);

	assert_true(r.fd >= 0);
	assert_int_equal(getsockname(r.fd, (struct sockaddr *)&sa, &len), 0);
	again = offer(f, "127.0.0.1", ntohs(sa.sin_port));
	assert_int_equal(again.fd, -EADDRINUSE);
	close(r.fd);
	again = offer(f, "127.0.0.1", ntohs(sa.sin_port));
	assert_true(again.fd >= 0);
	close(again.fd);
	r = offer(f, "not-an-address", 0);
	assert_int_equal(r.fd, -EADDRNOTAVAIL);
	/* Whoever berthd is, the sandbox's user could not have it. */
	r = offer(f, "127.0.0.1", 1);
	assert_int_equal(r.fd, -EACCES);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(dial_reaches_names_and_addresses),
		CASE(dial_socket_belongs_to_the_user),
		CASE(dial_says_why_it_failed),
		CASE(dial_many_names_take_turns),
		CASE(dial_cancelled_is_silent_and_leaves_nothing),
		CASE(dial_waits_ten_seconds_for_a_silent_target),
		CASE(dial_listens_and_says_why_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
