/*
 * The configuration: every option at its default, limits and bad values, the
 * sentences of errors, and that table, --show-config, sample and manual agree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/defaults.h"
#include "conf/options.h"
#include "tests/unit/unit.h"

static char conf_dir[64];
static char conf_path[96];

static int
setup(void **state)
{
	(void)state;
	snprintf(conf_dir, sizeof(conf_dir), "/tmp/conf_test.XXXXXX");
	assert_non_null(mkdtemp(conf_dir));
	snprintf(conf_path, sizeof(conf_path), "%s/b.conf", conf_dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(conf_path);
	return rmdir(conf_dir);
}

static void
write_conf(const char *text, size_t n)
{
	FILE *f = fopen(conf_path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static int
load_text(const char *text, struct conf **out, struct err *e)
{
	write_conf(text, strlen(text));
	return conf_load(conf_path, NULL, 0, out, e);
}

static char *
show(const struct conf *c)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	conf_show(c, f);
	fclose(f);
	return text;
}

static char *
print(void (*fn)(FILE *))
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	fn(f);
	fclose(f);
	return text;
}

/* "section.name" to the value that is shown for it. */
static char *
value_of(const struct conf *c, const char *key)
{
	autofree char *section = xstrndup(key, strcspn(key, "."));
	const struct option *o = option_find(section, strchr(key, '.') + 1);

	assert_non_null(o);
	return option_type(o->kind)->format(o, c);
}

static void
every_default_of_the_contract_is_in_the_table(void **state)
{
	static const struct {
		const char *key, *def;
	} rows[] = {
		{ "server.listen", "127.0.0.1:2222" },
		{ "server.state_dir", NULL },
		{ "server.runtime_dir", NULL },
		{ "server.host_key", "@/ssh_host_ed25519_key" },
		{ "server.login_grace", "30s" },
		{ "server.max_auth_tries", "6" },
		{ "server.max_connections", "1000" },
		{ "server.max_startups", "100" },
		{ "server.max_per_source", "16" },
		{ "server.admin_group", "none" },
		{ "server.keepalive", "30s" },
		{ "server.keepalive_count", "3" },
		{ "server.max_channels", "64" },
		{ "server.rekey_limit", "0" },
		{ "server.log_level", "info" },
		{ "server.log_format", "text" },
		{ "access.authorized_keys", "@/authorized_keys" },
		{ "access.autocreate", "yes" },
		{ "access.default_role", "writer" },
		{ "access.allow_sk", "no" },
		{ "access.default_template", "auto" },
		{ "sandbox.dir", NULL },
		{ "sandbox.snapshots", "@/snapshots" },
		{ "sandbox.user", "berth-box" },
		{ "sandbox.uid_range", "none" },
		{ "sandbox.sftp_server", NULL },
		{ "sandbox.providers", "none" },
		{ "sftp.mode", "rw" },
		{ "session.shell", NULL },
		{ "session.buffer", "1M" },
		{ "session.replay", "screen" },
		{ "session.scrollback", "10000" },
		{ "session.scrollback_bytes", "8M" },
		{ "session.answer", "berth(" BERTH_VERSION
				    "),fg=#d0d0d0,bg=#000000,cursor=#d0d0d0" },
		{ "session.resize", "latest" },
		{ "session.detach_key", "none" },
		{ "session.env_accept", "TERM,LANG,LC_*,COLORTERM" },
		{ "session.stop_grace", "5s" },
		{ "session.on_shutdown", "keep" },
		{ "session.notice", "lost" },
		{ "session.max_per_sandbox", "100" },
		{ "forward.allow", "localhost:*,127.0.0.1:*,[::1]:*" },
		{ "forward.listen", "localhost:*" },
		{ "recording.enabled", "yes" },
		{ "recording.exec", "no" },
		{ "recording.input", "off" },
		{ "recording.dir", "@/recordings" },
		{ "recording.retention", "7d" },
		{ "recording.sweep_interval", "1h" },
		{ "recording.flush", "1s" },
		{ "recording.min_free", "256M" },
		{ "recording.max_bytes", "0" },
		{ "recording.on_error", "continue" },
	};
	struct err e = { 0 };
	struct conf *c = NULL;
	size_t n;

	(void)state;
	assert_int_equal(load_text("", &c, &e), 0);
	options_all(&n);
	assert_int_equal(n, ARRAY_LEN(rows));
	for (size_t i = 0; i < n; i++) {
		autofree char *shown = value_of(c, rows[i].key);
		autofree char *want = NULL;

		if (!rows[i].def)
			continue;
		want = rows[i].def[0] == '@'
			   ? xasprintf(
				 "%s%s", c->server.state_dir, rows[i].def + 1)
			   : xstrdup(rows[i].def);
		assert_string_equal(shown, want);
	}
	assert_int_equal(access(c->session.shell, X_OK), 0);
	assert_int_equal(c->session.detach_key.n, 0);
	assert_int_equal(c->recording.retention_ms, 168ULL * 3600 * 1000);
	assert_string_equal(c->server.admin_group, "");
	conf_free(c);
}

