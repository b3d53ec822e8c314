/*
 * The verb sandbox cp. A child of ours keeps the link to the process in the
 * sandbox, this process packs or unpacks the stream, so that both may block.
 * Exit code 0 only when everything asked for is there.
 */
#include "cli/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/copy_link.h"

#define COPY_SHOWN_TAIL 30
#define COPY_SHOW_MS    100
#define COPY_NAME_MAX   64
#define COPY_PATH_MAX   4096
#define COPY_SHOWN_MAX  200

static volatile sig_atomic_t copy_signal;

static void
copy_on_signal(int number)
{
	copy_signal = number;
}

bool
copy_is_stopped(void)
{
	return copy_signal != 0;
}

/* ---- what people see ------------------------------------------------------- */

static void
copy_format(uint64_t bytes, char *out, size_t size)
{
	static const char units[] = "kMGT";
	double v = (double)bytes / 1024;
	size_t i = 0;

	for (; v >= 1024 && i + 1 < strlen(units); i++)
		v /= 1024;
	snprintf(out, size, "%.1f%c", v, units[i]);
}

/* " 45% [#########           ] ", or "" where nobody knows how much it is. */
static void
copy_bar(const struct copy *c, bool is_last, char *out, size_t size)
{
	static const char full[] = "####################";
	int width = (int)sizeof(full) - 1, n;
	unsigned percent;

	*out = '\0';
	if (!c->total)
		return;
	/* It may have been a guess. */
	percent = c->done < c->total ? (unsigned)(c->done * 100 / c->total)
		  : is_last          ? 100
				     : 99;
	n = width * (int)percent / 100;
	snprintf(
	    out, size, "%3u%% [%.*s%*s] ", percent, n, full, width - n, "");
}

static void
copy_show(struct copy *c, bool is_last)
{
	int64_t now = clock_mono_ms(), ms = now - c->started_ms;
	char done[32], rate[32], bar[48];

	if (!c->shows_progress ||
	    (!is_last && now - c->shown_ms < COPY_SHOW_MS))
		return;
	c->shown_ms = now;
	copy_format(c->done, done, sizeof(done));
	copy_format(
	    ms > 0 ? c->done * 1000 / (uint64_t)ms : 0, rate, sizeof(rate));
	copy_bar(c, is_last, bar, sizeof(bar));
	/* One line of any terminal that is wide enough for it. */
	fprintf(stderr, "\r\033[K%s%s %s/s %.*s%s", bar, done, rate,
	    COPY_SHOWN_TAIL, c->current, is_last ? "\n" : "");
}

void
copy_begins(struct copy *c, const char *path)
{
	size_t n = strlen(path);
	const char *tail =
	    n > COPY_SHOWN_TAIL ? path + n - COPY_SHOWN_TAIL : path;

	text_escape(tail, strlen(tail), c->current, sizeof(c->current));
	copy_show(c, false);
}

void
copy_advance(struct copy *c, uint64_t n)
{
	c->done += n;
	copy_show(c, false);
}

void
copy_skip(struct copy *c, const char *path, const char *why)
{
	char shown[COPY_SHOWN_MAX];

	text_escape(path, strlen(path), shown, sizeof(shown));
	if (c->shows_progress)
		fputs("\r\033[K", stderr);
	fprintf(stderr, "berth: %s: %s\n", shown, why);
	c->n_skipped++;
}

int
copy_write(struct copy *c, const void *p, size_t n, struct err *e)
{
	const uint8_t *at = p;

	while (n) {
		ssize_t k = copy_is_stopped() ? -1 : write(c->fd, at, n);

		if (copy_is_stopped())
			return -EINTR;
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_sys(e, -errno, "the sandbox takes no more");
		at += k;
		n -= (size_t)k;
	}
	return 0;
}

/* ---- arguments ------------------------------------------------------------- */

/* One side of the copy; a sandbox where `sandbox` is not "". */
struct copy_side {
	char sandbox[COPY_NAME_MAX];
	const char *path;
};

/* "NAME:PATH" is of a sandbox; whoever means a file with a colon says ./ */
static void
copy_parse(const char *arg, struct copy_side *out)
{
	size_t n = strcspn(arg, ":/");

	*out = (struct copy_side){ .path = arg };
	if (arg[n] != ':' || n == 0 || n >= sizeof(out->sandbox) ||
	    arg[0] == '.')
		return;
	memcpy(out->sandbox, arg, n);
	out->sandbox[n] = '\0';
	out->path = arg + n + 1;
}

