/*
 * What berth-sandbox has of archives: nothing. Every start of a program pays for
 * the libraries that it links, so the library of archives is in a program of its
 * own, berth-archive, which sees sandbox/archive/use.c first.
 */
#include "sandbox/archive.h"

void
archive_use(void)
{
}
