/* Templates; see template.h. */
#include "sandbox/template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "conf/conf.h"
#include "sandbox/provider.h"

static const enum sandbox_network template_networks[] = {
	[CONF_NETWORK_LOOPBACK] = SANDBOX_NET_LOOPBACK,
	[CONF_NETWORK_HOST] = SANDBOX_NET_HOST,
	[CONF_NETWORK_NONE] = SANDBOX_NET_NONE,
};

int
sandbox_template(const struct conf *c, const char *name,
    struct sandbox_spec *io, struct err *e)
{
	struct conf_template t;
	int rc = conf_template_find(c, name, &t, e);

	if (rc < 0)
		return rc;
	if (strlen(t.rootfs) >= sizeof(io->rootfs))
		return err_set(e, -ENAMETOOLONG,
		    "template %s: the path of its rootfs is too long", name);
	snprintf(io->provider, sizeof(io->provider), "%s", t.provider);
	if (strlen(t.image) >= sizeof(io->image))
		return err_set(e, -ENAMETOOLONG,
		    "template %s: its image is too long", name);
	snprintf(io->image, sizeof(io->image), "%s", t.image);
	snprintf(io->rootfs, sizeof(io->rootfs), "%s", t.rootfs);
	io->network = template_networks[t.network];
	io->cpu_percent = (uint32_t)t.cpu_percent;
	io->memory_bytes = t.memory_bytes;
	io->pids_max = t.pids_max;
	io->workspace_bytes = t.workspace_bytes;
	return 0;
}
