/*
 * The frames that berth's processes exchange; this header is the truth and
 * PROTOCOL.md explains it. Three links carry them, all AF_UNIX stream sockets:
 *
 *   viewer     keeper <-> berth-sshd, keeper <-> berth (attach, tail)
 *   keeper     manager <-> keeper
 *   connection manager <-> berth-sshd
 *
 * Header, 8 bytes, big-endian: u32 length of the payload (bit 31 set: one
 * descriptor rides along), u8 type, u8 arg, u16 tag. A reply carries the tag of
 * its request. The shape of each payload stands under its enum value; "str" is
 * u32 length and bytes, "strv" a u32 count of str.
 */
#ifndef SESSIONS_WIRE_FRAME_H
#define SESSIONS_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

/*
 * The format of this header. A keeper or a connection may be older than its
 * manager by one; both then speak the older one. What is marked "2:" came with
 * version 2. HELLO never changes its shape.
 */
#define FRAME_VERSION        2U
#define FRAME_VERSION_OLDEST 1U
#define FRAME_HEADER_SIZE    8
#define FRAME_HAS_FD         (1U << 31)

/*
 * The longest payload of all: an exec command of 256 KiB with 128 variables of
 * 4 KiB each in FRAME_LAUNCH.
 */
#define FRAME_MAX (1U << 20)

/* The longest payload of FRAME_DATA. */
#define FRAME_DATA_MAX   (64U << 10)
#define FRAME_DATA_MAX_1 (32U << 10) /* towards version 1 */

/* What a receiver grants per stream at the start; it never owes more. */
#define FRAME_WINDOW (256U << 10)

/* The same for the output of a bound pipe session: nobody's keys wait. */
#define FRAME_WINDOW_PIPE (1024U << 10)

enum frame_stream {
	STREAM_IN,
	STREAM_OUT,
	STREAM_ERR,
	STREAM_COUNT
};

enum frame_type {
	/* Viewer link. Data needs credit; everything else overtakes it. */
	FRAME_DATA = 0x10,
	/* arg stream; the bytes. At most FRAME_DATA_MAX and the credit left */
	FRAME_CREDIT,
	/* arg stream; u32 more bytes that the receiver of this may send */
	FRAME_EOF,
	/*
	 * arg stream; nothing. Sent behind the last data of that stream;
	 * viewer to keeper with STREAM_OUT: a pipe on loan goes back
	 */
	FRAME_RESIZE,
	/* viewer to keeper; u32 cols, rows, xpixel, ypixel; 0 = unknown */
	FRAME_SIGNAL,
	/* viewer to keeper; arg signal number of Linux */
	FRAME_BREAK,
	/* viewer to keeper; u32 length in ms (RFC 4335) */
	FRAME_DETACH,
	/*
	 * keeper to viewer; str why. Nothing follows, the session goes on. 2:
	 * arg 1 when the viewer wished it; viewer to keeper: nothing; that wish
	 */
	FRAME_EXIT,
	/* keeper to viewer; struct wire_exit. How the process ended */
	FRAME_END,
	/* keeper to viewer; nothing. No more data follows on any stream */
	FRAME_BORROW,
	/* 2: viewer to keeper; arg STREAM_OUT; nothing: may I read the pipe? */
	FRAME_PIPE,
	/* keeper to viewer; arg STREAM_OUT; descriptor: the pipe, on loan */
	FRAME_BORROWED,
	/* viewer to keeper; arg STREAM_OUT; u32 bytes read of it since */

	/* Keeper link, manager to keeper. */
	FRAME_LAUNCH = 0x40,
	/* struct wire_launch; descriptor: the recording, if it has one */
	FRAME_VIEWER,
	/* tag, struct wire_viewer; descriptor: the keeper's end of the pair */
	FRAME_KILL,
	/* arg signal; to the foreground group, else the leader's group */
	FRAME_STOP,
	/* u32 grace in ms: HUP, CONT, TERM, after the grace KILL, to all */
	FRAME_DROP,
	/* u64 attachment, str why: end that viewer with FRAME_DETACH */
	FRAME_INPUT,
	/* tag; the bytes, at most FRAME_DATA_MAX: typed like a viewer's */
	FRAME_INPUT_EOF,
	/* tag; closes stdin of a pipe session, behind queued input */
	FRAME_SET_SIZE,
	/* tag; u32 cols, rows: the size stays that; 0, 0: that of viewers */
	FRAME_FLUSH,
	/* tag; write and fdatasync what the recorder holds, then FRAME_OK */
	FRAME_BYE,
	/* nothing: FRAME_EXITED is stored, the keeper may go */
	FRAME_TAKE,
	/*
	 * 2: u32 version, u64 generation: first frame of a manager that was not
	 * there at the start. Answered by HELLO, what it missed and VIEWERS, or
	 * by ERROR when the generation is not above the last one
	 */
	FRAME_SCREEN,
	/*
	 * 2: tag; arg enum wire_screen; descriptor: a memory file. The text of
	 * the terminal goes into it, then comes FRAME_TEXT
	 */
	FRAME_WHO,
	/* 2: nothing: FRAME_VIEWER_STATS, changed or not */
	FRAME_ENTER = 0x50,
	/*
	 * struct wire_entry; descriptor: a pidfd of a process in the sandbox.
	 * Before LAUNCH, whose process then is started inside
	 */
	FRAME_SLEEP,
	/* 2: arg 1: the sandbox is suspended, tell when keys come; 0: it runs */