static void
numbers_are_accepted_at_their_limits_and_refused_beyond(void **state)
{
	size_t n;
	const struct option *table = options_all(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct option *o = &table[i];
		char text[4][32];
		int checked = 0;

		if (o->kind != OPTION_COUNT && o->kind != OPTION_SIZE &&
		    o->kind != OPTION_TIME)
			continue;
		for (int k = 0; k < 4; k++) {
			uint64_t v = k == 0   ? o->min
				     : k == 1 ? o->max
				     : k == 2 ? o->max + 1
					      : o->min - 1;
			const char *unit =
			    o->kind == OPTION_TIME && v ? "ms" : "";
			autofree char *key = xasprintf("%s.%s=%llu%s",
			    o->section, o->name, (unsigned long long)v, unit);
			const char *ov[] = { key };
			struct conf *c = NULL;
			struct err e = { 0 };

			snprintf(text[k], sizeof(text[k]), "%llu%s",
			    (unsigned long long)v, unit);
			if (k == 3 && o->min == 0)
				continue;
			write_conf("", 0);
			if (k < 2) {
				assert_int_equal(
				    conf_load(conf_path, ov, 1, &c, &e), 0);
			} else {
				assert_int_equal(
				    conf_load(conf_path, ov, 1, &c, &e),
				    -ERANGE);
				assert_non_null(
				    strstr(e.msg, "is not between"));
				assert_null(c);
			}
			conf_free(c);
			checked++;
		}
		assert_true(checked >= 3);
	}
}

