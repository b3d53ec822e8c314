/*
 * Scripts that run inside a sandbox; see leader.h. Constants: whatever comes
 * from outside is a word of their arguments and never a part of them. They are
 * for any POSIX shell (dash, busybox, bash) and use next to no other program.
 */
#include "sandbox/leader.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/provider.h"

#define LEADER_SHELL "/bin/sh"

/*
 * Where the pid goes: a file "PID START SESSION". Those of sessions that ended
 * are swept by the next one. Most engines begin a session for each process; for
 * one that does not, setsid(1) does where there is one, else a signal finds the
 * process alone.
 */
#define LEADER_FIELDS                                                       \
	"f() { berth_pg=$3 berth_sd=$4 berth_tp=$6 berth_st=${20}; }\n"     \
	"look() { berth_x=; read -r berth_x 2>/dev/null <\"/proc/$1/stat\"" \
	" && f ${berth_x##*) }; }\n"

/* SID DIRECTORY [NAME=VALUE]... -- PROGRAM [ARGUMENT]... */
static const char leader_start_script[] = LEADER_FIELDS
    "berth_s=$1 berth_c=$2; shift 2\n"
    "while [ \"$1\" != -- ]; do export \"$1\"; shift; done; shift\n"
    "for berth_d in /dev/shm /tmp; do [ -w \"$berth_d\" ] && break; done\n"
    "for berth_o in \"$berth_d\"/.berth-ses-*; do\n"
    "  berth_p=; read -r berth_p berth_x 2>/dev/null <\"$berth_o\" &&\n"
    "    [ -n \"$berth_p\" ] && [ ! -d \"/proc/$berth_p\" ] &&\n"
    "    rm -f \"$berth_o\"\n"
    "done\n"
    "berth_u=$(umask); umask 077\n"
    "if look $$; then\n"
    "  [ \"$berth_sd\" = $$ ] || [ \"$berth_pg\" = $$ ] ||\n"
    "    ! command -v setsid >/dev/null || { berth_sd=$$; set -- setsid \"$@\"; }\n"
    "  echo \"$$ $berth_st $berth_sd\" 2>/dev/null "
    ">\"$berth_d/.berth-$berth_s\"\n"
    "fi\n"
    "umask \"$berth_u\"\n"
    "cd \"$berth_c\" || exit 126\n"
    "unset berth_s berth_c berth_d berth_o berth_p berth_x\n"
    "unset berth_pg berth_tp berth_sd berth_st berth_u; unset -f f look\n"
    "exec \"$@\"\n";

/* SID SIGNAL... A process that took the pid since is nobody we know. */
static const char leader_signal_script[] = LEADER_FIELDS
    "for d in /dev/shm /tmp; do [ -f \"$d/.berth-$1\" ] && break; done\n"
    "read -r p t g 2>/dev/null <\"$d/.berth-$1\" || exit 0\n"
    "shift; fg=0; [ \"$g\" = \"$p\" ] || g=none\n"
    "if look \"$p\"; then [ \"$berth_st\" = \"$t\" ] || exit 0; fg=$berth_tp\n"
    "elif [ \"$g\" = none ]; then exit 0; fi\n"
    "[ \"$fg\" -gt 0 ] || fg=$p\n"
    "all() {\n"
    "  [ \"$g\" != none ] || kill \"-$1\" \"$p\" 2>/dev/null\n"
    "  for q in /proc/[0-9]*; do q=${q#/proc/}\n"
    "    look \"$q\" && [ \"$berth_sd\" = \"$g\" ] &&\n"
    "      kill \"-$1\" \"$q\" 2>/dev/null\n"
    "  done\n"
    "}\n"
    "for n; do case $n in\n"
    "KILL) all STOP; all KILL; all KILL ;;\n"
    "HUP|CONT|TERM) all \"$n\" ;;\n"
    "*) kill \"-$n\" \"-$fg\" 2>/dev/null || kill \"-$n\" \"$p\" 2>/dev/null ;;\n"
    "esac; done\n"
    "exit 0\n";

/* Of its own control group, v2 or v1, and its network. */
static const char leader_measure_script[] =
    "c=/sys/fs/cgroup\n"
    "say() { read -r v 2>/dev/null <\"$2\" && echo \"$1 $v\"; }\n"
    "while read -r k v x; do\n"
    "  [ \"$k\" = usage_usec ] && echo \"cpu_us $v\"\n"
    "done 2>/dev/null <$c/cpu.stat\n"
    "say cpu_ns $c/cpuacct/cpuacct.usage\n"
    "say memory $c/memory.current || say memory "
    "$c/memory/memory.usage_in_bytes\n"
    "say peak $c/memory.peak || say peak "
    "$c/memory/memory.max_usage_in_bytes\n"
    "say pids $c/pids.current || say pids $c/pids/pids.current\n"
    "for f in $c/memory.events $c/memory/memory.oom_control; do\n"
    "  while read -r k v; do\n"
    "    [ \"$k\" = oom_kill ] && echo \"oom $v\"\n"
    "  done 2>/dev/null <$f\n"
    "done\n"
    "r=0 t=0\n"
    "while IFS=' :' read -r i a b c2 d2 e2 f2 g2 h2 w x; do\n"
    "  case $w in *[!0-9]*|'') ;;\n"
    "  *) r=$((r + a)) t=$((t + w)) ;; esac\n"
    "done </proc/net/dev\n"
    "echo \"rx $r\"; echo \"tx $t\"\n"
    "exit 0\n";

