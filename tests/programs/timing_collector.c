// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A small collector for the timing library's tests: starts a command with the library, reads every
 * channel that it and its children open, and writes what came as lines. No BPF: channels are found
 * by looking through the descriptors of the command's session.
 *
 *	timing_collector -l LIBRARY -o FILE [options] -- COMMAND…
 *	timing_collector -p PID -o FILE [options]	a process that has the library: one session,
 *			until standard input ends. Says "ready STATE REASON" when the session has begun
 *			or can't, "busy PID" (status 3) where another collector is at work
 *	-f		with -p: passes over a segment that another collector holds (inherited by fork)
 *	-s N	site (enum channel_site) for new channels	-c	say that the target is confined
 *	-S MS	stop each channel after so long			-m MS	fall mute (no heartbeat, no poll)
 *	-k WHEN	kill itself: at start, found, first (result), or after that many results; with -p
 *		also opened, claimed, beaten (each before the next step), stopped, passive, read
 *	-L FILE	print the command's process id into it
 *	-n	never open a channel				-w	wait for PASSIVE before the end
 *	-q	no line for each result, only counters		-t MS	between two looks (default 2)
 *	-e N,R	after R results: one launch of N is looked at (1: all again)
 *
 * Lines: state CH STATE REASON DETAIL SLOTS, device CH ORDINAL VERSION NAME, name CH GENERATION
 * FUNCTION STATUS NAME, result CH ID FUNCTION STREAM DURATION NAME CONTEXT DEVICE LAUNCHES WEIGHT
 * ENTRY FLAGS CAUSE LOAD ERROR COPY BYTES WAITED, more CH ID FURTHER…, graph CH GENERATION and
 * NAME:COPY:COUNT of each member, count CH KEY VALUE, exit STATUS. CH numbers the channels.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu_timing/reader.h"

#define MAX_CHANNELS 64

struct open_channel {
	int id;
	ino_t inode;		/* of the memfd: a process makes another one after exec */
	struct channel *channel;
	long opened;		/* ms */
	bool stopped, passive, broken;
};

static struct open_channel channels[MAX_CHANNELS];
static int nr_channels;
static FILE *out;
static const char *library, *kill_when, *pid_file;
static long stop_ms = -1, mute_ms = -1, look_ms = 2, results;
static int site = -1;
static unsigned every = 1;
static long every_after = -1;
static bool confined, never, wait_passive, quiet, pass_over;
static int of_process;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die_if(const char *when)
{
	if (kill_when && !strcmp(kill_when, when)) {
		fflush(out);
		kill(getpid(), SIGKILL);
	}
}

static void print_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (isgraph((unsigned char)text[i]) && text[i] != '%')
			fputc(text[i], out);
		else
			fprintf(out, "%%%02x", (unsigned char)text[i]);
	fputc('\n', out);
}

static void on_result(void *ctx, const struct channel_result *r)
{
	const struct open_channel *c = ctx;
	char count[32];

	if (!quiet)
		fprintf(out, "result %d %llu %llx %llx %llu %u %u %d %u %u %u %u %u %u %u %u %llu "
			"%llu\n", c->id, r->launch, r->function, r->stream, r->duration, r->name, r->context,
			r->device, r->launches, r->weight, r->entry, r->flags, r->cause, r->load,
			r->error, r->copy, r->bytes, r->waited);
	if (!quiet && r->launches > 1) {
		fprintf(out, "more %d %llu", c->id, r->launch);
		for (uint32_t i = 0; i + 1 < r->launches; i++)
			fprintf(out, " %llu", r->more[i].launch);
		fprintf(out, "\n");
	}
	snprintf(count, sizeof(count), "%ld", ++results);
	if (results == 1)
		die_if("first");
	die_if(count);
}

static void on_name(void *ctx, const struct channel_name *n)
{
	const struct open_channel *c = ctx;

	fprintf(out, "name %d %u %llx %u ", c->id, n->generation, n->function, n->status);
	print_text(n->text, n->len);
}

static void on_device(void *ctx, const struct channel_device *d)
{
	const struct open_channel *c = ctx;

	fprintf(out, "device %d %d %u ", c->id, d->device, d->version);
	print_text(d->text, d->len);
}

static void on_graph(void *ctx, const struct channel_graph *g, uint32_t nr)
{
	const struct open_channel *c = ctx;

	fprintf(out, "graph %d %u", c->id, g->generation);
	for (uint32_t i = 0; i < nr; i++)
		fprintf(out, " %u:%u:%u", g->member[i].name, g->member[i].copy, g->member[i].count);
	fputc('\n', out);
}