static void
a_wrong_value_is_a_sentence_with_file_line_and_key(void **state)
{
	static const struct {
		const char *text, *line, *message;
	} rows[] = {
		{ "[server]\nlisten = 2222\n", "2",
		    "server.listen: \"2222\" is not host:port or [v6]:port" },
		{ "[server]\nlisten = h:99999\n", "2",
		    "server.listen: \"h:99999\" does not end in a port (0 to "
		    "65535)" },
		{ "[server]\nlisten = ::1:22\n", "2",
		    "server.listen: \"::1:22\": an IPv6 address wants "
		    "brackets" },
		{ "[server]\nlisten = [::g]:22\n", "2",
		    "server.listen: \"::g\" is not an IPv6 address" },
		{ "[server]\nlisten = a:1,,b:2\n", "2",
		    "server.listen: an entry of the list is empty" },
		{ "[server]\n\nlogin_grace = 0\n", "3",
		    "server.login_grace: 0 is not between 100ms and 1h" },
		{ "[server]\nlogin_grace = 30\n", "2",
		    "server.login_grace: \"30\" is not a time like 500ms, "
		    "30s, 5m, 12h or 7d" },
		{ "[server]\nmax_channels = -1\n", "2",
		    "server.max_channels: \"-1\" is not a whole number" },
		{ "[session]\nbuffer = 1X\n", "2",
		    "session.buffer: \"1X\" is not a size like 512k, 1M or "
		    "2G" },
		{ "[session]\nbuffer = 99999999999999999999\n", "2",
		    "session.buffer: 99999999999999999999 is not between "
		    "16k and 1G" },
		{ "[server]\nlog_level = loud\n", "2",
		    "server.log_level: \"loud\" is none of: err, warn, info, "
		    "debug" },
		{ "[server]\nlog_format = yes\n", "2",
		    "server.log_format: \"yes\" is none of: text, json" },
		{ "[access]\nautocreate = maybe\n", "2",
		    "access.autocreate: \"maybe\" is none of: no, yes" },
		{ "[access]\ndefault_role = root\n", "2",
		    "access.default_role: \"root\" is none of: owner, "
		    "writer, viewer" },
		{ "[access]\ndefault_template = cloud\n", "2",
		    "access.default_template: there is no such template" },
		{ "[template a b]\n", "1",
		    "\"a b\" is not a name for a template" },
		{ "[template ../x]\n", "1",
		    "\"../x\" is not a name for a template" },
		{ "[template]\n", "1", "template: unknown section" },
		{ "[template t]\nsize = 1\n", "2",
		    "template t.size: unknown key" },
		{ "[template t]\npids = 1\npids = 2\n", "3",
		    "template t.pids: already given" },
		{ "[template t]\nmemory = 1k\n", "2",
		    "template t.memory: 0, or at least 4M" },
		{ "[template t]\nworkspace_size = 1M\n", "2",
		    "template t.workspace_size: 0, or at least 4M" },
		{ "[template t]\nenv = A=1 B\n", "2",
		    "template t.env: \"B\" is not NAME=VALUE" },
		{ "[template t]\nenv = A=1\n  1B=2\n", "3",
		    "template t.env: \"1B=2\" is not NAME=VALUE" },
		{ "[template t]\nenv = \"A=1\n", "2",
		    "template t.env: a quote is not closed" },
		{ "[template t]\nenv = BERTH_SANDBOX=x\n", "2",
		    "template t.env: BERTH_ begins names that are berth's "
		    "own" },
		{ "[template t]\nsftp = maybe\n", "2",
		    "template t.sftp: \"maybe\" is none of: no, yes" },
		{ "[template t]\npids = 1\n 2\n", "3",
		    "template t.pids: already given" },
		{ "[template t]\ninit_timeout = 1ms\n", "2",
		    "template t.init_timeout: 1ms is not between 100ms and "
		    "1h" },
		{ "[template t]\nnetwork = all\n", "2",
		    "template t.network: \"all\" is none of: loopback, host, "
		    "none" },
		{ "[session]\nresize = fixed 80\n", "2",
		    "session.resize: \"80\" is not a size like 80x24" },
		{ "[session]\nresize = fixed 0x24\n", "2",
		    "session.resize: \"0x24\" is not a size like 80x24" },
		{ "[session]\ndetach_key = ctrl-\n", "2",
		    "session.detach_key: \"ctrl-\" is neither a key like "
		    "ctrl-], one character nor esc" },
		{ "[session]\ndetach_key = q\n", "2",
		    "session.detach_key: the first key wants ctrl, like ctrl-] "
		    "or ctrl-a" },
		{ "[session]\ndetach_key = esc\n", "2",
		    "session.detach_key: the first key wants ctrl, like ctrl-] "
		    "or ctrl-a" },
		{ "[session]\ndetach_key = ctrl-M d\n", "2",
		    "session.detach_key: ctrl-m is the key Enter to a "
		    "terminal" },
		{ "[session]\ndetach_key = ctrl-a ctrl-a\n", "2",
		    "session.detach_key: the second key must be another one: "
		    "the first typed twice is sent once" },
		{ "[session]\ndetach_key = ctrl-a b c\n", "2",
		    "session.detach_key: more than two keys" },
		{ "[session]\ndetach_key = ctrl-a \xc3\xa4\n", "2",
		    "session.detach_key: \"\xc3\xa4\" is neither a key like "
		    "ctrl-], one character nor esc" },
		{ "[session]\nanswer = a b\n", "2",
		    "session.answer: \"a b\" is not a name of 1 to 63 letters, "
		    "digits and ._+-()" },
		{ "[session]\nanswer = x,fg=red\n", "2",
		    "session.answer: \"fg=red\" is not a colour like "
		    "fg=#d0d0d0, bg=#000000 or cursor=#ffffff" },
		{ "[session]\nanswer = x,\n", "2",
		    "session.answer: \"\" is not a colour like "
		    "fg=#d0d0d0, bg=#000000 or cursor=#ffffff" },
		{ "[session]\nnotice = maybe\n", "2",
		    "session.notice: \"maybe\" is none of: no, lost, yes" },
		{ "[session]\nreplay = all\n", "2",
		    "session.replay: \"all\" is none of: screen, raw, none" },
		{ "[session]\nenv_accept = LC_*,A=B\n", "2",
		    "session.env_accept: \"A=B\" is not a pattern of "
		    "variable names" },
		{ "[forward]\nallow = localhost\n", "2",
		    "forward.allow: \"localhost\" is not a pattern like "
		    "host:port, *:80 or [v6]:*" },
		{ "[session]\nshell = /nowhere/sh\n", "2",
		    "session.shell: there is no such program" },
		{ "[sandbox]\nuser = a b\n", "2",
		    "sandbox.user: \"a b\" is not the name of a user" },
		{ "[sandbox]\nuid_range = 2000-1999\n", "2",
		    "sandbox.uid_range: \"2000-1999\" is not a range of uids "
		    "like 200000-265535, all of them between 1000 and "
		    "4294967293" },
		{ "[sandbox]\nuid_range = 0-1999\n", "2",
		    "sandbox.uid_range: \"0-1999\" is not a range of uids "
		    "like 200000-265535, all of them between 1000 and "
		    "4294967293" },
		{ "[server]\nadmin_group = no-such-group-here\n", "2",
		    "server.admin_group: there is no group "
		    "\"no-such-group-here\"" },
		{ "[server]\nstate_dir =\n", "2",
		    "server.state_dir: no value; leave the line out for the "
		    "default" },
		{ "[server]\nlisen = h:1\n", "2", "server.lisen: unknown key" },
		{ "[server]\n[sever]\n", "2", "sever: unknown section" },
		{ "listen = h:1\n", "1",
		    "listen: stands before the first [section]" },
		{ "[server]\nlisten\n", "2",
		    "neither a [section], a comment nor key = value" },
		{ "[server]\nkeepalive = 1s\nkeepalive = 2s\n", "3",
		    "server.keepalive: already given in line 2" },
		{ "[server]\nkeepalive = 1s\n  2s\n", "3",
		    "server.keepalive: only lists go on in an indented line" },
		{ "[sandbox]\ndir = /x\n[recording]\ndir = /x/rec\n", "4",
		    "recording.dir: lies inside sandbox.dir" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *want = xasprintf(
		    "%s:%s: %s", conf_path, rows[i].line, rows[i].message);
		struct err e = { 0 };
		struct conf *c = NULL;

		assert_true(load_text(rows[i].text, &c, &e) < 0);
		assert_string_equal(e.msg, want);
		assert_null(c);
	}
}

static void
a_line_that_the_parser_would_cut_is_refused(void **state)
{
	char text[1024] = "[session]\n# ";
	struct err e = { 0 };
	struct conf *c = NULL;
	size_t n = strlen(text);

	(void)state;
	memset(text + n, 'x', 900);
	text[n + 900] = '\n';
	write_conf(text, n + 901);
	assert_int_equal(conf_load(conf_path, NULL, 0, &c, &e), -E2BIG);
	assert_non_null(strstr(e.msg, ":2: the line is too long"));
	write_conf("[server]\n#\0\n", 12);
	assert_int_equal(conf_load(conf_path, NULL, 0, &c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, ":2: the line has a NUL in it"));
}

static void
an_absent_file_is_an_error_when_it_was_named(void **state)
{
	struct err e = { 0 };
	struct conf *c = NULL;

	(void)state;
	unlink(conf_path);
	assert_int_equal(conf_load(conf_path, NULL, 0, &c, &e), -ENOENT);
	assert_non_null(strstr(e.msg, conf_path));
	write_conf("", 0);
}

static void
overrides_win_and_name_themselves(void **state)
{
	static const char *const good[] = { "server.log_level=warn",
		"server.log_level=debug", "session.resize=fixed 120x40" };
	static const struct {
		const char *text, *message;
	} bad[] = {
		{ "server.log_level", "-o server.log_level: not section.key="
				      "value" },
		{ "log_level=debug",
		    "-o log_level=debug: not section.key=value" },
		{ "server.nope=1", "-o server.nope: unknown key" },
		{ "server.max_channels=0",
		    "-o server.max_channels: 0 is not between 1 and 1024" },
		{ "recording.dir=a\nb",
		    "-o recording.dir: has a control character in it" },
		{ "recording.dir=/a /",
		    "-o recording.dir: \"/a \" ends in a blank" },
		{ "recording.dir=/a ;b", "-o recording.dir: has \" ;\" in it" },
	};
	struct err e = { 0 };
	struct conf *c = NULL;

	(void)state;
	write_conf("[server]\nlog_level = err\n", 25);
	assert_int_equal(conf_load(conf_path, good, 3, &c, &e), 0);
	assert_int_equal(c->server.log_level, LOG_DEBUG);
	assert_int_equal(c->session.resize, CONF_RESIZE_FIXED);
	assert_int_equal(c->session.fixed_cols, 120);
	assert_int_equal(c->session.fixed_rows, 40);
	conf_free(c);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *ov[] = { bad[i].text };

		c = NULL;
		assert_true(conf_load(conf_path, ov, 1, &c, &e) < 0);
		assert_string_equal(e.msg, bad[i].message);
	}
}

