/*
 * The verb rec play. What was printed goes through the terminal engine and is
 * shown as pictures, whatever the size: nothing of a recording reaches the
 * terminal itself, no query that it would answer, no clipboard or bell, no mode
 * that would stay on.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/record_reader.h"
#include "cli/terminal.h"
#include "screen/picture.h"
#include "screen/screen.h"
#include "sessions/wire/messages.h"

#define PLAY_FRAME_US  33000
#define PLAY_SPEED_MIN 0.01
#define PLAY_SPEED_MAX 1000.0
#define PLAY_IDLE_MAX  1e6

struct play {
	struct record_reader reader;
	const char *lines; /* of the reader, not yet played */
	size_t n_lines;
	struct screen *screen;
	struct picture *picture;
	double speed, idle; /* idle: the longest pause in seconds */
	double at_s;        /* of the recording: the last event */
	int64_t due_us;     /* when the next event is to be seen */
	int64_t painted_us;
	int64_t paused_us; /* since when, 0 = it plays */
	int signal_fd;
	int ended_by; /* the signal that wants it gone, 0 = none */
	bool has_keys, is_changed, is_left;
};

/* ---- events ---- */

static int
play_begin(struct play *p, json_t *header, struct err *e)
{
	json_int_t version = 0, cols = 0, rows = 0;
	struct screen_config config = { .history_lines = 0 };

	if (json_unpack(header, "{s:I, s:I, s:I}", "version", &version, "width",
		&cols, "height", &rows) < 0 ||
	    version != 2 || cols < 1 || rows < 1 || cols > 65535 ||
	    rows > 65535)
		return err_set(
		    e, -EBADMSG, "the recording is not an asciicast v2");
	config.cols = (unsigned)cols;
	config.rows = (unsigned)rows;
	p->screen = screen_new(&config);
	return 0;
}

/* The next event of [TIME, "KIND", "DATA"]; 0 at the end. */
static int
play_next(struct play *p, json_t **event, struct err *e)
{
	const char *end;
	json_error_t why;
	size_t n;
	int rc = 1;

	if (!p->n_lines)
		rc = record_reader_next(&p->reader, &p->lines, &p->n_lines, e);
	if (rc <= 0)
		return rc;
	end = memchr(p->lines, '\n', p->n_lines);
	n = end ? (size_t)(end - p->lines) : p->n_lines;
	*event = json_loadb(p->lines, n, JSON_ALLOW_NUL, &why);
	p->lines += n + 1;
	p->n_lines -= n + 1;
	if (!*event)
		return err_set(e, -EBADMSG,
		    "the recording has a line that is none of asciicast v2");
	return 1;
}

static void
play_resize(struct play *p, const char *text)
{
	unsigned cols, rows;

	if (text_parse_size2d(text, &cols, &rows) == 0)
		screen_resize(p->screen, cols, rows);
}

static void
play_event(struct play *p, const json_t *event)
{
	const char *kind = json_string_value(json_array_get(event, 1));
	const json_t *data = json_array_get(event, 2);

	if (!kind || !json_is_string(data))
		return;
	if (strcmp(kind, "o") == 0)
		screen_write(p->screen, json_string_value(data),
		    json_string_length(data));
	else if (strcmp(kind, "r") == 0)
		play_resize(p, json_string_value(data));
	p->is_changed = true;
}

/* ---- the terminal ---- */

static int
play_paint(struct play *p, struct err *e)
{
	struct wire_size size;
	struct buf out = { 0 };
	int rc;

	if (!terminal_size(&size))
		size = (struct wire_size){ .cols = 80, .rows = 24 };
	picture_paint(p->picture, p->screen, size.cols, size.rows, &out);
	rc = fd_write_all(STDOUT_FILENO, buf_head(&out), buf_len(&out));
	buf_release(&out);
	p->painted_us = clock_mono_us();
	p->is_changed = false;
	return rc < 0 ? err_sys(e, rc, "cannot write to the terminal") : 0;
}

static void
play_pause(struct play *p)
{
	int64_t now = clock_mono_us();

	if (p->paused_us)
		p->due_us += now - p->paused_us;
	p->paused_us = p->paused_us ? 0 : now;
}

static void
play_faster(struct play *p, double times)
{
	double speed = p->speed * times;

	if (speed >= PLAY_SPEED_MIN && speed <= PLAY_SPEED_MAX)
		p->speed = speed;
}

/* Keys come one by one: what a terminal sends for others is passed over. */
static void
play_keys(struct play *p)
{
	char keys[256];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n <= 0) {
		p->has_keys = n < 0 && (errno == EINTR || errno == EAGAIN);
		return;
	}
	if (n > 1 && keys[0] == '\033')
		return;
	for (ssize_t i = 0; i < n; i++) {
		if (keys[i] == ' ')
			play_pause(p);
		else if (keys[i] == '+')
			play_faster(p, 2);
		else if (keys[i] == '-')
			play_faster(p, 0.5);
		else if (keys[i] == 'q' || keys[i] == 3 || keys[i] == 4)
			p->is_left = true;
	}
}