static const struct channel_handler handler = {
	.result = on_result, .name = on_name, .device = on_device, .graph = on_graph,
};

static bool known(ino_t inode)
{
	for (int i = 0; i < nr_channels; i++)
		if (channels[i].inode == inode)
			return true;
	return false;
}

static int fetch(int pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), ours;

	if (pidfd < 0)
		return -1;
	ours = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	close(pidfd);
	return ours;
}

static void try_open(int pid, int number)
{
	struct open_channel *c = &channels[nr_channels];
	int fd = fetch(pid, number), err;
	struct stat st;

	if (fd < 0)
		return;
	/* A forked child has its parent's descriptor too. */
	if (fstat(fd, &st) || known(st.st_ino) || nr_channels == MAX_CHANNELS) {
		close(fd);
		return;
	}
	err = channel__open(fd, &c->channel);
	close(fd);
	if (err == -EAGAIN)
		return;
	if (err) {
		fprintf(out, "refused %d %d\n", pid, err);
		return;
	}
	c->id = nr_channels;
	c->inode = st.st_ino;
	c->opened = now_ms();
	nr_channels++;
	die_if("found");
	if (site >= 0)
		channel__set_site(c->channel, (enum channel_site)site);
	if (confined)
		channel__set_confined(c->channel, true);
	channel__heartbeat(c->channel);
}

static void look_at(int pid, int session)
{
	char path[300], link[64];
	struct dirent *e;
	ssize_t n;
	DIR *dir;

	if (getsid(pid) != session)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, e->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (!strncmp(link, "/memfd:gpucollect", 17))
			try_open(pid, atoi(e->d_name));
	}
	if (dir)
		closedir(dir);
}

static void look(int session)
{
	struct dirent *e;
	DIR *dir = opendir("/proc");

	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			look_at(atoi(e->d_name), session);
	if (dir)
		closedir(dir);
}

static void serve(struct open_channel *c)
{
	struct channel_status status;
	int n;

	if (mute_ms >= 0 && now_ms() - c->opened >= mute_ms)
		return;
	channel__heartbeat(c->channel);
	if (stop_ms >= 0 && !c->stopped && now_ms() - c->opened >= stop_ms) {
		channel__stop(c->channel);
		c->stopped = true;
	}
	do {
		n = channel__poll(c->channel, &handler, c, 4096);
	} while (n > 0);
	if (every_after >= 0 && results >= every_after)
		channel__set_sampling(c->channel, every, 0);
	if (n < 0 && !c->broken) {
		fprintf(out, "broken %d\n", c->id);
		c->broken = true;
	}
	channel__status(c->channel, &status);
	c->passive = status.state == CHANNEL_PASSIVE;
}

/* The segment of a process that has one: any other memfd is refused. */
static bool open_of(int pid, struct open_channel *c)
{
	char path[300], link[64];
	pid_t holder = 0;
	struct dirent *e;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && !c->channel && (e = readdir(dir))) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, e->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strncmp(link, "/memfd:gpucollect", 17))
			continue;
		fd = fetch(pid, atoi(e->d_name));
		if (fd >= 0 && channel__open(fd, &c->channel))
			c->channel = NULL;
		close(fd);
		if (c->channel && pass_over && channel__claim(c->channel, &holder)) {
			channel__close(c->channel);
			c->channel = NULL;
		}
	}
	if (dir)
		closedir(dir);
	return c->channel;
}

static enum channel_state state_of(const struct open_channel *c)
{
	struct channel_status status;

	channel__status(c->channel, &status);
	return status.state;
}

static void print_counters(const struct open_channel *c)
{
	struct channel_counters sum;
	struct channel_status status;

	channel__status(c->channel, &status);
	fprintf(out, "state %d %d %d %u ", c->id, status.state, status.reason, status.detail);
	for (int i = CHANNEL_SLOT_WORDS - 1; i >= 0; i--)
		fprintf(out, "%016llx", (unsigned long long)status.slots[i]);
	fprintf(out, "\n");
	channel__counters(c->channel, &sum);
#define COUNT(key) fprintf(out, "count %d " #key " %llu\n", c->id, (unsigned long long)sum.key)
	COUNT(launched);
	COUNT(copies);
	COUNT(waits);
	COUNT(probes);
	COUNT(nested);
	COUNT(brackets);
	COUNT(names_lost);
	COUNT(lost_results);
	COUNT(lost_names);
	COUNT(lost_devices);
	for (int i = 0; i < NR_LAUNCH_ENTRIES; i++)
		if (sum.launches[i])
			fprintf(out, "count %d launches[%d] %llu\n", c->id, i,
				(unsigned long long)sum.launches[i]);
	for (int i = 0; i < NR_LAUNCH_CAUSES; i++)
		if (sum.results[i])
			fprintf(out, "count %d results[%d] %llu\n", c->id, i,
				(unsigned long long)sum.results[i]);
}