static void
relative_paths_start_at_the_file_and_overrides_at_the_cwd(void **state)
{
	static const char text[] = "[server]\nstate_dir = ./s/\n[access]\n"
				   "authorized_keys = ../k1, k2,\n\t/k3\n";
	static const char *const ov[] = { "recording.dir=rec/x" };
	autofree char *cwd = realpath(".", NULL);
	autofree char *dir = realpath(conf_dir, NULL);
	autofree char *rec = xasprintf("%s/rec/x", cwd);
	autofree char *state_dir = xasprintf("%s/s", dir);
	autofree char *keys = xasprintf("/tmp/k1,%s/k2,/k3", dir);
	struct err e = { 0 };
	struct conf *c = NULL;

	(void)state;
	write_conf(text, strlen(text));
	assert_int_equal(conf_load(conf_path, ov, 1, &c, &e), 0);
	assert_string_equal(c->server.state_dir, state_dir);
	assert_string_equal(c->recording.dir, rec);
	assert_string_equal(c->access.authorized_keys, keys);
	conf_free(c);
}

static void
detach_keys_are_one_or_two_keys(void **state)
{
	static const struct {
		const char *text, *shown;
		struct conf_detach_key want;
	} rows[] = {
		{ "none", "none", { 0 } },
		{ "ctrl-]", "ctrl-]", { 1, { { ']', true } } } },
		{ "CTRL-A", "ctrl-a", { 1, { { 'a', true } } } },
		{ "ctrl-\\", "ctrl-\\", { 1, { { '\\', true } } } },
		{ "ctrl-@", "ctrl-@", { 1, { { '@', true } } } },
		{ "ctrl-a d", "ctrl-a d",
		    { 2, { { 'a', true }, { 'd', false } } } },
		{ "ctrl-a   D", "ctrl-a D",
		    { 2, { { 'a', true }, { 'D', false } } } },
		{ "ctrl-p Ctrl-Q", "ctrl-p ctrl-q",
		    { 2, { { 'p', true }, { 'q', true } } } },
		{ "ctrl-a ESC", "ctrl-a esc",
		    { 2, { { 'a', true }, { 27, false } } } },
		{ "ctrl-a a", "ctrl-a a",
		    { 2, { { 'a', true }, { 'a', false } } } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *text =
		    xasprintf("[session]\ndetach_key = %s\n", rows[i].text);
		const struct conf_detach_key *got, *want = &rows[i].want;
		autofree char *shown = NULL;
		struct err e = { 0 };
		struct conf *c = NULL;

		assert_int_equal(load_text(text, &c, &e), 0);
		got = &c->session.detach_key;
		assert_int_equal(got->n, want->n);
		for (unsigned k = 0; k < want->n; k++) {
			assert_int_equal(got->keys[k].ch, want->keys[k].ch);
			assert_int_equal(
			    got->keys[k].is_ctrl, want->keys[k].is_ctrl);
		}
		shown = value_of(c, "session.detach_key");
		assert_string_equal(shown, rows[i].shown);
		conf_free(c);
	}
}

static void
answers_have_a_name_and_colours(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "xterm", "xterm,fg=#d0d0d0,bg=#000000,cursor=#d0d0d0" },
		{ "x,fg=#FFffFF", "x,fg=#ffffff,bg=#000000,cursor=#ffffff" },
		{ "x, bg=#123456,cursor=#00ff00",
		    "x,fg=#d0d0d0,bg=#123456,cursor=#00ff00" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *text =
		    xasprintf("[session]\nanswer = %s\n", rows[i].text);
		autofree char *shown = NULL;
		struct err e = { 0 };
		struct conf *c = NULL;

		assert_int_equal(load_text(text, &c, &e), 0);
		shown = value_of(c, "session.answer");
		assert_string_equal(shown, rows[i].shown);
		conf_free(c);
	}
}

