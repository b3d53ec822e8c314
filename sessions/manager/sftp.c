/* Who gets an sftp-server, and how it is called; see sftp.h. */
#include "sessions/manager/sftp.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"

#define SFTP_SUBSYSTEM "sftp"
#define SFTP_INTERNAL  "internal-sftp"
#define SFTP_BLANKS    " \t"

/* As in OpenSSH: the word alone, or with arguments behind it. */
static bool
sftp_is_internal(const char *command)
{
	size_t n = strlen(SFTP_INTERNAL);

	return command && strncmp(command, SFTP_INTERNAL, n) == 0 &&
	       (!command[n] || strchr(SFTP_BLANKS, command[n]));
}

static void
sftp_add(struct sftp_args *a, const char *arg)
{
	if (a->n < SFTP_ARGS_MAX)
		a->v[a->n++] = (char *)(uintptr_t)arg;
}

/* Its log is where rows of `transfer` come from. */
static void
sftp_fill(struct sftp_args *a, const struct conf *conf, const char *command)
{
	char *rest = NULL;

	*a = (struct sftp_args){ .words = command ? xstrdup(command) : NULL };
	sftp_add(a, "-e");
	sftp_add(a, "-l");
	sftp_add(a, "INFO");
	if (conf->sftp.mode == CONF_SFTP_RO)
		sftp_add(a, "-R");
	if (!a->words)
		return;
	strtok_r(a->words, SFTP_BLANKS, &rest);
	for (char *w; (w = strtok_r(NULL, SFTP_BLANKS, &rest));)
		sftp_add(a, w);
}

enum manager_code
sftp_plan(const struct conf *conf, const struct principal *who,
    const struct wire_run *run, bool *is_sftp_out, struct sftp_args *out,
    const char **why_out)
{
	bool is_subsystem = run->kind == RUN_SUBSYSTEM;
	bool is_internal = sftp_is_internal(who->forced_command);

	*is_sftp_out = false;
	*out = (struct sftp_args){ 0 };
	if (is_subsystem && strcmp(run->command, SFTP_SUBSYSTEM) != 0) {
		*why_out = "there is no such subsystem";
		return MANAGER_NOT_FOUND;
	}
	if ((is_subsystem || is_internal) && conf->sftp.mode == CONF_SFTP_OFF) {
		*why_out = "file transfer by sftp is switched off here";
		return MANAGER_REFUSED;
	}
	if (is_internal && !is_subsystem) {
		*why_out = "this key allows sftp connections only";
		return MANAGER_REFUSED;
	}
	/* Any other command= runs in the place of sftp-server. */
	*is_sftp_out = is_subsystem && (!who->forced_command || is_internal);
	if (*is_sftp_out)
		sftp_fill(out, conf, who->forced_command);
	return MANAGER_OK;
}

void
sftp_args_release(struct sftp_args *a)
{
	free(a->words);
	*a = (struct sftp_args){ 0 };
}
