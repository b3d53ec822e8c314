/* Wider windows, see window.h. Runs in berth-sshd. */
#include "sshd/connection/window.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"

/* So much a client may send unasked: 60 MB a second at 50 ms. */
#define WINDOW_BYTES (3U << 20)

/* It is opened again after so much. */
#define WINDOW_STEP (512U << 10)

/* What a stopped process may cost is bounded by their number. */
#define WINDOW_CHANNELS_MAX 8

void
window_took(uint32_t *taken, uint32_t n)
{
	*taken = n > UINT32_MAX - *taken ? UINT32_MAX : *taken + n;
}

/*
 * Asked for more than the window, ssh_channel_read_timeout() opens it so far,
 * whether or not something is there to read. Newer libraries have a window of
 * 2 MiB and do not.
 */
void
window_widen(
    ssh_channel ssh, struct buf *in, uint32_t *taken, unsigned n_channels)
{
	/* Never touched where nothing is read into it. */
	static uint8_t *space;
	int n;

	if (*taken < WINDOW_STEP || n_channels > WINDOW_CHANNELS_MAX)
		return;
	if (!space)
		space = xmalloc(WINDOW_BYTES);
	*taken = 0;
	n = ssh_channel_read_timeout(ssh, space, WINDOW_BYTES, 0, 0);
	if (n > 0)
		buf_put(in, space, (size_t)n);
}
