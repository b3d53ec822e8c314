/* Templates; see template.h. */
#include "sandbox/template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sandbox/provider.h"

static const struct {
	const char *name, *provider;
} template_built_in[] = {
	{ SANDBOX_TEMPLATE_AUTO, "native" },
	{ "native", "native" },
	{ "local", "local" },
};

static int
template_unknown(const struct conf *c, const char *name, struct err *e)
{
	char list[160] = "", shown[80];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(template_built_in); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
		    i ? ", " : "", template_built_in[i].name);
	(void)c;
	text_escape(name, strlen(name), shown, sizeof(shown));
	return err_set(e, -ENOENT, "there is no template \"%s\"; there is: %s",
	    shown, list);
}

int
sandbox_template(const struct conf *c, const char *name,
    struct sandbox_spec *io, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(template_built_in); i++) {
		if (strcmp(name, template_built_in[i].name) != 0)
			continue;
		snprintf(io->provider, sizeof(io->provider), "%s",
		    template_built_in[i].provider);
		io->rootfs[0] = '\0';
		io->network = SANDBOX_NET_LOOPBACK;
		io->cpu_percent = 0;
		io->memory_bytes = 0;
		io->pids_max = SANDBOX_PIDS_FALLBACK;
		return 0;
	}
	return template_unknown(c, name, e);
}
