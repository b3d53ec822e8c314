/*
 * The directory for settings of a native sandbox: a few files of its own and
 * what of the host's is in the list. A list, because what else lies there is
 * nobody's business. In the first process, before anything else runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/native.h"
#include "sandbox/provider.h"

/* What programs of a Debian expect to read; what is absent is left out. */
static const char *const etc_shared[] = {
	"alternatives",
	"bash.bashrc",
	"bash_completion",
	"bash_completion.d",
	"ca-certificates",
	"ca-certificates.conf",
	"debian_version",
	"default/locale",
	"dpkg",
	"emacs",
	"fonts",
	"gitconfig",
	"gai.conf",
	"host.conf",
	"inputrc",
	"issue",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"locale.conf",
	"locale.gen",
	"login.defs",
	"magic",
	"magic.mime",
	"mailcap",
	"mime.types",
	"nanorc",
	"networks",
	"os-release",
	"perl",
	"pki",
	"protocols",
	"python3",
	"python3.11",
	"python3.13",
	"rpc",
	"screenrc",
	"services",
	"shells",
	"skel",
	"ssl",
	"terminfo",
	"timezone",
	"tmux.conf",
	"vim",
	"wgetrc",
	"xdg",
	"zsh",
};

/*
 * The host's would give login shells another PATH than all other processes of
 * the sandbox have.
 */
static const char etc_profile[] =
    "if [ \"${PS1-}\" ] && [ \"${BASH-}\" ] && [ \"$BASH\" != /bin/sh ] &&\n"
    "	[ -r /etc/bash.bashrc ]; then\n"
    "	. /etc/bash.bashrc\n"
    "fi\n";

/* Only with the host's network do its name servers mean anything. */
static const char etc_resolver[] = "resolv.conf";

#define ETC_ATTR (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static int
etc_write(const char *name, const char *text, struct err *e)
{
	autofree char *path = xasprintf("etc/%s", name);
	autoclose int fd = open(
	    path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	return rc < 0 ? err_sys(e, rc, "cannot write /etc/%s", name) : 0;
}

/* A link stays a link, as long as what it says can be meant here too. */
static int
etc_share(const char *from, const char *name, struct err *e)
{
	autofree char *source = xasprintf("%s/%s", from, name);
	autofree char *target = xasprintf("etc/%s", name);
	struct stat st;
	int rc;

	if (lstat(source, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		rc = native_copy_link(source, target);
		return rc < 0 ? err_sys(e, rc, "cannot link /etc/%s", name) : 0;
	}
	if (S_ISDIR(st.st_mode)) {
		rc = mkdir(target, 0755) < 0 ? -errno : 0;
	} else {
		autoclose int fd =
		    open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		rc = fd < 0 ? -errno : 0;
	}
	if (rc == 0)
		rc = native_bind(source, target, ETC_ATTR);
	return rc < 0 ? err_sys(e, rc, "cannot bind /etc/%s", name) : 0;
}

int
native_etc_name(const struct sandbox_spec *s, struct err *e)
{
	autofree char *hosts = xasprintf("127.0.0.1\tlocalhost %s\n"
					 "::1\tlocalhost %s\n",
	    s->name, s->name);
	autofree char *hostname = xasprintf("%s\n", s->name);
	int rc = etc_write("hosts", hosts, e);

	return rc < 0 ? rc : etc_write("hostname", hostname, e);
}

/* The time zone is a link into /usr, or a copy. */
static int
etc_files(const struct sandbox_spec *s, struct err *e)
{
	autofree char *passwd =
	    xasprintf("root:x:0:0:root:/root:/usr/sbin/nologin\n"
		      "%s:x:%u:%u:%s:" NATIVE_WORKSPACE ":%s\n"
		      "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		s->user, s->uid, s->gid, s->user, s->shell);
	autofree char *group = xasprintf("root:x:0:\n%s:x:%u:\n"
					 "nogroup:x:65534:\n",
	    s->user, s->gid);
	int rc = etc_write("passwd", passwd, e);

	if (rc == 0)
		rc = etc_write("group", group, e);
	if (rc == 0)
		rc = native_etc_name(s, e);
	if (rc == 0)
		rc = etc_write("profile", etc_profile, e);
	if (rc == 0)
		rc = etc_write("nsswitch.conf",
		    "passwd: files\ngroup: files\nshadow: files\n"
		    "hosts: files dns\nnetworks: files\nprotocols: files\n"
		    "services: files\n",
		    e);
	return rc;
}

int
native_etc(const struct sandbox_spec *s, const char *from, struct err *e)
{
	int rc = etc_files(s, e);

	if (mkdir("etc/default", 0755) < 0)
		return err_sys(e, -errno, "cannot make /etc/default");
	for (size_t i = 0; i < ARRAY_LEN(etc_shared) && rc == 0; i++)
		rc = etc_share(from, etc_shared[i], e);
	if (rc == 0)
		rc = etc_share(from, "localtime", e);
	if (rc == 0 && s->network == SANDBOX_NET_HOST)
		rc = etc_share(from, etc_resolver, e);
	if (rc == 0 && symlink("/proc/self/mounts", "etc/mtab") < 0)
		rc = err_sys(e, -errno, "cannot link /etc/mtab");
	return rc;
}
