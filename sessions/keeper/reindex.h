/*
 * Makes the index rows of a recording again from its file: for one whose rows a
 * crash of the manager has lost. Runs in a berth-session of its own, started
 * with --index, descriptor 3 = a link to the manager, 4 = the recording.
 */
#ifndef SESSIONS_KEEPER_REINDEX_H
#define SESSIONS_KEEPER_REINDEX_H

/*
 * Reads the recording FILE_FD from its beginning and sends FRAME_INDEX on the
 * blocking socket LINK_FD: a row at least every 1 MiB or 10 s of output, each
 * the offset of an event line. 0 or a negative errno.
 */
int reindex_run(int link_fd, int file_fd);

#endif