/* The last part of PATH, or "." where it names what is in a directory. */
static void
copy_base(const char *path, char *out, size_t size)
{
	size_t n = strlen(path), from;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/'; from--)
		;
	snprintf(out, size, "%.*s", (int)(n - from), path + from);
	if (!*out || strcmp(out, "..") == 0)
		snprintf(out, size, ".");
}

static bool
copy_ends_in_slash(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && path[n - 1] == '/';
}

/* ---- into the sandbox ------------------------------------------------------ */

/* Everything that is read from FD goes on, as it is. */
static int
copy_through(struct copy *c, int from_fd, struct err *e)
{
	static uint8_t space[64 << 10];
	ssize_t n;

	while ((n = read(from_fd, space, sizeof(space))) != 0) {
		int rc;

		if (copy_is_stopped())
			return -EINTR;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, -errno, "cannot read the stream");
		rc = copy_write(c, space, (size_t)n, e);
		if (rc < 0)
			return rc;
		copy_advance(c, (uint64_t)n);
	}
	return 0;
}

/*
 * Which name the top of the archive has, by docker cp's rules: below a
 * directory that is there its own, else the one that was asked for.
 */
static int
copy_in_top(const char *src, const char *dst, char kind, bool is_dir, char *out,
    size_t size, struct err *e)
{
	copy_base(src, out, size);
	if (kind == 'f' && is_dir)
		return err_set(e, -ENOTDIR, "%s is no directory", dst);
	if (kind == 'n' && !is_dir && copy_ends_in_slash(dst))
		return err_set(e, -ENOENT, "there is no directory %s", dst);
	if (kind != 'd')
		copy_base(dst, out, size);
	return 0;
}

static int
copy_in(struct copy *c, struct copy_link *l, const char *src, const char *dst,
    struct err *e)
{
	bool is_stream = strcmp(src, "-") == 0;
	char top[COPY_PATH_MAX], base[COPY_PATH_MAX], kind;
	struct stat st = { 0 };
	int64_t total;
	int rc = copy_link_begin(l, &kind, &total, e);