	/* Keeper link, keeper to manager. */
	FRAME_HELLO = 0x60,
	/* struct wire_hello: first frame on every link to a manager; its
	 * state counts when it answers TAKE (1: always) */
	FRAME_STARTED,
	/* u32 pid, u64 start time in ticks (/proc/PID/stat 22), u64 wall ms */
	FRAME_FAILED,
	/*
	 * str why the process could not be started; then the keeper goes. arg
	 * 127 or 126 when there is no such program, or it is none; else 0
	 */
	FRAME_VIEWER_ACK,
	/* tag; arg 1 attached, 0 ended; u64 attachment */
	FRAME_VIEWER_GONE,
	/* struct wire_left */
	FRAME_INDEX,
	/* u32 count of { u64 t_ms, u64 offset }: rows of recording_index */
	FRAME_STATS,
	/* struct wire_stats, at most once a second and only when changed */
	FRAME_EXITED,
	/* struct wire_exited: once; repeated on a new link until FRAME_BYE */
	FRAME_VIEWERS,
	/* 2: u32 count of { u64 attachment, str label }: who is attached */
	FRAME_TEXT,
	/* 2: tag; u32 cols, rows: the file of FRAME_SCREEN holds the text */
	FRAME_VIEWER_STATS,
	/*
	 * 2: u32 count of { u64 attachment, u32 cols, rows, resyncs }: all who
	 * are attached, with STATS when something of it changed
	 */
	FRAME_LOG,
	/*
	 * 2: u32 lines that were lost since the last ones, u32 count of str:
	 * lines of stderr without their LF, see LAUNCH_LOG_STDERR
	 */
	FRAME_TYPED,
	/* 2: nothing: somebody types although it sleeps; once a SLEEP */

	/* Connection link, berth-sshd to manager. */
	FRAME_AUTH = 0x80,
	/* tag; struct wire_auth */
	FRAME_OPEN,
	/* tag; arg enum wire_open: may this connection open a channel? */
	FRAME_ATTACH,
	/* tag; struct wire_run without a command: the shared shell */
	FRAME_RUN,
	/* tag; struct wire_run: a private process bound to the channel */
	FRAME_FORWARD,
	/* 2: tag; struct wire_forward: a connection to its host and port */
	FRAME_LISTEN,
	/* 2: tag; str address, u32 port (0 = any): listen in the sandbox */
	FRAME_UNLISTEN,
	/* 2: tag; str address, u32 port as bound: no more */
	FRAME_FORWARD_END,
	/* 2: u32 id, u64 bytes to the sandbox, u64 bytes from it */

	/* Connection link, manager to berth-sshd. */
	FRAME_AUTH_REPLY = 0xa0,
	/* tag; arg enum wire_verdict; u32 WIRE_MAY_* flags, str why */
	FRAME_CHANNEL,
	/*
	 * tag; arg 1 if it is a PTY; 2: u32 version of the keeper; descriptor:
	 * the viewer's end of the pair
	 */
	FRAME_CLOSE,
	/* str why: tell the client, disconnect */
	FRAME_SOCKET,
	/* 2: tag; u32 id; descriptor: the connection that FORWARD asked for */
	FRAME_LISTENING,
	/* 2: tag; u32 bound port */
	FRAME_FORWARDED,
	/*
	 * 2: u32 id, struct wire_forward with the address as LISTEN named it, the
	 * bound port and who connected; descriptor: the accepted connection
	 */

	FRAME_PROGRESS,
	/* 2: tag of an ATTACH; str line: what it waits for */

	/* Replies on any link. */
	FRAME_OK = 0xe0,
	/* tag; nothing */
	FRAME_ERROR
	/* tag; arg exit code of the berth command line (3, 4, 5, 1); str why */
};

struct frame_header {
	uint32_t length; /* of the payload, without FRAME_HAS_FD */
	uint8_t type, arg;
	uint16_t tag;
	uint8_t has_fd;
};

/* What a frame of DATA may hold for a peer that speaks VERSION. */
static inline uint32_t
frame_data_max(uint32_t version)
{
	return version < 2 ? FRAME_DATA_MAX_1 : FRAME_DATA_MAX;
}

/* The version that two ends speak when one of them speaks up to THEIRS. */
static inline uint32_t
frame_version(uint32_t theirs)
{
	return theirs < FRAME_VERSION ? theirs : FRAME_VERSION;
}

/* Encodes H into OUT. */
void frame_encode_header(
    const struct frame_header *h, uint8_t out[FRAME_HEADER_SIZE]);

/*
 * Decodes a header; -EPROTO if the length is over FRAME_MAX. The type is not
 * judged: receivers end the link on a type they do not know.
 */
int frame_decode_header(
    const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *out);

/* "DATA", "CREDIT", ... for logs; "?" for an unknown type. */
const char *frame_name(uint8_t type);

#endif