static void
play_signals(struct play *p)
{
	struct signalfd_siginfo si;

	if (read(p->signal_fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGWINCH) {
		p->is_changed = true;
		return;
	}
	p->ended_by = (int)si.ssi_signo;
	p->is_left = true;
}

/* Milliseconds until there is something to do, -1 for never. */
static int
play_timeout(const struct play *p, int64_t now)
{
	int64_t at = p->paused_us ? INT64_MAX : p->due_us;

	if (p->is_changed && p->painted_us + PLAY_FRAME_US < at)
		at = p->painted_us + PLAY_FRAME_US;
	if (at == INT64_MAX)
		return -1;
	at = (at - now + 999) / 1000;
	return at < 0 ? 0 : at > 60000 ? 60000 : (int)at;
}

/* Shows what there is until the next event is due. */
static int
play_wait(struct play *p, struct err *e)
{
	for (;;) {
		int64_t now = clock_mono_us();
		struct pollfd fds[] = {
			{ .fd = p->signal_fd, .events = POLLIN },
			{ .fd = p->has_keys ? STDIN_FILENO : -1,
			    .events = POLLIN },
		};
		int rc = 0;

		if (p->is_changed && now - p->painted_us >= PLAY_FRAME_US)
			rc = play_paint(p, e);
		if (rc < 0)
			return rc;
		rc = poll(fds, ARRAY_LEN(fds), play_timeout(p, now));
		if (rc < 0 && errno != EINTR)
			return err_sys(e, -errno, "cannot wait");
		if (rc > 0 && fds[0].revents)
			play_signals(p);
		if (rc > 0 && fds[1].revents)
			play_keys(p);
		if (p->is_left ||
		    (!p->paused_us && clock_mono_us() >= p->due_us))
			return 0;
	}
}

static int
play_run(struct play *p, struct err *e)
{
	json_t *event = NULL;
	int rc = play_next(p, &event, e);

	if (rc > 0)
		rc = play_begin(p, event, e);
	else if (rc == 0)
		rc = err_set(e, -EBADMSG, "the recording is empty");
	json_decref(event);
	p->due_us = clock_mono_us();
	while (rc >= 0 && !p->is_left) {
		double at, pause;

		rc = play_next(p, &event, e);
		if (rc <= 0)
			break;
		at = json_number_value(json_array_get(event, 0));
		pause = at > p->at_s ? at - p->at_s : 0;
		pause = pause > p->idle ? p->idle : pause;
		p->at_s = at > p->at_s ? at : p->at_s;
		p->due_us += (int64_t)(pause / p->speed * 1e6);
		rc = play_wait(p, e);
		if (rc == 0 && !p->is_left)
			play_event(p, event);
		json_decref(event);
	}
	if (rc == 0 && p->is_changed)
		rc = play_paint(p, e);
	return rc < 0 ? rc : 0;
}

/* The terminal as it was before, and what was seen last in its own lines. */
static void
play_leave(struct play *p)
{
	struct buf out = { 0 };

	/* what was pressed until now is not for the shell */
	if (p->has_keys)
		tcflush(STDIN_FILENO, TCIFLUSH);
	if (picture_is_shown(p->picture)) {
		picture_clear(p->picture, &out);
		if (fd_write_all(
			STDOUT_FILENO, buf_head(&out), buf_len(&out)) == 0) {
			buf_clear(&out);
			terminal_restore();
			screen_text(p->screen, SCREEN_TEXT_ANSI, &out);
			(void)fd_write_all(
			    STDOUT_FILENO, buf_head(&out), buf_len(&out));
		}
	}
	terminal_restore();
	buf_release(&out);
}

static int
play_recording(struct play *p, int fd, struct err *e)
{
	static const int signals[] = { SIGWINCH, SIGINT, SIGTERM, SIGHUP,
		SIGQUIT };
	sigset_t set;
	int rc;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->reader.fd = fd;
	p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signal_fd < 0)
		return err_sys(e, -errno, "cannot wait for signals");
	p->has_keys = isatty(STDIN_FILENO) && terminal_raw() == 0;
	p->picture = picture_new();
	picture_mute(p->picture);
	rc = play_run(p, e);
	play_leave(p);
	picture_free(p->picture);
	screen_free(p->screen);
	record_reader_release(&p->reader);
	close(p->signal_fd);
	return rc;
}

/* Dies of SIG, so that who waits for this process knows why it ended. */
static void
play_die(int sig)
{
	sigset_t set;

	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* A number of seconds or a factor; false when TEXT is none within the limits. */
static bool
play_number(const char *text, double least, double most, double *out)
{
	char *end;

	if (!text)
		return true;
	*out = strtod(text, &end);
	return end != text && !*end && *out >= least && *out <= most;
}

int
verb_rec_play(struct cli *c, int argc, char **argv)
{
	const char *speed = NULL, *idle = NULL;
	const struct arg_option options[] = {
		{ 's', ARG_TEXT, "speed", &speed },
		{ 'i', ARG_TEXT, "idle", &idle },
	};
	struct play p = { .speed = 1, .idle = PLAY_IDLE_MAX };
	struct err e = { 0 };
	autoclose int fd = -1;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "which recording?");
	if (!play_number(speed, PLAY_SPEED_MIN, PLAY_SPEED_MAX, &p.speed))
		return cli_usage(c, "a speed is a number from %g to %g",
		    PLAY_SPEED_MIN, PLAY_SPEED_MAX);
	if (!play_number(idle, 0, PLAY_IDLE_MAX, &p.idle))
		return cli_usage(c, "the longest pause is a number of seconds");
	if (!isatty(STDOUT_FILENO))
		return cli_fail(CLI_FAILED,
		    "the output is not a terminal; `berth rec cat` copies a "
		    "recording");
	code = record_open(c, argv[0], &fd, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	if (play_recording(&p, fd, &e) < 0)
		return cli_fail(CLI_FAILED, "%s", e.msg);
	if (p.ended_by)
		play_die(p.ended_by);
	return CLI_DONE;
}
