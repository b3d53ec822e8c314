/* Bytes between a buffer and libssh; see flow.h. Runs in berth-sshd. */
#include "sshd/connection/flow.h"

#include "base/buf.h"
#include "sshd/connection/transport.h"

int
flow_push(struct transport *t, ssh_channel ssh, struct buf *b, bool is_stderr)
{
	uint32_t window, n = FLOW_SLICE;
	int k;

	if (buf_len(b) == 0 || transport_is_clogged(t))
		return 0;
	window = ssh_channel_window_size(ssh);
	n = n < window ? n : window;
	n = n < buf_len(b) ? n : (uint32_t)buf_len(b);
	if (n == 0)
		return 0;
	k = is_stderr ? ssh_channel_write_stderr(ssh, buf_head(b), n)
		      : ssh_channel_write(ssh, buf_head(b), n);
	if (k < 0)
		return -1;
	/* 0: the keys are being changed, or the window closed meanwhile. */
	buf_consume(b, (size_t)k);
	return k;
}

bool
flow_pull(ssh_channel ssh, struct buf *in, bool *is_paused)
{
	int n = ssh_channel_poll(ssh, 0);
	int k;

	if (n <= 0) {
		*is_paused = false;
		return false;
	}
	k = ssh_channel_read_nonblocking(
	    ssh, buf_reserve(in, (size_t)n), (uint32_t)n, 0);
	if (k > 0)
		buf_commit(in, (size_t)k);
	return k > 0;
}
