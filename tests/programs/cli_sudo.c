// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What sudo does with environment and processes, for whoever may run it: the program stands setuid root
 * under the name sudo in a test's folder.
 * usage: sudo [-t] [NAME=VALUE]... COMMAND [ARG]...    -t: on a terminal of its own, with a monitor between
 */
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void set(const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	setenv(name, text, 1);
}

/* What env_reset leaves and sets. */
static void reset_environment(uid_t uid, gid_t gid, const char *command)
{
	const char *term = getenv("TERM"), *lang = getenv("LANG");

	clearenv();
	setenv("TERM", term ? term : "unknown", 1);
	if (lang)
		setenv("LANG", lang, 1);
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("USER", "root", 1);
	setenv("LOGNAME", "root", 1);
	setenv("SHELL", "/bin/sh", 1);
	setenv("MAIL", "/var/mail/root", 1);
	setenv("SUDO_COMMAND", command, 1);
	setenv("SUDO_USER", "somebody", 1);
	set("SUDO_UID", uid);
	set("SUDO_GID", gid);
}

static int wait_for(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(char **argv)
{
	pid_t child = fork();

	if (!child) {
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	return wait_for(child);
}

/* Terminal output comes out on our own standard output. */
static int run_on_terminal(char **argv)
{
	char buf[4096];
	int terminal;
	ssize_t n;
	pid_t monitor = forkpty(&terminal, NULL, NULL, NULL);

	if (!monitor)
		_exit(run(argv));
	while ((n = read(terminal, buf, sizeof(buf))) > 0)
		if (write(STDOUT_FILENO, buf, (size_t)n) != n)
			break;
	return wait_for(monitor);
}

int main(int argc, char **argv)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int terminal = argc > 1 && !strcmp(argv[1], "-t"), first = 1 + terminal, command;

	for (command = first; command < argc && strchr(argv[command], '='); command++)
		;
	if (command >= argc)
		return 64;
	reset_environment(uid, gid, argv[command]);
	for (; first < command; first++)
		putenv(argv[first]);
	if (setgid(0) || setuid(0)) {
		perror("sudo");
		return 1;
	}
	return terminal ? run_on_terminal(argv + command) : run(argv + command);
}
