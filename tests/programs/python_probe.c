// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Says as JSON what is known of a Python interpreter.
 *
 *	python_probe FILE...			what python_runtime__find says of each
 *	python_probe -p PID [POINTER...]	what python_threads__learn says of the process, too, and
 *						for each thread pointer the state and the codes of the
 *						thread's frames, the innermost first
 */
#include "unwind/elf_view.h"
#include "unwind/python_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)addr, len };
	ssize_t n = process_vm_readv(*(pid_t *)ctx, &local, 1, &remote, 1, 0);

	return n < 0 ? -errno : (size_t)n < len ? -EFAULT : 0;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void print_offsets(const struct python_offsets *o)
{
#define O(member) printf(", \"" #member "\": %u", (unsigned int)o->member)
#define L(member) printf(", \"" #member "\": %u", (unsigned int)o->layout.member)
	printf(", \"offsets\": {\"lines\": %u", o->lines);
	O(runtime_key); O(runtime_interpreters); O(interpreter_next); O(interpreter_threads);
	O(thread_next); O(thread_interpreter); O(object_type); O(type_name); O(code_qualname);
	O(bytes_size); O(bytes_data); O(str_length); O(str_state); O(str_ascii); O(str_compact);
	O(str_kind_shift); L(owner_shim); L(owner_generator); L(code_tag); L(frame_bytes); L(code_bytes);
	L(thread_id); L(top); L(cframe); L(cframe_top); L(cframe_previous); L(frame_code); L(frame_back);
	L(frame_position); L(frame_entry); L(frame_owner); L(code_type); L(code_name); L(code_filename);
	L(code_table); L(code_first_line); L(code_flags); L(code_version); L(code_traceable);
	L(code_start);
	printf("}");
}

static int find(const char *path, const char *name, struct python_runtime *r)
{
	double start = now_us();
	char *why = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : python_runtime__find(fd, r, &why);

	if (err == -ENOENT && name)
		goto out;
	printf("{\"file\": \"%s\", \"error\": %d, \"why\": \"%s\", \"find_us\": %.0f", name ? name : path,
	       -err, why ? why : "", now_us() - start);
	if (!err) {
		printf(", \"minor\": %u, \"micro\": %u, \"free_threaded\": %d, \"runtime\": %" PRIu64
		       ", \"type_code_vaddr\": %" PRIu64 ", \"eval\": [", r->minor, r->micro,
		       r->offsets.free_threaded, r->runtime, r->type_code);
		for (unsigned int i = 0; i < r->nr_eval; i++)
			printf("%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "", r->eval[i].start,
			       r->eval[i].end);
		printf("]");
		print_offsets(&r->offsets);
	}
	if (!name)
		printf("}\n");
out:
	free(why);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Where the file's vaddr 0 is, by a mapping of it. */
static bool bias_of(const char *path, uint64_t start, uint64_t offset, uint64_t *bias)
{
	const struct elf_segment *seg;
	struct elf_view *view = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;
	size_t nr = 0;

	if (fd >= 0 && !elf_view__open(&view, fd)) {
		seg = elf_view__segments(view, &nr);
		for (size_t i = 0; i < nr && !found; i++) {
			found = (seg[i].offset & ~4095ull) == offset;
			*bias = start - (seg[i].vaddr & ~4095ull);
		}
	}
	elf_view__free(view);
	if (fd >= 0)
		close(fd);
	return found;
}

static void print_thread(const struct python_layout *l, const struct python_memory *m, uint64_t pointer)
{
	uint64_t state = 0, frame = 0, id = 0;
	__u64 words[PYTHON_FRAME_BYTES / 8] = { 0 };
	int err = m->read(m->ctx, pointer + l->tsd_at, &state, sizeof(state));

	if (!err && l->tsd_then != PYTHON_TSD_DIRECT)
		err = m->read(m->ctx, state + l->tsd_then, &state, sizeof(state));
	if (!err)
		err = m->read(m->ctx, state + l->thread_id, &id, sizeof(id));
	if (!err && l->top == PYTHON_ABSENT)
		err = m->read(m->ctx, state + l->cframe, &frame, sizeof(frame)) ?:
		      m->read(m->ctx, frame + l->cframe_top, &frame, sizeof(frame));
	else if (!err)
		err = m->read(m->ctx, state + l->top, &frame, sizeof(frame));
	printf("{\"error\": %d, \"state\": %" PRIu64 ", \"id\": %" PRIu64 ", \"codes\": [", -err, state, id);
	for (int i = 0, nr = 0; !err && frame && i < 10000; i++) {
		err = m->read(m->ctx, frame, words, l->frame_bytes);
		if (!err && (l->frame_owner == PYTHON_ABSENT ||
			     python__u8(words, l->frame_owner, PYTHON_FRAME_BYTES) < l->owner_shim))
			printf("%s%" PRIu64, nr++ ? ", " : "",
			       (uint64_t)(python__u64(words, l->frame_code, PYTHON_FRAME_BYTES) &
					  ~(uint64_t)l->code_tag));
		frame = python__u64(words, l->frame_back, PYTHON_FRAME_BYTES);
	}
	printf("]}");
}

static int learn(pid_t pid, const struct python_runtime *r, uint64_t bias, int nr, char **pointers)
{
	const struct python_memory m = { .read = read_process, .ctx = &pid };
	struct python_layout layout;
	double start = now_us();
	char *why;
	int err = python_threads__learn(r, bias + r->runtime, &m, &layout, &why);

	printf(", \"learn_us\": %.0f, \"learn_error\": %d, \"learn_why\": \"%s\", \"threads\": [",
	       now_us() - start, -err, why ? why : "");
	for (int i = 0; !err && i < nr; i++) {
		if (i)
			printf(", ");
		print_thread(&layout, &m, strtoull(pointers[i], NULL, 0));
	}
	printf("]");
	if (!err)
		printf(", \"tsd_at\": %u, \"tsd_then\": %u, \"type_code\": %" PRIu64, layout.tsd_at,
		       layout.tsd_then, (uint64_t)layout.type_code);
	printf("}\n");
	free(why);
	return err;
}

static int process(pid_t pid, int nr, char **pointers)
{
	struct python_runtime r;
	char path[64], line[8192], name[4096], range[64];
	int err = -ENOENT;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (err == -ENOENT && fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset, bias;
		int fields = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]",
				    &start, &end, &offset, name);

		if (fields != 4 || name[0] != '/')
			continue;
		snprintf(range, sizeof(range), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
		if (!bias_of(range, start, offset, &bias))
			continue;
		err = find(range, name, &r);
		if (!err)
			err = learn(pid, &r, bias, nr, pointers);
		else if (err != -ENOENT)
			printf("}\n");
	}
	fclose(maps);
	return err;
}

int main(int argc, char **argv)
{
	struct python_runtime r;

	if (argc > 2 && !strcmp(argv[1], "-p"))
		return process(atoi(argv[2]), argc - 3, argv + 3) ? EXIT_FAILURE : EXIT_SUCCESS;
	for (int i = 1; i < argc; i++)
		find(argv[i], NULL, &r);
	return EXIT_SUCCESS;
}
