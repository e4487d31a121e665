/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process that reads one file's debug information and answers questions of lines_reply.h. */
#ifndef SYMBOLS_LINES_WORKER_H
#define SYMBOLS_LINES_WORKER_H

#include <sys/types.h>

/* `alt` may be -1. Its pid, and one end of a SOCK_SEQPACKET socket in *sock; or negative errno. */
pid_t lines_worker__start(int fd, int alt, int *sock);

#endif
