/*
 * Sockets of another network: whose they are, that whoever asked is still where
 * it was, and that a place that is gone is an error and no more.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "sandbox/dial.h"
#include "tests/unit/unit.h"

struct fixture {
	struct event_base *base;
	pid_t pid; /* of a process with a network of its own */
	uint16_t port;
	struct inside_place place;
};

struct result {
	unsigned n;
	int fd;
	char why[160];
};

static void
on_socket(int fd, const char *why, void *arg)
{
	struct result *r = arg;

	r->n++;
	r->fd = fd;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

/* Listens on the loopback of a new network and tells which port. */
static _Noreturn void
resident(int word_fd)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	uint16_t port = 0;
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (ioctl(fd, SIOCSIFFLAGS, &lo) == 0 &&
		    bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
		    listen(fd, 8) == 0 &&
		    getsockname(fd, (struct sockaddr *)&sa, &len) == 0)
			port = ntohs(sa.sin_port);
	}
	if (write(word_fd, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	for (;;)
		pause();
}

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	f->pid = fork();
	if (f->pid == 0)
		resident(p[1]);
	close(p[1]);
	assert_int_equal(
	    read(p[0], &f->port, sizeof(f->port)), sizeof(f->port));
	close(p[0]);
	f->base = event_base_new();
	f->place = (struct inside_place){
		.pidfd = -1,
		.ns_flags = CLONE_NEWUSER | CLONE_NEWNET,
		.uid = geteuid(),
	};
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	event_base_free(f->base);
	free(f);
	return 0;
}

static struct inside_place
place_of(struct fixture *f)
{
	struct inside_place p = f->place;

	p.pidfd = pidfd_open(f->pid, 0);
	assert_true(p.pidfd >= 0);
	return p;
}

static struct result
call(struct fixture *f, const char *host, uint16_t port, bool is_listener)
{
	struct result r = { .fd = -1 };
	struct sandbox_socket s = { f->base, host, port };
	struct resolve_as as = { 1000, 1000, 0 };
	struct inside_place p = place_of(f);

	assert_non_null(is_listener
			    ? dial_listen_inside(&s, &as, &p, on_socket, &r)
			    : dial_connect_inside(&s, &as, &p, on_socket, &r));
	assert_int_equal(r.n, 0);
	event_base_dispatch(f->base);
	assert_int_equal(r.n, 1);
	return r;
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

static void
need_namespaces(struct fixture *f)
{
	if (f->port == 0)
		skip();
}

static void
inside_reaches_what_listens_there_alone(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(f->port) };
	struct stat before, after;
	unsigned n_fds = count_fds();
	struct result r;
	int here;

	need_namespaces(f);
	assert_int_equal(stat("/proc/self/ns/net", &before), 0);
	r = call(f, "localhost", f->port, false);
	assert_true(r.fd >= 0);
	assert_true(fcntl(r.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(r.fd, F_GETFD) & FD_CLOEXEC);
	close(r.fd);
	assert_int_equal(stat("/proc/self/ns/net", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	here = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(here, (struct sockaddr *)&sa, sizeof(sa)), -1);
	close(here);
	r = call(f, "192.0.2.1", 80, false);
	assert_int_equal(r.fd, -ENETUNREACH);
	r = call(f, "example.invalid", 80, false);
	assert_int_equal(r.fd, -ENOENT);
	assert_non_null(strstr(r.why, "localhost"));
	assert_int_equal(count_fds(), n_fds);
}

static void
inside_listens_there_alone(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in sa = { 0 };
	socklen_t len = sizeof(sa);
	struct result r, second;
	int here;

	need_namespaces(f);
	r = call(f, "127.0.0.1", 0, true);
	assert_true(r.fd >= 0);
	assert_int_equal(getsockname(r.fd, (struct sockaddr *)&sa, &len), 0);
	second = call(f, "127.0.0.1", ntohs(sa.sin_port), true);
	assert_int_equal(second.fd, -EADDRINUSE);
	here = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(here, (struct sockaddr *)&sa, sizeof(sa)), -1);
	close(here);
	second = call(f, "127.0.0.1", ntohs(sa.sin_port), false);
	assert_true(second.fd >= 0);
	close(second.fd);
	close(r.fd);
	/* Nobody inside may bind it, whatever berthd may. */
	r = call(f, "127.0.0.1", 81, true);
	assert_int_equal(r.fd, -EACCES);
}

static void
inside_of_the_dead_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct sandbox_socket s = { f->base, "localhost", f->port };
	struct resolve_as as = { 1000, 1000, 0 };
	struct inside_place p = place_of(f);
	struct result r = { .fd = -1 };

	kill(f->pid, SIGKILL);
	waitid(P_PID, (id_t)f->pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	dial_connect_inside(&s, &as, &p, on_socket, &r);
	event_base_dispatch(f->base);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.fd, -EIO);
	assert_string_equal(r.why, "the sandbox does not run");
}

static void
inside_cancelled_is_silent_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_socket s = { f->base, "localhost", f->port };
	struct resolve_as as = { 1000, 1000, 0 };
	unsigned n_fds = count_fds();
	struct sandbox_call *calls[40];
	struct result r = { .fd = -1 };

	/* Some have begun, some have a child, some wait for one. */
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct inside_place p = place_of(f);

		calls[i] = dial_connect_inside(&s, &as, &p, on_socket, &r);
	}
	calls[0]->cancel(calls[0]);
	event_base_loop(f->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	for (size_t i = 1; i < ARRAY_LEN(calls); i++)
		calls[i]->cancel(calls[i]);
	event_base_dispatch(f->base);
	assert_int_equal(r.n, 0);
	assert_int_equal(count_fds(), n_fds);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, setup, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(inside_reaches_what_listens_there_alone),
		CASE(inside_listens_there_alone),
		CASE(inside_of_the_dead_is_an_error),
		CASE(inside_cancelled_is_silent_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
