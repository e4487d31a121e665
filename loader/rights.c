// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/base/text.h"

#define BTF "/sys/kernel/btf/vmlinux"

static const struct right {
	int cap;
	const char *name;
	const char *what_for;
} needed[] = {
	{ CAP_BPF, "CAP_BPF", "load BPF programs" },
	{ CAP_PERFMON, "CAP_PERFMON", "sample CPUs and probe processes" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "read the mappings of processes" },
};

static uint64_t effective(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};

	if (syscall(SYS_capget, &head, data))
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

/* Its numbers must be those that we get and give: unshare --pid alone leaves the old one mounted. */
static int check_proc(char **why)
{
	char self[32] = "";

	if (readlink("/proc/self", self, sizeof(self) - 1) > 0 && strtol(self, NULL, 10) == getpid())
		return 0;
	return text__why(why, -EOPNOTSUPP, "/proc/self is \"%s\", not %d: /proc is not mounted, or is that "
			 "of another PID namespace; mount -t proc proc /proc", self, (int)getpid());
}

int rights__check(char **why)
{
	uint64_t caps = effective();
	size_t i;

	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		int cap = needed[i].cap;

		/* Before 5.8, and still, CAP_SYS_ADMIN implies the two newer ones. */
		if (caps & 1ull << cap)
			continue;
		if (cap != CAP_SYS_PTRACE && (caps & 1ull << CAP_SYS_ADMIN))
			continue;
		return text__why(why, -EPERM, "missing privilege %s (to %s); effective capabilities are "
				 "%#llx; run it with sudo", needed[i].name, needed[i].what_for,
				 (unsigned long long)caps);
	}
	if (access(BTF, R_OK))
		return text__why(why, -EOPNOTSUPP, "%s can't be read (%m): this kernel was built without "
				 "CONFIG_DEBUG_INFO_BTF, or /sys is not mounted; boot a kernel with BTF "
				 "or mount -t sysfs sysfs /sys", BTF);
	return check_proc(why);
}
