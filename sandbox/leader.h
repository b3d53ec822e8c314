/*
 * What berth runs inside a sandbox that it reaches by an engine's client: the
 * client's end says nothing about the process inside, so that one leaves its pid
 * where a signal finds it. Needs sh, /proc and one of /dev/shm and /tmp there,
 * which sandboxes of every engine have. Pure; both programs.
 */
#ifndef SANDBOX_LEADER_H
#define SANDBOX_LEADER_H

struct sandbox_run;

/*
 * The words that stand for {leader}: the process that R describes, with its
 * directory and environment. The caller frees with strv_free().
 */
char **leader_start(const struct sandbox_run *r);

/*
 * The words that stand for {signal}; names of signals ("TERM") follow. INT, QUIT
 * and kin go to the foreground group of the session SID, HUP, CONT, TERM and
 * KILL to all processes of the session. A session that has ended is success.
 */
char **leader_signal(const char *sid);

/* The words that stand for {measure}: prints what leader_parse() reads. */
char **leader_measure(void);

/*
 * The words that stand for {pack} and {unpack}: DIR as a tar on stdout, and one
 * from stdin in the place of all that is in DIR. They need tar there.
 */
char **leader_pack(const char *dir);
char **leader_unpack(const char *dir);

/* True if there is an executable file PATH; the words for that. */
char **leader_probe(const char *path);

#endif