static void
what_is_shown_loads_to_the_same_again(void **state)
{
	static const char *const ov[] = {
		"server.listen=0.0.0.0:22,[::1]:0,localhost:2222",
		"server.host_key=a/long/path/of/a/key/that/is/the/first,"
		"/another/long/path/of/a/key/that/is/the/second/of/them,"
		"/yet/another/long/path/of/a/key/that/is/the/third/of/them",
		"server.admin_group=root",
		"session.env_accept=none",
		"forward.allow=*.example.com:443,!10.*:*,[fe80::*]:8???",
		"forward.listen=none",
		"session.resize=fixed 100x30",
		"session.detach_key=ctrl-a d",
		"session.answer=name,cursor=#010203",
		"session.notice=yes",
		"session.replay=none",
		"recording.input=on",
		"recording.max_bytes=1G",
		"server.log_format=json",
		"access.autocreate=false",
	};
	struct err e = { 0 };
	struct conf *c = NULL;
	char *first, *second;

	(void)state;
	write_conf("", 0);
	assert_int_equal(conf_load(conf_path, ov, ARRAY_LEN(ov), &c, &e), 0);
	first = show(c);
	conf_free(c);
	assert_int_equal(load_text(first, &c, &e), 0);
	second = show(c);
	assert_string_equal(first, second);
	assert_true(c->server.log_json);
	assert_true(c->recording.input);
	assert_false(c->access.autocreate);
	assert_string_equal(c->session.env_accept, "");
	assert_string_equal(
	    c->forward.allow, "*.example.com:443,!10.*:*,[fe80::*]:8???");
	assert_string_equal(c->forward.listen, "");
	conf_free(c);
	free(first);
	free(second);
}

