/* The provider `local`: a directory of this machine and one of its users. */
#ifndef SANDBOX_LOCAL_H
#define SANDBOX_LOCAL_H

struct sandbox_provider;

/* Static; for the registry's table. */
const struct sandbox_provider *sandbox_local(void);

#endif
