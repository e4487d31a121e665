// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/file_systems.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/table.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u		/* Linux 5.8 */
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000u	/* Linux 6.8: never used again */
#endif
#define MNT_ID_AT 144			/* in struct statx: older C libraries don't name it */
#define BELIEVED_NS 1000000000ull	/* numbers of mounts are used again on older kernels */

/* An overlay is taken for what it mostly is: layers on a disk. */
static const char *const near_types[] = {
	"aufs", "bcachefs", "btrfs", "cramfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs",
	"hugetlbfs", "iso9660", "jfs", "nilfs2", "ntfs3", "overlay", "ramfs", "reiserfs", "rootfs",
	"squashfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
};

struct file_systems {
	struct table *known;	/* number of a mount -> bool near, or when it was seen, << 1 */
	uint32_t memory_major, memory_minor;	/* of memfds: a mount that is nowhere */
	bool unique;
};

struct file_systems *file_systems__new(void)
{
	struct file_systems *f = calloc(1, sizeof(*f));
	int fd = memfd_create("where", MFD_CLOEXEC);
	struct statx st;

	if (!f || fd < 0)
		goto fail;
	f->known = table__new();
	if (!f->known || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID_UNIQUE, &st))
		goto fail;
	f->unique = st.stx_mask & STATX_MNT_ID_UNIQUE;
	f->memory_major = st.stx_dev_major;
	f->memory_minor = st.stx_dev_minor;
	close(fd);
	return f;
fail:
	if (fd >= 0)
		close(fd);
	file_systems__free(f);
	return NULL;
}

void file_systems__free(struct file_systems *f)
{
	if (!f)
		return;
	table__free(f->known);
	free(f);
}

bool file_systems__parse(const char *line, uint64_t id, bool *near)
{
	const char *type = strstr(line, " - ");
	char *end;
	size_t i, len;

	if (strtoull(line, &end, 10) != id || *end != ' ' || !type)
		return false;
	type += 3;
	len = strcspn(type, " \n");
	*near = false;
	for (i = 0; i < sizeof(near_types) / sizeof(near_types[0]); i++)
		*near |= strlen(near_types[i]) == len && !strncmp(type, near_types[i], len);
	return true;
}

static bool look_in(const char *path, uint64_t id, bool *near)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	bool found = false;
	size_t size = 0;

	while (f && !found && getline(&line, &size, f) > 0)
		found = file_systems__parse(line, id, near);
	free(line);
	if (f)
		fclose(f);
	return found;
}

static uint64_t mount_id(int handle, unsigned int mask)
{
	const unsigned int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct statx st;
	uint64_t id;

	if (statx(handle, "", flags, mask, &st) || !(st.stx_mask & mask))
		return 0;
	memcpy(&id, (char *)&st + MNT_ID_AT, sizeof(id));
	return id;
}

static bool look_up(pid_t tgid, int handle)
{
	uint64_t id = mount_id(handle, STATX_MNT_ID);
	bool near = false;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)tgid);
	return id && (look_in(path, id, &near) || look_in("/proc/self/mountinfo", id, &near)) && near;
}

bool file_systems__is_near(struct file_systems *f, pid_t tgid, int handle)
{
	uint64_t id, value, now = clock__now_ns();
	struct statx st;
	bool near;

	if (statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return false;
	/* A disk's; memory's. */
	if (st.stx_dev_major ||
	    (!f->memory_major && st.stx_dev_minor == f->memory_minor))
		return true;
	id = mount_id(handle, f->unique ? STATX_MNT_ID_UNIQUE : STATX_MNT_ID);
	if (id && table__get(f->known, id, &value) &&
	    (f->unique || now < (value >> 1) + BELIEVED_NS))
		return value & 1;
	near = look_up(tgid, handle);
	/* That it was not found is true of this process alone. */
	if (near)
		table__set(f->known, id, now << 1 | near);
	return near;
}
