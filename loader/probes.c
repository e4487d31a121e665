// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/probes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "gpucollect.skel.h"
#include "loader/base/array.h"
#include "loader/base/fault.h"
#include "loader/base/log.h"
#include "loader/base/text.h"
#include "loader/closer.h"
#include "loader/rights.h"
#include "loader/uprobes.h"

/* The initial PID namespace's inode number: PROC_PID_INIT_INO of the kernel, fixed since 3.8. */
#define INITIAL_PIDNS 0xeffffffcu

/* What one call attached: one link of uprobes.h, or one of libbpf for each place. */
struct probe {
	size_t index;
	int multi_fd;			/* -1: none */
	size_t nr;
	struct bpf_link *link[];
};

struct probes {
	struct gpucollect_bpf *skel;
	struct probes_maps maps;
	struct ring_buffer *ring;
	struct probe **probe;
	size_t nr_probes, probes_size;
	struct closer *closer;
	bool multi;			/* sites of the library by one link for several places */
	bool multi_launches;		/* launch entries, too */
	bool one_process;
	int stats_fd;
};

/* libbpf explains itself at length; that helps whoever asks for it. */
static int libbpf_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[1024];
	size_t len;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	len = strlen(line);
	if (len && line[len - 1] == '\n')
		line[len - 1] = '\0';
	log_debug("%s", line);
	return 0;
}

static void *map_array(const struct bpf_map *map, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return NULL;
	/* The processes that we start have no use for it, and what one of them reads may be hostile. */
	madvise(at, bytes, MADV_DONTFORK);
	return at;
}

static int probes__map(struct probes *p)
{
	struct gpucollect_bpf *s = p->skel;

	p->maps.procs_fd = bpf_map__fd(s->maps.procs);
	p->maps.pages_fd = bpf_map__fd(s->maps.pages);
	p->maps.rows = map_array(s->maps.rows, sizeof(struct unwind_row) * GPUCOLLECT_MAX_ROWS);
	p->maps.rules = map_array(s->maps.rules, sizeof(struct unwind_rule) * GPUCOLLECT_MAX_RULES);
	p->maps.mappings = map_array(s->maps.mappings,
				     sizeof(struct mapping) * GPUCOLLECT_MAX_MAPPINGS);
	p->maps.slots = map_array(s->maps.slots, sizeof(struct proc_slot) * GPUCOLLECT_MAX_PROCS);
	p->maps.pythons = map_array(s->maps.pythons,
				    sizeof(struct python_layout) * GPUCOLLECT_MAX_PYTHONS);
	p->maps.freed = map_array(s->maps.python_freed, sizeof(struct python_freed) * GPUCOLLECT_MAX_FREED);
	return p->maps.rows && p->maps.rules && p->maps.mappings && p->maps.slots &&
	       p->maps.pythons && p->maps.freed ? 0 : -errno;
}

static int probes__choose_cgroup(struct probes *p, int fd)
{
	const __u32 key = 0, value = (__u32)fd;

	return bpf_map_update_elem(bpf_map__fd(p->skel->maps.cgroups), &key, &value, BPF_ANY) ? -errno : 0;
}

/*
 * A link for several places needs a program that is loaded for such links, which came with Linux 6.6. Since
 * then any probe is let go of sooner, too, so that the one that counts frees is worth it. Before Linux 6.10
 * such links can't be limited to a process: where that matters, entries have links to one place each, and
 * another program.
 */
static void probes__choose_programs(struct probes *p, const struct probes_config *config)
{
	struct bpf_program *multi = p->skel->progs.gpucollect_probe;

	p->one_process = config->one_process;
	p->multi = config->launches && uprobes__supported();
	p->multi_launches = p->multi && (!config->one_process || uprobes__per_process());
	bpf_program__set_autoload(p->skel->progs.gpucollect_sample, config->cpu);
	bpf_program__set_autoload(multi, p->multi);
	bpf_program__set_autoload(p->skel->progs.gpucollect_probe_each,
				  config->launches && !p->multi_launches);
	bpf_program__set_autoload(p->skel->progs.gpucollect_free, p->multi);
	if (p->multi)
		bpf_program__set_expected_attach_type(multi, (enum bpf_attach_type)UPROBES_ATTACH_TYPE);
}

static int probes__settings(struct probes *p, const struct probes_config *config)
{
	struct gpucollect_bpf__rodata *ro = p->skel->rodata;
	struct stat st;

	if (getrandom(&ro->settings.seed, sizeof(ro->settings.seed), 0) < 0)
		return -errno;
	if (!stat("/proc/self/ns/pid", &st) && st.st_ino != INITIAL_PIDNS)
		ro->settings.pidns_inum = (uint32_t)st.st_ino;
	ro->settings.all = config->all;
	ro->settings.library = config->library;
	ro->settings.cgroup = config->cgroup_fd >= 0;
	ro->settings.self = (uint32_t)getpid();
	bpf_program__set_autoload(p->skel->progs.gpucollect_sample, config->cpu);
	probes__choose_programs(p, config);
	return 0;
}