	if (rc < 0)
		return rc;
	c->fd = l->to_fd;
	if (is_stream && kind != 'd')
		return err_set(e, -ENOTDIR, "%s is no directory", dst);
	if (is_stream)
		return copy_through(c, STDIN_FILENO, e);
	copy_base(src, base, sizeof(base));
	/* A link is copied as one, but not where what is in it is meant. */
	if (fstatat(AT_FDCWD, src, &st,
		strcmp(base, ".") == 0 ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, -errno, "%s", src);
	rc = copy_in_top(
	    src, dst, kind, S_ISDIR(st.st_mode), top, sizeof(top), e);
	return rc < 0 ? rc : copy_pack(c, src, top, e);
}

/* ---- out of it ------------------------------------------------------------- */

/* Opens the directory that DST is put into, and says as what; NULL: its own. */
static int
copy_out_target(const char *dst, const char *top, char kind, int *dir_fd_out,
    char name[COPY_PATH_MAX], struct err *e)
{
	bool is_dir = kind == 'd';
	autofree char *dir = NULL;
	const char *slash;
	struct stat st;
	size_t n;

	if (stat(dst, &st) == 0 && S_ISDIR(st.st_mode)) {
		*dir_fd_out = open(dst, O_PATH | O_DIRECTORY | O_CLOEXEC);
		snprintf(name, COPY_PATH_MAX, "%s",
		    strcmp(top, ".") == 0 ? "" : top);
		return *dir_fd_out < 0 ? err_sys(e, -errno, "%s", dst) : 0;
	}
	if (lstat(dst, &st) == 0 && is_dir)
		return err_set(e, -ENOTDIR, "%s is no directory", dst);
	if (!is_dir && copy_ends_in_slash(dst))
		return err_set(e, -ENOENT, "there is no directory %s", dst);
	copy_base(dst, name, COPY_PATH_MAX);
	for (n = strlen(dst); n > 1 && dst[n - 1] == '/'; n--)
		;
	dir = xstrndup(dst, n);
	slash = strrchr(dir, '/');
	if (slash)
		dir[slash == dir ? 1 : slash - dir] = '\0';
	*dir_fd_out = open(slash ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *dir_fd_out < 0 ? err_sys(e, -errno, "%s", slash ? dir : ".")
			       : 0;
}

static int
copy_out(struct copy *c, struct copy_link *l, const char *src, const char *dst,
    struct err *e)
{
	char top[COPY_PATH_MAX], name[COPY_PATH_MAX] = "", kind;
	autoclose int dir_fd = -1;
	int64_t total;
	int rc = copy_link_begin(l, &kind, &total, e);

	if (rc < 0)
		return rc;
	c->total = total > 0 ? (uint64_t)total : 0;
	if (strcmp(dst, "-") == 0) {
		c->fd = STDOUT_FILENO;
		return copy_through(c, l->from_fd, e);
	}
	c->fd = l->from_fd;
	copy_base(*src ? src : ".", top, sizeof(top));
	rc = copy_out_target(dst, top, kind, &dir_fd, name, e);
	return rc < 0 ? rc
		      : copy_unpack(c, dir_fd, top, *name ? name : NULL, e);
}

/* ---- the verb -------------------------------------------------------------- */

/* No SA_RESTART: whoever waits hears of it. */
static void
copy_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction a = { .sa_handler = copy_on_signal };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &a, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* What is said at the end, and the exit code of all. */
static int
copy_report(struct copy *c, struct copy_link *l, int rc, const struct err *e)
{
	int code = copy_link_end(l, rc < 0), number = copy_signal;

	if (rc == 0 && code == 0 && c->shows_progress)
		copy_show(c, true);
	else if (c->shows_progress)
		fputs("\r\033[K", stderr);
	if (number) {
		cli_fail(128 + number,
		    "interrupted: %u files and directories were copied%s%s",
		    c->n_files, *c->current ? ", not all of " : "", c->current);
		return 128 + number;
	}
	if (rc < 0 && rc != -EPIPE)
		return cli_fail(CLI_FAILED, "%s", e->msg);
	/* What the other side says is the reason of all else. */
	if (l->why[0] && (code != 0 || rc < 0))
		return cli_fail(CLI_FAILED, "%s", l->why);
	if (rc < 0 && code == 0)
		return cli_fail(CLI_FAILED, "%s", e->msg);
	if (code != 0)
		return cli_fail(CLI_FAILED,
		    code == CLI_NO_PROGRAM
			? "there is no tar in the sandbox"
			: "the tar in the sandbox ended with code %d",
		    code);
	if (c->is_json)
		printf("{\"files\": %u, \"bytes\": %" PRIu64
		       ", \"skipped\": %u}\n",
		    c->n_files, c->done, c->n_skipped);
	return c->n_skipped ? CLI_FAILED : CLI_DONE;
}

static int
copy_do(struct cli *c, const struct copy_side *src, const struct copy_side *dst,
    bool is_json)
{
	bool is_in = *dst->sandbox != '\0';
	const struct copy_side *there = is_in ? dst : src;
	struct copy job = {
		.is_json = is_json,
		.shows_progress =
		    isatty(STDERR_FILENO) &&
		    strcmp(is_in ? src->path : dst->path, "-") != 0,
	};
	struct copy_link l;
	struct err e = { 0 };
	json_t *answer = NULL, *request;
	int fd = -1, rc, code;

	copy_catch_signals();
	if (is_in && job.shows_progress)
		job.total = copy_count(src->path);
	request = json_pack("{s:s, s:s, s:s, s:s, s:b}", "verb", "sandbox_cp",
	    "sandbox", there->sandbox, "path", there->path, "direction",
	    is_in ? "in" : "out", "total", job.shows_progress && !is_in);
	if (!request)
		return cli_usage(c, "an argument is not valid UTF-8");
	code = client_ask_once(c->socket, request, &answer, &fd, &e);
	if (code >= CLI_OWN_FAILURE)
		return cli_fail(CLI_FAILED, "there is no shell in the sandbox");
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	json_decref(answer);
	if (copy_link_start(&l, fd, &e) < 0)
		return cli_fail(CLI_FAILED, "%s", e.msg);
	job.started_ms = clock_mono_ms();
	rc = is_in ? copy_in(&job, &l, src->path, dst->path, &e)
		   : copy_out(&job, &l, src->path, dst->path, &e);
	return copy_report(&job, &l, rc, &e);
}

int
verb_sandbox_cp(struct cli *c, int argc, char **argv)
{
	bool is_recursive = false, is_json = false;
	const struct arg_option options[] = {
		/* it always is; who comes from cp types it */
		{ 'r', ARG_FLAG, "recursive", &is_recursive },
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct copy_side src, dst;
	struct err e = { 0 };

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 2)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "from where to where?");
	copy_parse(argv[0], &src);
	copy_parse(argv[1], &dst);
	if (!*src.sandbox == !*dst.sandbox)
		return cli_usage(c, "one of the two has to be SANDBOX:PATH");
	if (is_json && strcmp(dst.path, "-") == 0)
		return cli_usage(c, "the output is the tar: no --json");
	return copy_do(c, &src, &dst, is_json);
}
