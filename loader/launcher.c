// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/launcher.h"

#include <stddef.h>
#include <string.h>

static const char container[] =
	"its work runs in processes that a container engine starts, which are not recorded: run "
	"gpucollect in the container, or attach to what runs there with -p PID, or record all with -a";
static const char cluster[] =
	"its work runs in processes that others start, maybe on other machines, which are not recorded: "
	"put gpucollect before the program itself, or attach on that machine with -p PID";
static const char ray[] =
	"its work runs in workers that Ray's own processes start, which are not recorded: attach to "
	"them with -p PID (ray::… in ps), or record all with -a";
static const char user[] =
	"it gives its command an environment of its own, in which the timing library is not named: "
	"let sudo start gpucollect, which runs its command as the user that called sudo";

static const struct launcher {
	const char *name, *advice;
} launchers[] = {
	{ "docker", container }, { "podman", container }, { "nerdctl", container },
	{ "ctr", container }, { "crictl", container }, { "lxc", container }, { "incus", container },
	{ "kubectl", cluster }, { "oc", cluster }, { "srun", cluster }, { "sbatch", cluster },
	{ "salloc", cluster }, { "qsub", cluster }, { "bsub", cluster }, { "flux", cluster },
	{ "ssh", cluster }, { "systemd-run", cluster }, { "ray", ray },
	{ "sudo", user }, { "doas", user }, { "su", user }, { "runuser", user }, { "pkexec", user },
};

const char *launcher__advice(const char *command)
{
	const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (!strcmp(name, launchers[i].name))
			return launchers[i].advice;
	return NULL;
}
