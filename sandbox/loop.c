/* Loop devices; see loop.h. */
#include "sandbox/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define LOOP_DEVICES_MAX 1024
#define LOOP_TRIES_MAX   16 /* others want a free device as well */

static int
loop_open(unsigned number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/loop%u", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The device that has the image already, for another mount namespace or a
 * sandbox that still ends: two of them would spoil the file system.
 */
static int
loop_find(int image_fd, unsigned *number_out)
{
	struct stat st;

	if (fstat(image_fd, &st) < 0)
		return -errno;
	for (unsigned i = 0; i < LOOP_DEVICES_MAX; i++) {
		struct loop_info64 info = { .lo_number = 0 };
		autoclose int fd = -1;
		char used[64];

		snprintf(used, sizeof(used),
		    "/sys/block/loop%u/loop/backing_file", i);
		if (access(used, F_OK) < 0)
			continue;
		fd = loop_open(i);
		if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0 ||
		    info.lo_device != st.st_dev || info.lo_inode != st.st_ino)
			continue;
		*number_out = i;
		return take_fd(&fd);
	}
	return -ENOENT;
}

/* A device for it, which goes with its last mount. */
static int
loop_take(int image_fd, unsigned *number_out)
{
	autoclose int control_fd =
	    open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)image_fd,
		.info = { .lo_flags = LO_FLAGS_AUTOCLEAR },
	};

	if (control_fd < 0)
		return -errno;
	for (int i = 0; i < LOOP_TRIES_MAX; i++) {
		int number = ioctl(control_fd, LOOP_CTL_GET_FREE);
		autoclose int fd = -1;

		if (number < 0)
			return -errno;
		fd = loop_open((unsigned)number);
		if (fd < 0)
			return fd;
		*number_out = (unsigned)number;
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return take_fd(&fd);
		if (errno != EBUSY)
			return -errno;
	}
	return -EBUSY;
}

int
loop_attach(int image_fd, unsigned *number_out)
{
	int fd = loop_find(image_fd, number_out);

	return fd < 0 ? loop_take(image_fd, number_out) : fd;
}

bool
loop_is_attached(int image_fd)
{
	unsigned number;
	autoclose int fd = loop_find(image_fd, &number);

	return fd != -ENOENT;
}

int
loop_resized(int loop_fd)
{
	return ioctl(loop_fd, LOOP_SET_CAPACITY, 0) < 0 ? -errno : 0;
}
