/* Loading and making host keys; see host_key.h. Runs in berthd. */
#include "sshd/listener/host_key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sshd/listener/host_key_new.h"

static int
host_key_check(const struct stat *st, const char *path, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EINVAL, "host key %s: not a file", path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(e, -EPERM, "host key %s: belongs to uid %u",
		    path, st->st_uid);
	if (st->st_mode & (S_IRWXG | S_IRWXO))
		return err_set(e, -EPERM,
		    "host key %s: open to others; run chmod 600 on it", path);
	if (st->st_size >= (off_t)HOST_KEY_SIZE_MAX)
		return err_set(
		    e, -EFBIG, "host key %s: over 16 KiB long", path);
	return 0;
}

/* Reads the file behind FD straight into locked memory. */
static int
host_key_read(int fd, const char *path, char **out, struct err *e)
{
	char *pem = sodium_malloc(HOST_KEY_SIZE_MAX);
	size_t len = 0;
	ssize_t n;

	if (!pem)
		return err_set(e, -ENOMEM, "host key %s: no memory", path);
	while ((n = read(fd, pem + len, HOST_KEY_SIZE_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0) {
		int rc = -errno;

		sodium_free(pem);
		return err_sys(e, rc, "host key %s: cannot read", path);
	}
	pem[len] = '\0';
	if (strlen(pem) != len || !strstr(pem, "-----BEGIN ") ||
	    !strstr(pem, "PRIVATE KEY-----")) {
		sodium_free(pem);
		return err_set(e, -EINVAL,
		    "host key %s: not a private key in PEM form", path);
	}
	*out = pem;
	return 0;
}

static int
host_key_open(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd >= 0)
		return fd;
	if (errno != ENOENT)
		return err_sys(e, -errno, "host key %s: cannot open", path);
	rc = host_key_new(path, e);
	if (rc < 0 && rc != -EEXIST)
		return rc;
	if (rc == 0)
		log_info("host_key_made", "file", path, NULL);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 ? fd
		       : err_sys(e, -errno, "host key %s: cannot open", path);
}

static int
host_key_load(const char *path, char **out, struct err *e)
{
	autoclose int fd = host_key_open(path, e);
	struct stat st;
	int rc;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "host key %s: cannot look at", path);
	rc = host_key_check(&st, path, e);
	return rc < 0 ? rc : host_key_read(fd, path, out, e);
}

int
host_keys_load(const char *list, struct host_keys *out, struct err *e)
{
	autofree char *copy = xstrdup(list);
	struct host_keys keys = { 0 };
	char *next = copy, *path;
	int rc = 0;

	if (sodium_init() < 0)
		return err_set(e, -EIO, "libsodium does not start");
	while (rc == 0 && (path = strsep(&next, ","))) {
		path += strspn(path, " \t");
		path[strcspn(path, " \t")] = '\0';
		if (!*path)
			continue;
		if (keys.count == HOST_KEY_COUNT_MAX)
			rc = err_set(e, -E2BIG, "more than %d host keys",
			    HOST_KEY_COUNT_MAX);
		else
			rc = host_key_load(path, &keys.pems[keys.count], e);
		if (rc == 0)
			keys.paths[keys.count++] = xstrdup(path);
	}
	if (rc == 0 && keys.count == 0)
		rc = err_set(e, -EINVAL, "server.host_key names no file");
	if (rc < 0) {
		host_keys_free(&keys);
		return rc;
	}
	*out = keys;
	return 0;
}

void
host_keys_free(struct host_keys *k)
{
	for (size_t i = 0; i < k->count; i++) {
		sodium_free(k->pems[i]);
		free(k->paths[i]);
	}
	*k = (struct host_keys){ 0 };
}