static void say_ready(const struct open_channel *c)
{
	struct channel_status status;

	channel__status(c->channel, &status);
	printf("ready %d %d\n", status.state, status.reason);
	fflush(stdout);
}

static bool input_has_ended(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char byte;

	return poll(&p, 1, (int)look_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void end_session(struct open_channel *c)
{
	long deadline = now_ms() + 20000;

	channel__stop(c->channel);
	die_if("stopped");
	while (state_of(c) != CHANNEL_PASSIVE && state_of(c) != CHANNEL_REFUSED &&
	       !kill(of_process, 0) && now_ms() < deadline) {
		serve(c);
		usleep(1000);
	}
	die_if("passive");
	serve(c);
	die_if("read");
}

static int record(void)
{
	struct open_channel *c = &channels[nr_channels];
	pid_t holder = 0;
	bool said = false;

	if (!open_of(of_process, c))
		return 2;
	nr_channels++;
	c->opened = now_ms();
	die_if("opened");
	if (channel__claim(c->channel, &holder)) {
		printf("busy %d\n", (int)holder);
		return 3;
	}
	die_if("claimed");
	if (site >= 0)
		channel__set_site(c->channel, (enum channel_site)site);
	channel__set_confined(c->channel, confined);
	channel__heartbeat(c->channel);
	die_if("beaten");
	while (!input_has_ended() && !kill(of_process, 0)) {
		serve(c);
		if (!said && state_of(c) != CHANNEL_STARTING) {
			say_ready(c);
			said = true;
		}
	}
	end_session(c);
	print_counters(c);
	channel__release(c->channel);
	channel__close(c->channel);
	fclose(out);
	return 0;
}

static void serve_all(void)
{
	for (int i = 0; i < nr_channels; i++)
		serve(&channels[i]);
}

static bool all_passive(void)
{
	for (int i = 0; i < nr_channels; i++)
		if (!channels[i].passive)
			return false;
	return true;
}

static int run(char **command)
{
	int status = 0, pid = fork();
	long look_again = 0;

	if (!pid) {
		setsid();
		setenv("CUDA_INJECTION64_PATH", library, 1);
		execvp(command[0], command);
		_exit(127);
	}
	if (pid_file) {
		FILE *f = fopen(pid_file, "we");

		if (f)
			fprintf(f, "%d\n", pid);
		if (!f || fclose(f))
			return 1;
	}
	die_if("start");
	while (!waitpid(pid, &status, WNOHANG)) {
		if (!never && now_ms() >= look_again) {
			look(pid);
			look_again = now_ms() + 5;
		}
		serve_all();
		usleep((useconds_t)look_ms * 1000);
	}
	for (int i = 0; wait_passive && i < 500 && !all_passive(); i++) {
		serve_all();
		usleep(2000);
	}
	serve_all();
	for (int i = 0; i < nr_channels; i++) {
		print_counters(&channels[i]);
		channel__close(channels[i].channel);
	}
	fprintf(out, "exit %d\n", status);
	fclose(out);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	char *rest;
	int o;

	out = stdout;
	while ((o = getopt(argc, argv, "+l:o:s:S:m:k:t:L:p:e:cfnwq")) != -1) {
		switch (o) {
		case 'p': of_process = atoi(optarg); break;
		case 'f': pass_over = true; break;
		case 'l': library = optarg; break;
		case 'o': out = fopen(optarg, "we"); break;
		case 's': site = atoi(optarg); break;
		case 'S': stop_ms = atol(optarg); break;
		case 'e': every = (unsigned)strtoul(optarg, &rest, 10), every_after = atol(rest + 1); break;
		case 'm': mute_ms = atol(optarg); break;
		case 'k': kill_when = optarg; break;
		case 't': look_ms = atol(optarg); break;
		case 'L': pid_file = optarg; break;
		case 'c': confined = true; break;
		case 'n': never = true; break;
		case 'w': wait_passive = true; break;
		case 'q': quiet = true; break;
		default: return 64;
		}
	}
	if (out && of_process)
		return record();
	if (!out || !library || !argv[optind])
		return 64;
	return run(argv + optind);
}