static void
sample_and_manual_name_every_option_once(void **state)
{
	char *sample = print(conf_print_sample);
	char *manual = print(conf_print_manual);
	size_t n;
	const struct option *table = options_all(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		autofree char *in_sample = xasprintf("\n#%s =", table[i].name);
		autofree char *in_manual =
		    xasprintf("\n.BR %s \" = ", table[i].name);

		assert_non_null(strstr(sample, in_sample));
		assert_non_null(strstr(manual, in_manual));
	}
	free(sample);
	free(manual);
}

static void
the_sample_without_its_comment_signs_is_the_default(void **state)
{
	char *sample = print(conf_print_sample);
	char *text = NULL, *first, *second;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	struct err e = { 0 };
	struct conf *c = NULL;

	(void)state;
	for (char *line = sample; *line;) {
		size_t len = strcspn(line, "\n");
		bool is_off = line[0] == '#' && line[1] != ' ';
		bool is_empty = len > 0 && line[len - 1] == '=';

		if (!is_empty)
			fprintf(f, "%.*s\n", (int)len - is_off, line + is_off);
		line += len + 1;
	}
	fclose(f);
	assert_int_equal(load_text(text, &c, &e), 0);
	first = show(c);
	conf_free(c);
	assert_int_equal(load_text(sample, &c, &e), 0);
	second = show(c);
	conf_free(c);
	assert_string_equal(first, second);
	free(first);
	free(second);
	free(text);
	free(sample);
}

