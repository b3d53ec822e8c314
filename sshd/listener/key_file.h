/*
 * One authorized_keys file in memory, read again whenever it changed on disk.
 * Lives in berthd. A file that is missing, too open or unreadable has no keys;
 * a bad line costs only itself. Says so in the log, once per change.
 */
#ifndef SSHD_LISTENER_KEY_FILE_H
#define SSHD_LISTENER_KEY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

#define KEY_FILE_MAX (4U << 20)

/* What a file looked like when it was read. */
struct key_file_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	int64_t mtime_ns, ctime_ns;
	mode_t mode;
	uid_t uid;
};

struct key_file {
	struct list node; /* for whoever keeps it */
	char *path;
	struct list keys; /* struct key_line, in the order of the file */
	struct key_file_stamp stamp;
	bool is_loaded;
	bool is_fresh; /* was read so soon that a change may not show */
	bool is_quiet; /* what it says is already in the log */
	int last_rc; /* of the last look at it, so that news are logged once */
};

/* A file that is not read yet; the caller frees with key_file_free(). */
struct key_file *key_file_new(const char *path);
void key_file_free(struct key_file *f);

/*
 * Looks at the file and reads it if it is not what was read last. Refuses one
 * over KEY_FILE_MAX bytes, writable by group or others, or owned by anybody
 * but root and the caller.
 */
void key_file_refresh(struct key_file *f);

#endif
