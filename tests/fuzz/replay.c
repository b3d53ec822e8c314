/*
 * Stands in for libFuzzer where none is: gives every file of the directories
 * and files that it is told of, and the empty input, to the target once. Fails
 * when there is nothing to give. Linked into build/asan/fuzz/NAME.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "tests/fuzz/fuzz.h"

#define REPLAY_FILE_MAX (1U << 20)

/* The path is what a crash is known by, so it is said before the run. */
static int
replay_file(const char *path)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	uint8_t *exact;
	size_t n;

	if (fd_read_file(path, REPLAY_FILE_MAX, &b, &e) < 0) {
		fprintf(stderr, "%s: %s\n", path, e.msg);
		exit(2);
	}
	printf("%s\n", path);
	fflush(stdout);
	/* A copy of the right size: one byte too far is seen. */
	n = buf_len(&b);
	exact = n ? xmemdup(buf_head(&b), n) : xmalloc(1);
	buf_release(&b);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 1;
}

/* Returns how many files it gave. */
static int
replay_dir(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *entry;
	int n = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	while ((entry = readdir(d))) {
		char file[PATH_MAX];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		n += replay_file(file);
	}
	closedir(d);
	return n;
}

int
main(int argc, char **argv)
{
	struct stat st;
	int n = 0;

	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &st) == 0 && !S_ISDIR(st.st_mode))
			n += replay_file(argv[i]);
		else
			n += replay_dir(argv[i]);
	}
	if (!n) {
		fprintf(stderr, "usage: %s DIR|FILE...\n", argv[0]);
		return 2;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("%d inputs\n", n);
	return 0;
}
