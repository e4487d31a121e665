/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files behind a server: of a network, or of a program (FUSE). To ask for such a file may take for ever,
 * and not even a signal ends it; so a process of its own asks, one for each file system, and nobody waits
 * for it longer than a moment. A server that doesn't answer is left alone until it does.
 *
 * A far file has a descriptor like any other, to be closed by far__close. Behind it is an empty file:
 * who doesn't read it by far__read finds nothing. For use by several threads.
 */
#ifndef BASE_FAR_H
#define BASE_FAR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAR_WAIT_MS 250		/* for one answer */

/*
 * A descriptor for the file behind `handle` (O_PATH), of `size` bytes, on the file system `device` (any
 * number that tells them apart), though it may not be open yet. Not for use by a thread that ends before
 * the program. Negative errno.
 */
int far__open(int handle, uint64_t device, uint64_t size);
void far__close(int fd);	/* of a file that isn't far: close(2) */

/*
 * pread(2), and the size of a regular file (else EISDIR), whether it is far or not; -1 with errno, ETIMEDOUT
 * where the server doesn't answer.
 */
ssize_t far__read(int fd, void *buf, size_t len, uint64_t offset);

/*
 * process_vm_readv(2) of one range. A process may have memory that is only there when somebody answers, too
 * (userfaultfd, mapped files of FUSE): a process of its own reads, one for each user and up to four where
 * some of that user's don't answer, and is not waited for. Bytes read, which may be fewer; -1 with errno,
 * ETIMEDOUT where there is no answer.
 * A thread that ends before the program may only ask once far__expect_memory was called for that process.
 */
ssize_t far__read_memory(pid_t pid, uint64_t addr, void *buf, size_t len);
int far__expect_memory(pid_t pid);	/* 0 or negative errno */
int64_t far__size(int fd);

#endif