static int probes__load(struct probes *p, char **why)
{
	int err = gpucollect_bpf__load(p->skel);

	if (err == -EPERM || err == -EACCES)
		return text__why(why, -EPERM, "the kernel refuses to load BPF programs: %s; run as root "
				 "(sudo) outside a container that forbids bpf()", strerror(-err));
	/* That says nothing about the kernel. */
	if (err == -ENFILE || err == -ENOMEM)
		return err;
	if (err)
		return text__why(why, -EOPNOTSUPP, "this kernel can't run the BPF programs: %s; Linux "
				 "5.17 or newer with BTF is needed (-v shows the kernel's reasons)",
				 strerror(-err));
	return 0;
}

static void probe__free(void *arg)
{
	struct probe *probe = arg;
	size_t i;

	for (i = 0; i < probe->nr; i++) {
		bpf_link__destroy(probe->link[i]);
		FAULT_POINT("probe-detached");
	}
	if (probe->multi_fd >= 0) {
		uprobes__detach(probe->multi_fd);
		FAULT_POINT("probe-detached");
	}
	free(probe);
}

/* With room for `nr` links; it is known, and will be detached, from now on. */
static int probe__new(struct probes *p, size_t nr, struct probe **out)
{
	struct probe *probe = calloc(1, sizeof(*probe) + nr * sizeof(probe->link[0]));

	if (!probe || array__reserve((void **)&p->probe, &p->probes_size, p->nr_probes,
				     sizeof(*p->probe))) {
		free(probe);
		return -ENOMEM;
	}
	probe->multi_fd = -1;
	probe->index = p->nr_probes;
	p->probe[p->nr_probes++] = probe;
	*out = probe;
	return 0;
}

/* Takes over what an attach function gave; NULL: errno says why. */
static int probe__add(struct probe *probe, struct bpf_link *link)
{
	if (!link)
		return -errno;
	probe->link[probe->nr++] = link;
	return 0;
}

static void probes__forget(struct probes *p, struct probe *probe)
{
	p->probe[probe->index] = p->probe[--p->nr_probes];
	p->probe[probe->index]->index = probe->index;
}

void probes__drop(struct probes *p, struct probe *probe)
{
	probes__forget(p, probe);
	closer__add(p->closer, probe__free, probe);
}

static int probes__follow(struct probes *p)
{
	struct bpf_program *progs[] = {
		p->skel->progs.gpucollect_fork,
		p->skel->progs.gpucollect_exec,
		p->skel->progs.gpucollect_exit,
	};
	const size_t nr = sizeof(progs) / sizeof(progs[0]);
	struct probe *probe;
	size_t i;
	int err = probe__new(p, nr, &probe);

	for (i = 0; i < nr && !err; i++)
		err = probe__add(probe, bpf_program__attach(progs[i]));
	return err;
}

int probes__new(const struct probes_config *config, struct probes **out, char **why)
{
	struct probes *p;
	int err;

	*why = NULL;
	err = rights__check(why);
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->stats_fd = -1;
	p->closer = closer__new();
	if (!p->closer) {
		free(p);
		return -ENOMEM;
	}
	libbpf_set_print(libbpf_print);
	p->skel = gpucollect_bpf__open();
	FAULT_POINT("programs-opened");
	if (!p->skel) {
		err = -errno;
		goto fail;
	}
	err = probes__settings(p, config);
	if (!err)
		err = probes__load(p, why);
	FAULT_POINT("programs-loaded");
	if (!err)
		err = probes__map(p);
	if (!err && config->cgroup_fd >= 0)
		err = probes__choose_cgroup(p, config->cgroup_fd);
	if (!err)
		err = probes__follow(p);
	FAULT_POINT("processes-followed");
	if (err)
		goto fail;
	p->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);	/* for the closing summary */
	*out = p;
	return 0;
fail:
	if (!*why)
		text__why(why, err, "setting up the BPF programs failed: %s", strerror(-err));
	probes__free(p);
	return err;
}

