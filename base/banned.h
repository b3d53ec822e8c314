/*
 * Forced into every file of the product: functions that are never the right
 * choice here become a compile error. (`random` is a name in <sodium.h>.)
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok strncpy strncat gets
#pragma GCC poison atoi atol atoll atof system popen rand srand srandom
#pragma GCC poison tmpnam mktemp tempnam gmtime localtime ctime asctime

#endif
