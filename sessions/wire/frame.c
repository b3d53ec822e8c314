/* Header codec and names of the frames; see frame.h. */
#include "sessions/wire/frame.h"

#include <errno.h>

static const char *const frame_names[256] = {
	[FRAME_DATA] = "DATA",
	[FRAME_CREDIT] = "CREDIT",
	[FRAME_EOF] = "EOF",
	[FRAME_RESIZE] = "RESIZE",
	[FRAME_SIGNAL] = "SIGNAL",
	[FRAME_BREAK] = "BREAK",
	[FRAME_DETACH] = "DETACH",
	[FRAME_EXIT] = "EXIT",
	[FRAME_END] = "END",
	[FRAME_BORROW] = "BORROW",
	[FRAME_PIPE] = "PIPE",
	[FRAME_BORROWED] = "BORROWED",
	[FRAME_LAUNCH] = "LAUNCH",
	[FRAME_VIEWER] = "VIEWER",
	[FRAME_KILL] = "KILL",
	[FRAME_STOP] = "STOP",
	[FRAME_DROP] = "DROP",
	[FRAME_INPUT] = "INPUT",
	[FRAME_INPUT_EOF] = "INPUT_EOF",
	[FRAME_SET_SIZE] = "SET_SIZE",
	[FRAME_FLUSH] = "FLUSH",
	[FRAME_BYE] = "BYE",
	[FRAME_TAKE] = "TAKE",
	[FRAME_SCREEN] = "SCREEN",
	[FRAME_WHO] = "WHO",
	[FRAME_ENTER] = "ENTER",
	[FRAME_SLEEP] = "SLEEP",
	[FRAME_HELLO] = "HELLO",
	[FRAME_STARTED] = "STARTED",
	[FRAME_FAILED] = "FAILED",
	[FRAME_VIEWER_ACK] = "VIEWER_ACK",
	[FRAME_VIEWER_GONE] = "VIEWER_GONE",
	[FRAME_INDEX] = "INDEX",
	[FRAME_STATS] = "STATS",
	[FRAME_EXITED] = "EXITED",
	[FRAME_VIEWERS] = "VIEWERS",
	[FRAME_TEXT] = "TEXT",
	[FRAME_VIEWER_STATS] = "VIEWER_STATS",
	[FRAME_LOG] = "LOG",
	[FRAME_TYPED] = "TYPED",
	[FRAME_AUTH] = "AUTH",
	[FRAME_OPEN] = "OPEN",
	[FRAME_ATTACH] = "ATTACH",
	[FRAME_RUN] = "RUN",
	[FRAME_FORWARD] = "FORWARD",
	[FRAME_LISTEN] = "LISTEN",
	[FRAME_UNLISTEN] = "UNLISTEN",
	[FRAME_FORWARD_END] = "FORWARD_END",
	[FRAME_AUTH_REPLY] = "AUTH_REPLY",
	[FRAME_CHANNEL] = "CHANNEL",
	[FRAME_CLOSE] = "CLOSE",
	[FRAME_SOCKET] = "SOCKET",
	[FRAME_LISTENING] = "LISTENING",
	[FRAME_PROGRESS] = "PROGRESS",
	[FRAME_FORWARDED] = "FORWARDED",
	[FRAME_OK] = "OK",
	[FRAME_ERROR] = "ERROR",
};

void
frame_encode_header(
    const struct frame_header *h, uint8_t out[FRAME_HEADER_SIZE])
{
	uint32_t length = h->length | (h->has_fd ? FRAME_HAS_FD : 0);

	out[0] = (uint8_t)(length >> 24);
	out[1] = (uint8_t)(length >> 16);
	out[2] = (uint8_t)(length >> 8);
	out[3] = (uint8_t)length;
	out[4] = h->type;
	out[5] = h->arg;
	out[6] = (uint8_t)(h->tag >> 8);
	out[7] = (uint8_t)h->tag;
}

int
frame_decode_header(
    const uint8_t in[FRAME_HEADER_SIZE], struct frame_header *out)
{
	uint32_t length = (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 |
			  (uint32_t)in[2] << 8 | in[3];

	if ((length & ~FRAME_HAS_FD) > FRAME_MAX)
		return -EPROTO;
	*out = (struct frame_header){
		.length = length & ~FRAME_HAS_FD,
		.type = in[4],
		.arg = in[5],
		.tag = (uint16_t)((unsigned)in[6] << 8 | in[7]),
		.has_fd = (length & FRAME_HAS_FD) != 0,
	};
	return 0;
}

const char *
frame_name(uint8_t type)
{
	return frame_names[type] ? frame_names[type] : "?";
}