static void unmap(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

void probes__detach(struct probes *p)
{
	while (p->nr_probes)
		probes__drop(p, p->probe[p->nr_probes - 1]);
	closer__wait(p->closer);
	FAULT_POINT("detached");
}

void probes__free(struct probes *p)
{
	if (!p)
		return;
	probes__detach(p);
	closer__free(p->closer);
	free(p->probe);
	ring_buffer__free(p->ring);
	unmap(p->maps.rows, sizeof(struct unwind_row) * GPUCOLLECT_MAX_ROWS);
	unmap(p->maps.rules, sizeof(struct unwind_rule) * GPUCOLLECT_MAX_RULES);
	unmap(p->maps.mappings, sizeof(struct mapping) * GPUCOLLECT_MAX_MAPPINGS);
	unmap(p->maps.slots, sizeof(struct proc_slot) * GPUCOLLECT_MAX_PROCS);
	unmap(p->maps.pythons, sizeof(struct python_layout) * GPUCOLLECT_MAX_PYTHONS);
	unmap(p->maps.freed, sizeof(struct python_freed) * GPUCOLLECT_MAX_FREED);
	if (p->stats_fd >= 0)
		close(p->stats_fd);
	gpucollect_bpf__destroy(p->skel);
	free(p);
}

const struct probes_maps *probes__maps(const struct probes *p)
{
	return &p->maps;
}

void probes__forget_rows(struct probes *p)
{
	__atomic_add_fetch(&p->skel->bss->rows_epoch, 1, __ATOMIC_SEQ_CST);
}

int probes__sample_program(const struct probes *p)
{
	return bpf_program__fd(p->skel->progs.gpucollect_sample);
}

int probes__frees_program(const struct probes *p)
{
	return p->multi ? bpf_program__fd(p->skel->progs.gpucollect_free) : -1;
}

/* One by one: the only way before Linux 6.6. */
static int attach_each(struct probe *probe, const struct bpf_program *prog, const char *path,
		       const uint64_t *offsets, const uint64_t *cookies, size_t nr, pid_t pid)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = cookies ? cookies[i] : 0);

		err = probe__add(probe, bpf_program__attach_uprobe_opts(prog, pid, path, offsets[i],
									&opts));
		FAULT_POINT("probe-attached");
	}
	return err;
}

static int attach_multi(struct probe *probe, const struct bpf_program *prog, const char *path,
			const uint64_t *offsets, const uint64_t *cookies, size_t nr, pid_t pid)
{
	probe->multi_fd = uprobes__attach(bpf_program__fd(prog), path, offsets, cookies, nr,
					  pid == -1 ? 0 : pid);
	if (probe->multi_fd < 0)
		return probe->multi_fd;
	FAULT_POINT("probe-attached");
	return 0;
}

static int attach(struct probes *p, bool multi, const char *path, const uint64_t *offsets,
		  const uint64_t *cookies, size_t nr, pid_t pid, struct probe **out)
{
	struct probe *probe;
	int err = probe__new(p, multi ? 0 : nr, &probe);

	if (err)
		return err;
	if (multi)
		err = attach_multi(probe, p->skel->progs.gpucollect_probe, path, offsets, cookies, nr, pid);
	else
		err = attach_each(probe, p->skel->progs.gpucollect_probe_each, path, offsets, cookies, nr,
				  pid);
	if (err)
		probes__drop(p, probe);
	else if (out)
		*out = probe;
	return err;
}

int probes__attach_sites(struct probes *p, const char *path, const uint64_t *offsets, size_t nr,
			 struct probe **out)
{
	return attach(p, p->multi, path, offsets, NULL, nr, -1, out);
}

bool probes__per_process(const struct probes *p)
{
	return p->one_process;
}

int probes__attach_launches(struct probes *p, const char *path, const uint64_t *offsets,
			    const uint64_t *entries, size_t nr, pid_t pid, struct probe **out)
{
	return attach(p, p->multi_launches, path, offsets, entries, nr, pid, out);
}

int probes__set_reader(struct probes *p, probes_record fn, void *ctx)
{
	p->ring = ring_buffer__new(bpf_map__fd(p->skel->maps.ring), fn, ctx, NULL);
	return p->ring ? 0 : -errno;
}

int probes__ring_fd(const struct probes *p)
{
	return ring_buffer__epoll_fd(p->ring);
}

int probes__read(struct probes *p)
{
	return ring_buffer__consume(p->ring);
}

void probes__counters(const struct probes *p, uint64_t counters[NR_COUNTERS])
{
	int fd = bpf_map__fd(p->skel->maps.counters), nr = libbpf_num_possible_cpus(), cpu;
	uint64_t *per_cpu;
	__u32 i;

	memset(counters, 0, sizeof(*counters) * NR_COUNTERS);
	per_cpu = nr > 0 ? calloc((size_t)nr, sizeof(*per_cpu)) : NULL;
	if (!per_cpu)
		return;
	for (i = 0; i < NR_COUNTERS; i++)
		if (!bpf_map_lookup_elem(fd, &i, per_cpu))
			for (cpu = 0; cpu < nr; cpu++)
				counters[i] += per_cpu[cpu];
	free(per_cpu);
}

uint64_t probes__run_time(const struct probes *p)
{
	struct bpf_program *prog;
	uint64_t sum = 0;

	bpf_object__for_each_program(prog, p->skel->obj) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		if (bpf_program__fd(prog) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
			sum += info.run_time_ns;
	}
	return sum;
}

uint64_t probes__memory(const struct probes *p)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, p->skel->obj) {
		unsigned long long bytes = 0;
		char path[64], line[128];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "memlock: %llu", &bytes) == 1)
				sum += bytes;
		if (f)
			fclose(f);
	}
	return sum;
}
