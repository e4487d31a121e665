// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A command under samples of tests/bpf/agree.bpf.c, with the product's own registries. */
#include "tests/bpf/agree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tests/agree.skel.h"	/* in the build folder */
#include "loader/processes.h"
#include "loader/sampling.h"
#include "unwind/rows.h"

enum { EVENT_RING, EVENT_MAPPED };

struct sampled {
	struct agree_bpf *skel;
	struct ring_buffer *ring;
	struct unwind_row *rows;
	struct unwind_rule *rules;
	struct processes_maps maps;
	struct unwind_store *store;
	struct files *files;
	struct processes *processes;
	struct sampling *sampling;
	sampled_record fn;
	void *ctx;
	pid_t pid;
	int start_fd;		/* a byte written here lets the command begin */
	int epoll_fd;
	bool executed;
	bool mapped;
};

static int publish_page(void *ctx, const struct page_key *key, const struct page_rows *rows)
{
	struct sampled *t = ctx;

	return bpf_map_update_elem(bpf_map__fd(t->skel->maps.pages), key, rows, BPF_ANY);
}

/* A short run never fills the store; a flush under its readers would be wrong, so it ends here. */
static void flush_pages(void *ctx)
{
	(void)ctx;
	fprintf(stderr, "the store of rows is full\n");
	abort();
}

static void on_process(struct sampled *t, const struct rec_process *rec)
{
	struct process *p;

	if ((pid_t)rec->tgid != t->pid || rec->head.type != REC_EXEC)
		return;
	processes__execed(t->processes, t->pid, rec->comm, true);
	p = processes__find(t->processes, t->pid);
	t->executed = p && !processes__refresh(t->processes, p);
}

static int on_record(void *ctx, void *record, size_t size)
{
	struct sampled *t = ctx;
	const struct rec_head *head = record;

	switch (head->type) {
	case REC_FORK:
	case REC_EXEC:
	case REC_EXIT:
		on_process(t, record);
		break;
	default:
		t->fn(t->ctx, record, size);
	}
	return 0;
}

static void on_mapped(void *ctx, const struct sampling_event *event)
{
	struct sampled *t = ctx;

	if (event->tgid == t->pid)
		t->mapped = true;
}