static const char leader_probe_script[] = "[ -f \"$1\" ] && [ -x \"$1\" ]";

/*
 * DIRECTORY: its files as a tar. GNU's ends with 1 when one changed meanwhile,
 * which is what files of a sandbox do.
 */
static const char leader_pack_script[] =
    "cd \"$1\" || exit 1\n"
    "[ \"$(pwd -P)\" != / ] || { echo 'its home is the whole system' >&2; "
    "exit 1; }\n"
    "tar -cf - . && exit\n"
    "c=$?; [ $c = 1 ] || exit $c\n"
    "tar --version 2>/dev/null | { read -r v; case $v in *GNU*) exit 0 ;; "
    "esac; exit 1; }\n";

/*
 * DIRECTORY: a tar in the place of its files. What was there goes last, and
 * nothing of it before all that is new is there. A directory that may not be
 * written cannot change its place without that.
 */
static const char leader_unpack_script[] =
    "cd \"$1\" || exit 1\n"
    "[ \"$(pwd -P)\" != / ] || { echo 'its home is the whole system' >&2; "
    "exit 1; }\n"
    "n=.berth-fresh o=.berth-former\n"
    "gone() { chmod -R u+rwx \"$1\" 2>/dev/null; rm -rf \"$1\"; }\n"
    "all() {\n"
    "  for f in .[!.]* ..?* *; do\n"
    "    [ -e \"$f\" ] || [ -L \"$f\" ] || continue\n"
    "    case $f in $n|$o) continue ;; esac\n"
    "    mv -- \"$f\" \"$1\" 2>/dev/null && continue\n"
    "    m=$(stat -c %a -- \"$f\") && chmod u+w -- \"$f\" &&\n"
    "      mv -- \"$f\" \"$1\" && chmod \"$m\" -- \"$1/$f\" || return 1\n"
    "  done\n"
    "}\n"
    "gone $n; gone $o; mkdir -m 700 $n $o || exit 1\n"
    "tar -xpf - -C $n && cat >/dev/null || { gone $n; gone $o; exit 1; }\n"
    "all $o || exit 1\n"
    "cd $n && all .. && cd .. || exit 1\n"
    "rmdir $n && gone $o\n";

struct leader_words {
	char **v;
	size_t n;
};

static void
leader_add(struct leader_words *w, const char *s)
{
	w->v = xrealloc(w->v, (w->n + 2) * sizeof(*w->v));
	w->v[w->n++] = xstrdup(s);
	w->v[w->n] = NULL;
}

static struct leader_words
leader_script(const char *script)
{
	struct leader_words w = { .v = NULL };

	leader_add(&w, LEADER_SHELL);
	leader_add(&w, "-c");
	leader_add(&w, script);
	leader_add(&w, "berth");
	return w;
}

/* What no shell could export would end it. */
static bool
leader_is_variable(const char *pair)
{
	size_t n = strspn(pair, "abcdefghijklmnopqrstuvwxyz_0123456789"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return n > 0 && pair[n] == '=' && !(*pair >= '0' && *pair <= '9');
}

char **
leader_start(const struct sandbox_run *r)
{
	struct leader_words w = leader_script(leader_start_script);

	leader_add(&w, r->sid);
	leader_add(&w, r->cwd);
	for (char *const *p = r->env; p && *p; p++) {
		if (leader_is_variable(*p))
			leader_add(&w, *p);
	}
	leader_add(&w, "--");
	for (char *const *p = r->argv; *p; p++)
		leader_add(&w, *p);
	/* A dash before its name is out of a script's reach. */
	if (r->is_login)
		leader_add(&w, "-l");
	return w.v;
}

char **
leader_signal(const char *sid)
{
	struct leader_words w = leader_script(leader_signal_script);

	leader_add(&w, sid);
	return w.v;
}

char **
leader_measure(void)
{
	return leader_script(leader_measure_script).v;
}

char **
leader_probe(const char *path)
{
	struct leader_words w = leader_script(leader_probe_script);

	leader_add(&w, path);
	return w.v;
}

char **
leader_pack(const char *dir)
{
	struct leader_words w = leader_script(leader_pack_script);

	leader_add(&w, dir);
	return w.v;
}

char **
leader_unpack(const char *dir)
{
	struct leader_words w = leader_script(leader_unpack_script);

	leader_add(&w, dir);
	return w.v;
}