static void
default_places_follow_user_and_xdg(void **state)
{
	static const struct {
		struct defaults_user u;
		const char *config, *state, *runtime, *sandboxes;
	} rows[] = {
		{ { .is_root = true, .xdg_state = "/x", .xdg_runtime = "/y" },
		    "/etc/berth/berth.conf", "/var/lib/berth", "/run/berth",
		    "/var/lib/berth-sandboxes" },
		{ { .home = "/home/u" }, "/home/u/.config/berth/berth.conf",
		    "/home/u/.local/state/berth",
		    "/home/u/.local/state/berth/run",
		    "/home/u/.local/state/berth/sandboxes" },
		{ { .home = "/home/u",
		      .xdg_config = "/c",
		      .xdg_state = "/s",
		      .xdg_runtime = "/r" },
		    "/c/berth/berth.conf", "/s/berth", "/r/berth",
		    "/s/berth/sandboxes" },
		{ { .home = "/home/u",
		      .xdg_config = "c",
		      .xdg_state = "",
		      .xdg_runtime = "r" },
		    "/home/u/.config/berth/berth.conf",
		    "/home/u/.local/state/berth",
		    "/home/u/.local/state/berth/run",
		    "/home/u/.local/state/berth/sandboxes" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct defaults_user *u = &rows[i].u;
		autofree char *config = defaults_config_path(u);
		autofree char *dir = defaults_state_dir(u);
		autofree char *runtime = defaults_runtime_dir(u, dir);
		autofree char *sandboxes = defaults_sandbox_dir(u, dir);

		assert_string_equal(config, rows[i].config);
		assert_string_equal(dir, rows[i].state);
		assert_string_equal(runtime, rows[i].runtime);
		assert_string_equal(sandboxes, rows[i].sandboxes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_default_of_the_contract_is_in_the_table),
		cmocka_unit_test(
		    numbers_are_accepted_at_their_limits_and_refused_beyond),
		cmocka_unit_test(
		    a_wrong_value_is_a_sentence_with_file_line_and_key),
		cmocka_unit_test(a_line_that_the_parser_would_cut_is_refused),
		cmocka_unit_test(an_absent_file_is_an_error_when_it_was_named),
		cmocka_unit_test(overrides_win_and_name_themselves),
		cmocka_unit_test(
		    relative_paths_start_at_the_file_and_overrides_at_the_cwd),
		cmocka_unit_test(detach_keys_are_one_or_two_keys),
		cmocka_unit_test(answers_have_a_name_and_colours),
		cmocka_unit_test(what_is_shown_loads_to_the_same_again),
		cmocka_unit_test(sample_and_manual_name_every_option_once),
		cmocka_unit_test(
		    the_sample_without_its_comment_signs_is_the_default),
		cmocka_unit_test(default_places_follow_user_and_xdg),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
