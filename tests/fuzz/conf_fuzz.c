/*
 * The configuration: a file and overrides of any bytes are refused with a
 * sentence that says where, or give values that are shown as a file which gives
 * the same values again. Input: the file, then -o texts, separated by NUL.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "conf/conf.h"
#include "tests/fuzz/fuzz.h"

#define CONF_OVERRIDES 8

/* A file of N bytes at a path of PATH_OUT; returns its descriptor. */
static int
conf_file(const void *p, size_t n, char path_out[64])
{
	int fd = memfd_create("conf", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && fd_write_all(fd, p, n) == 0);
	snprintf(path_out, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static char *
conf_shown(const struct conf *c)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	FUZZ_CHECK(out);
	conf_show(c, out);
	fclose(out);
	return text;
}

/* What --show-config prints is itself a configuration. */
static void
conf_check_again(const struct conf *c)
{
	char *shown = conf_shown(c), *again, path[64];
	int fd = conf_file(shown, strlen(shown), path);
	struct conf *c2 = NULL;
	struct err e = { 0 };
	int rc = conf_load(path, NULL, 0, &c2, &e);

	close(fd);
	/* A relative path may have become more than inih reads in a line. */
	if (rc < 0 && strstr(e.msg, "the line is too long")) {
		free(shown);
		return;
	}
	FUZZ_CHECK(rc == 0);
	again = conf_shown(c2);
	FUZZ_CHECK(strcmp(shown, again) == 0);
	conf_free(c2);
	free(shown);
	free(again);
}

/* Strings are never NULL; numbers are such as others rely on. */
static void
conf_check_values(const struct conf *c)
{
	FUZZ_CHECK(c->server.listen[0] && c->server.state_dir[0] == '/');
	FUZZ_CHECK(c->server.runtime_dir[0] == '/');
	FUZZ_CHECK(c->server.host_key[0] == '/');
	FUZZ_CHECK(c->server.admin_group && c->session.env_accept);
	FUZZ_CHECK(c->access.authorized_keys[0] == '/');
	FUZZ_CHECK(c->access.default_role[0] && c->sandbox.dir[0] == '/');
	FUZZ_CHECK(c->session.shell[0] == '/' && c->recording.dir[0] == '/');
	FUZZ_CHECK(c->session.detach_key.n <= 2);
	FUZZ_CHECK(c->session.detach_key.n == 0 ||
		   c->session.detach_key.keys[0].is_ctrl);
	FUZZ_CHECK(c->session.answer.name[0]);
	FUZZ_CHECK(c->session.answer.foreground <= 0xffffff &&
		   c->session.answer.background <= 0xffffff &&
		   c->session.answer.cursor <= 0xffffff);
	FUZZ_CHECK(c->session.resize != CONF_RESIZE_FIXED ||
		   (c->session.fixed_cols && c->session.fixed_rows));
}

/* After the first NUL: the overrides. */
static unsigned
conf_overrides(struct fuzz_input *in, char *out[CONF_OVERRIDES])
{
	unsigned n = 0;

	while (in->n && n < CONF_OVERRIDES)
		out[n++] = fuzz_str(in);
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	autofree char *text = fuzz_str(&in);
	char *overrides[CONF_OVERRIDES], path[64];
	unsigned n_overrides = conf_overrides(&in, overrides);
	int fd = conf_file(text, strlen(text), path), rc;
	struct conf *c = NULL;
	struct err e = { 0 };

	rc = conf_load(
	    path, (const char *const *)overrides, n_overrides, &c, &e);
	FUZZ_CHECK((rc == 0) == (c != NULL));
	if (rc == 0) {
		conf_check_values(c);
		conf_check_again(c);
		conf_free(c);
	} else {
		FUZZ_CHECK(rc < 0 && e.code == rc && e.msg[0]);
		FUZZ_CHECK(strncmp(e.msg, path, strlen(path)) == 0 ||
			   strncmp(e.msg, "-o ", 3) == 0 || strchr(e.msg, '.'));
	}
	for (unsigned i = 0; i < n_overrides; i++)
		free(overrides[i]);
	close(fd);
	return 0;
}
