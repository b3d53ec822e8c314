/* Base64 (RFC 4648 4) of bytes for the control socket. */
#ifndef CLI_BASE64_H
#define CLI_BASE64_H

#include <stddef.h>

/* The N bytes of P with padding, as a new string that the caller frees. */
char *base64_encode(const void *p, size_t n);

#endif
