/* Giving up power; see privilege.h. */
#include "base/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

int
privilege_find(const char *name, struct privilege_account *out)
{
	struct passwd entry, *pw;
	char text[4096];

	if (getpwnam_r(name, &entry, text, sizeof(text), &pw) != 0 || !pw)
		return -ENOENT;
	if (pw->pw_uid == 0)
		return -ENOENT;
	*out = (struct privilege_account){ pw->pw_uid, pw->pw_gid };
	return 0;
}

int
privilege_become(const struct privilege_account *a)
{
	if (setgroups(0, NULL) < 0 || setresgid(a->gid, a->gid, a->gid) < 0 ||
	    setresuid(a->uid, a->uid, a->uid) < 0)
		return -errno;
	return 0;
}

/* MASK of the first 32 capabilities are the only ones from now on. */
static int
privilege_keep_caps(uint32_t mask)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = mask, .permitted = mask },
	};

	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

int
privilege_drop_look(void)
{
	return privilege_keep_caps(CAP_TO_MASK(CAP_KILL));
}

int
privilege_become_signaller(const struct privilege_account *a, bool may_look)
{
	int rc;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	rc = privilege_become(a);
	if (rc < 0)
		return rc;
	rc = privilege_keep_caps(CAP_TO_MASK(CAP_KILL) |
				 (may_look ? CAP_TO_MASK(CAP_SYS_PTRACE) : 0));
	if (rc < 0)
		return rc;
	return prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 ? -errno : 0;
}

bool
privilege_has_all_gids(void)
{
	static const char all[] = "0 0 4294967295";
	char text[128] = "", *word, *rest = text;
	autoclose int fd = open("/proc/self/gid_map", O_RDONLY | O_CLOEXEC);
	char found[sizeof(text)] = "";
	size_t n = 0;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return false;
	while ((word = strsep(&rest, " \n"))) {
		if (*word)
			n += (size_t)snprintf(found + n, sizeof(found) - n,
			    "%s%s", n ? " " : "", word);
	}
	return strcmp(found, all) == 0;
}

int
privilege_lock(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* A change of uid took it away; the leak check traces its process. */
	return prctl(PR_SET_DUMPABLE, !BERTH_CONFINED, 0, 0, 0) < 0 ? -errno
								    : 0;
}

int
privilege_leave_files(struct err *e)
{
	/* The first is a file system in memory nearly everywhere. */
	static const char *const places[] = { "/run", "/dev/shm", "/tmp" };
	char path[64] = "";

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(
		    path, sizeof(path), "%s/berth-empty-XXXXXX", places[i]);
		if (mkdtemp(path))
			break;
		*path = '\0';
	}
	if (!*path)
		return err_sys(e, -errno, "cannot make an empty directory");
	if (chdir(path) < 0 || rmdir(path) < 0 || chroot(".") < 0)
		return err_sys(e, -errno, "cannot make %s the root", path);
	/* Where it stands is the root now: there is nothing above it. */
	return 0;
}