static void *map_array(const struct bpf_map *map, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

static int load(struct sampled *t)
{
	int err;

	libbpf_set_print(NULL);
	t->skel = agree_bpf__open();
	if (!t->skel)
		return -errno;
	t->skel->rodata->settings.seed = 42;
	t->skel->rodata->settings.self = (uint32_t)getpid();
	err = agree_bpf__load(t->skel);
	if (err)
		return err;
	t->skel->links.gpucollect_exec = bpf_program__attach(t->skel->progs.gpucollect_exec);
	if (!t->skel->links.gpucollect_exec)
		return -errno;
	t->rows = map_array(t->skel->maps.rows, sizeof(*t->rows) * GPUCOLLECT_MAX_ROWS);
	t->rules = map_array(t->skel->maps.rules, sizeof(*t->rules) * GPUCOLLECT_MAX_RULES);
	t->maps.procs_fd = bpf_map__fd(t->skel->maps.procs);
	t->maps.slots = map_array(t->skel->maps.slots,
				  sizeof(*t->maps.slots) * GPUCOLLECT_MAX_PROCS);
	t->maps.mappings = map_array(t->skel->maps.mappings,
				     sizeof(*t->maps.mappings) * GPUCOLLECT_MAX_MAPPINGS);
	if (!t->rows || !t->rules || !t->maps.slots || !t->maps.mappings)
		return -ENOMEM;
	t->ring = ring_buffer__new(bpf_map__fd(t->skel->maps.ring), on_record, t, NULL);
	return t->ring ? 0 : -errno;
}

static int registries(struct sampled *t)
{
	struct unwind_store_config config = {
		.rules = t->rules,
		.rows = t->rows,
		.max_rules = GPUCOLLECT_MAX_RULES - 1,
		.max_rows = GPUCOLLECT_MAX_ROWS,
		.max_pages = GPUCOLLECT_MAX_PAGES,
		.publish = publish_page,
		.flush = flush_pages,
		.ctx = t,
	};

	t->files = files__new();
	t->processes = t->files ? processes__new(&t->maps, t->files) : NULL;
	return t->processes ? unwind_store__new(&t->store, &config) : -ENOMEM;
}

/* The command waits for its byte, so that nothing of it is missed. */
static int start(struct sampled *t, char **argv)
{
	int fd[2];
	char go;

	if (pipe(fd))
		return -errno;
	t->pid = fork();
	if (t->pid < 0)
		return -errno;
	if (!t->pid) {
		close(fd[1]);
		if (read(fd[0], &go, 1) == 1)
			execvp(argv[0], argv);
		_exit(127);
	}
	close(fd[0]);
	t->start_fd = fd[1];
	return processes__get(t->processes, t->pid, true) ? 0 : -ENOMEM;
}

static int sample(struct sampled *t, unsigned int frequency)
{
	struct sampling_config config = {
		.program_fd = bpf_program__fd(t->skel->progs.agree_sample),
		.frequency = frequency,
		.epoll_data = EVENT_MAPPED,
	};
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = EVENT_RING };
	char *why = NULL;
	int err;

	t->epoll_fd = config.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll_fd < 0 || epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, ring_buffer__epoll_fd(t->ring),
					 &event))
		return -errno;
	err = sampling__new(&config, &t->sampling, &why);
	if (err)
		fprintf(stderr, "%s\n", why ? why : strerror(-err));
	free(why);
	return err;
}

int sampled__new(char **argv, unsigned int frequency, sampled_record fn, void *ctx,
		 struct sampled **out)
{
	struct sampled *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->fn = fn;
	t->ctx = ctx;
	t->start_fd = t->epoll_fd = -1;
	err = load(t);
	if (!err)
		err = registries(t);
	if (!err)
		err = start(t, argv);
	if (!err)
		err = sample(t, frequency);
	if (err) {
		fprintf(stderr, "setting up: %s\n", strerror(-err));
		sampled__free(t);
		return err;
	}
	*out = t;
	return 0;
}

int sampled__run(struct sampled *t)
{
	struct epoll_event events[16];
	int status;
	bool missed = false;	/* every refresh reads all mappings */

	if (write(t->start_fd, "", 1) != 1)
		return -errno;
	while (!waitpid(t->pid, &status, WNOHANG)) {
		struct process *p;

		if (epoll_wait(t->epoll_fd, events, 16, 20) < 0 && errno != EINTR)
			return -errno;
		sampling__read(t->sampling, on_mapped, t, &missed);
		ring_buffer__consume(t->ring);
		p = t->executed && t->mapped ? processes__find(t->processes, t->pid) : NULL;
		t->mapped = false;
		if (p)
			processes__refresh(t->processes, p);
	}
	t->pid = 0;
	return status;
}

void sampled__free(struct sampled *t)
{
	if (!t)
		return;
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, NULL, 0);
	}
	sampling__free(t->sampling);
	unwind_store__free(t->store);
	processes__free(t->processes);
	files__free(t->files);
	ring_buffer__free(t->ring);
	agree_bpf__destroy(t->skel);
	free(t);
}

struct unwind_store *sampled__store(struct sampled *t)
{
	return t->store;
}

struct process *sampled__process(struct sampled *t)
{
	return t->executed ? processes__find(t->processes, t->pid) : NULL;
}

struct unwind_file *sampled__file(void *target, uint32_t id)
{
	struct sampled *t = target;

	return files__unwind(t->files, id);
}

const char *sampled__path(struct sampled *t, uint32_t id)
{
	return files__path(t->files, id);
}
