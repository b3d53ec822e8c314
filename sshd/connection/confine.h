/*
 * What keeps a broken or taken-over connection process small: an account of
 * its own, resource limits, and a watchdog against endless loops.
 */
#ifndef SSHD_CONNECTION_CONFINE_H
#define SSHD_CONNECTION_CONFINE_H

struct err;

/*
 * Started as root, leaves the file system and becomes the account berth-net
 * (when there is none, stays and logs that once); gives up new privileges, core
 * dumps and forks, bounds descriptors and memory for MAX_CHANNELS channels, and
 * then makes no other system calls than it needs. A build with sanitizers keeps
 * files, memory and calls. 0 or a negative errno with a sentence: then the
 * process must not go on.
 */
int confine_self(unsigned max_channels, struct err *e);

/*
 * Ends the process by SIGPROF when one turn of the loop burns 10 s of CPU: a
 * client can name a packet size that makes libssh loop for ever. Called once a
 * turn.
 */
void confine_feed_watchdog(void);

#endif
