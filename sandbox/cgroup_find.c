/* Reads mountinfo and the own groups; see cgroup_find.h. */
#include "sandbox/cgroup_find.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#define FIND_FILE_MAX (1U << 20)

static const char *const find_controllers[CGROUP_KINDS] = {
	[CGROUP_UNIFIED] = "",
	[CGROUP_PIDS] = "pids",
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_FREEZER] = "freezer",
};

/* True if the list "a,b,c" has WORD; an empty one has nothing but "". */
static bool
find_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list;; p++) {
		size_t len = strcspn(p, ",");

		if (len == n && memcmp(p, word, n) == 0)
			return true;
		p += len;
		if (!*p)
			return false;
	}
}

/* The path of our group in the hierarchy of CONTROLLER, or NULL. */
static char *
find_own(const char *cgroup, const char *controller)
{
	autofree char *copy = xstrdup(cgroup);
	char *line, *rest = copy;

	while ((line = strsep(&rest, "\n"))) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		/* v2 is the line without controllers. */
		if (find_has(list + 1, controller))
			return xstrdup(path);
	}
	return NULL;
}

/* One line of mountinfo, taken apart; false if it is of no group. */
struct find_mount {
	const char *root, *point, *options;
	bool is_v2;
};

static bool
find_split(char *line, struct find_mount *out)
{
	char *field[6], *type, *rest = line;

	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		field[i] = strsep(&rest, " ");
		if (!field[i] || !rest)
			return false;
	}
	type = strstr(rest, "- ");
	if (!type)
		return false;
	rest = type + 2;
	type = strsep(&rest, " ");
	if (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0)
		return false;
	strsep(&rest, " ");
	*out = (struct find_mount){
		.root = field[3],
		.point = field[4],
		.options = rest ? rest : "",
		.is_v2 = strcmp(type, "cgroup2") == 0,
	};
	return true;
}

/* OWN as it is seen at the mount M, without the group of our own below. */
static void
find_join(const struct find_mount *m, const char *own, char *out)
{
	size_t n = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
	size_t main_len = strlen("/" CGROUP_FIND_MAIN), len;

	if (strncmp(own, m->root, n) != 0 || (own[n] != '/' && own[n]))
		return;
	own += n;
	len = strcmp(own, "/") == 0 ? 0 : strlen(own);
	if (m->is_v2 && len >= main_len &&
	    strcmp(own + len - main_len, "/" CGROUP_FIND_MAIN) == 0)
		len -= main_len;
	if (strlen(m->point) + len < CGROUP_PATH_MAX)
		snprintf(
		    out, CGROUP_PATH_MAX, "%s%.*s", m->point, (int)len, own);
}

void
cgroup_find_in(
    const char *mountinfo, const char *cgroup, struct cgroup_bases *out)
{
	autofree char *copy = xstrdup(mountinfo);
	char *line, *rest = copy;
	char *own[CGROUP_KINDS];

	*out = (struct cgroup_bases){ .path = { "" } };
	for (int i = 0; i < CGROUP_KINDS; i++)
		own[i] = find_own(cgroup, find_controllers[i]);
	while ((line = strsep(&rest, "\n"))) {
		struct find_mount m;

		if (!find_split(line, &m))
			continue;
		for (int i = 0; i < CGROUP_KINDS; i++) {
			bool is_it = i == CGROUP_UNIFIED
					 ? m.is_v2
					 : !m.is_v2 && find_has(m.options,
							   find_controllers[i]);

			if (is_it && own[i] && !out->path[i][0])
				find_join(&m, own[i], out->path[i]);
		}
	}
	for (int i = 0; i < CGROUP_KINDS; i++)
		free(own[i]);
}

void
cgroup_find(struct cgroup_bases *out)
{
	struct buf mounts = { 0 }, own = { 0 };

	*out = (struct cgroup_bases){ .path = { "" } };
	if (fd_read_file(
		"/proc/self/mountinfo", FIND_FILE_MAX, &mounts, NULL) == 0 &&
	    fd_read_file("/proc/self/cgroup", FIND_FILE_MAX, &own, NULL) == 0) {
		buf_put_u8(&mounts, 0);
		buf_put_u8(&own, 0);
		cgroup_find_in((const char *)buf_head(&mounts),
		    (const char *)buf_head(&own), out);
	}
	buf_release(&mounts);
	buf_release(&own);
}
