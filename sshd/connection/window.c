/* Wider windows, see window.h. Runs in berth-sshd. */
#include "sshd/connection/window.h"

#include <libssh/libssh.h>
#include <stdint.h>

#include "base/mem.h"
#include "sshd/connection/chan.h"
#include "sshd/connection/peer.h"

/* So much a client may send unasked: 60 MB a second at 50 ms. */
#define WINDOW_BYTES (3U << 20)

/* It is opened again after so much. */
#define WINDOW_STEP (512U << 10)

/* What a stopped process may cost is bounded by their number. */
#define WINDOW_CHANNELS_MAX 8

/*
 * Asked for more than the window, ssh_channel_read_timeout() opens it so far,
 * whether or not something is there to read. Newer libraries have a window of
 * 2 MiB and do not.
 */
void
window_widen(struct chan *c)
{
	/* Never touched where nothing is read into it. */
	static uint8_t *space;
	int n;

	if (c->state != CHAN_LIVE || c->run.has_pty || c->is_in_paused ||
	    c->has_in_eof || c->in_unopened < WINDOW_STEP ||
	    c->peer->n_channels > WINDOW_CHANNELS_MAX)
		return;
	if (!space)
		space = xmalloc(WINDOW_BYTES);
	c->in_unopened = 0;
	n = ssh_channel_read_timeout(c->ssh, space, WINDOW_BYTES, 0, 0);
	if (n > 0)
		buf_put(&c->in, space, (size_t)n);
}
