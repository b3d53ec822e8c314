/*
 * Copies of workspaces that are images; see stage.h. A new image is filled while
 * it is mounted nowhere, so whoever is killed leaves nothing but its file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/provider.h"
#include "sandbox/stage.h"
#include "sandbox/workspace.h"
#include "sandbox/workspace_image.h"

/* True if the workspace is a mount, whatever of. */
static bool
stage_is_mounted(int dir_fd, const struct sandbox_spec *s)
{
	struct stat dir, st;

	return fstat(dir_fd, &dir) == 0 && workspace_stat(s, &st) == 0 &&
	       dir.st_dev != st.st_dev;
}

int
stage_image_pack(const struct sandbox_spec *s, int out_fd,
    struct sandbox_copied *out, struct err *e)
{
	autoclose int dir_fd = -1, image_fd = -1, fd = -1;
	int rc = sandbox_check_name(s->name, e);
	uint64_t bytes;

	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	image_fd = workspace_image_open(s, dir_fd, &bytes);
	if (image_fd < 0 || stage_is_mounted(dir_fd, s))
		return stage_pack(s, out_fd, out, e);
	if (!sandbox_archive)
		return err_set(e, -ENOSYS, "this program knows no archives");
	fd = workspace_image_root(image_fd);
	if (fd < 0)
		return err_sys(e, fd, "cannot mount the workspace %s/.%s.img",
		    s->dir, s->name);
	return sandbox_archive->pack(fd, out_fd, out, e);
}

/* Into the image IMAGE_FD, which is empty, of BYTES. */
static int
stage_image_fill(const struct sandbox_spec *s, int root_fd, int in_fd,
    uint64_t bytes, struct sandbox_copied *out, struct err *e)
{
	struct archive_owner owner = { s->uid, s->gid, 0 };
	int rc = sandbox_archive->unpack(root_fd, in_fd, &owner, out, e);

	if (rc == 0 && syncfs(root_fd) < 0)
		rc = err_sys(e, -errno, "cannot write the new workspace");
	if (rc == -ENOSPC)
		return err_set(e, rc,
		    "its files need more than the %" PRIu64
		    " MiB that the workspace may hold (workspace_size)",
		    bytes >> 20);
	return rc;
}

/* A new image of BYTES beside the workspace, in *ROOT_OUT its top directory. */
static int
stage_image_make(const struct sandbox_spec *s, int dir_fd, const char *name,
    uint64_t bytes, int *root_out)
{
	autoclose int fd = workspace_image_make(s, dir_fd, name, bytes);
	int root_fd = fd < 0 ? fd : workspace_image_root(fd);

	if (root_fd < 0) {
		if (fd >= 0)
			unlinkat(dir_fd, name, 0);
		return root_fd;
	}
	*root_out = root_fd;
	return take_fd(&fd);
}

int
stage_image_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e)
{
	autoclose int dir_fd = -1, old_fd = -1, fd = -1, root_fd = -1;
	int rc = sandbox_check_name(s->name, e);
	char name[STAGE_NAME_SIZE];
	uint64_t bytes = 0;

	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	old_fd = workspace_image_open(s, dir_fd, &bytes);
	if (s->workspace_bytes)
		bytes = s->workspace_bytes;
	if (in_fd < 0 || !bytes || geteuid() != 0)
		return stage_unpack(s, in_fd, out, e);
	if (!sandbox_archive)
		return err_set(e, -ENOSYS, "this program knows no archives");
	stage_name(s, name);
	rc = stage_clear(dir_fd, name, e);
	if (rc < 0)
		return rc;
	fd = stage_image_make(s, dir_fd, name, bytes, &root_fd);
	if (fd < 0 && old_fd >= 0)
		return err_sys(e, fd, "cannot make a workspace of a size");
	if (fd < 0) {
		log_warn(
		    "no_workspace_size", "why", strerrordesc_np(-fd), NULL);
		return stage_unpack(s, in_fd, out, e);
	}
	rc = stage_image_fill(s, root_fd, in_fd, bytes, out, e);
	if (rc < 0)
		unlinkat(dir_fd, name, 0);
	return rc;
}
