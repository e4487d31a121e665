// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What happened, for tests to compare with: STANDIN_TRUTH, STANDIN_COPIES, STANDIN_GRAPHS, STANDIN_WAITS,
 * STANDIN_TRACE, STANDIN_STATS; and a place to wait at: STANDIN_GATE.
 *
 * A launch is written through if its thread has written nothing for 10 ms or has just waited for
 * the device, else it is kept and written with the next ones. So a process that is killed loses
 * at most the launches of its last 10 ms that were not waited for; one that ends by exit() none.
 */
#include "sim.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM (32 * 1024)
#define LINE_MAX_ 4096			/* longer names are cut */
#define KEEP_NS 10000000

struct truth_buffer {
	struct truth_buffer *next;
	int lock;
	int64_t written;		/* when it last went to the file */
	size_t len;
	char text[ROOM];
};

bool truth_on, copies_on;
static int truth_fd = -1, copies_fd = -1, waits_fd = -1, graphs_fd = -1, trace_fd = -1, stats_fd = -1;
static bool finished;
static char gate_entry[64];
static const char *gate_path;		/* NULL: no gate, or it was passed */
static struct slab slab = SLAB(struct truth_buffer);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct truth_buffer *buffers;

static int open_for_append(const char *variable)
{
	const char *path = getenv(variable);

	if (!path || !*path)
		return -1;
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done <= 0)
			return;
		p += done;
		n -= (size_t)done;
	}
}

static void gate__read(const char *value)
{
	const char *path = value ? strchr(value, ':') : NULL;

	if (!path)
		return;
	snprintf(gate_entry, sizeof(gate_entry), "%.*s", (int)(path - value), value);
	gate_path = path + 1;
}

/* The first call of the entry has done its work, and waits for a byte from the pipe. */
static void gate__wait(const char *entry)
{
	const char *path = load(&gate_path);
	char text[4096 + 16];
	int fd;

	if (strcmp(entry, gate_entry) || !path ||
	    !__atomic_compare_exchange_n(&gate_path, &path, NULL, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	snprintf(text, sizeof(text), "%s.ready", path);
	fd = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	write_all(fd, text, (size_t)snprintf(text, sizeof(text), "%d\n", dev.pid));
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (read(fd, text, 1) < 0 && errno == EINTR)
		;
	close(fd);
}

void trace__open(void)
{
	truth_fd = open_for_append("STANDIN_TRUTH");
	trace_fd = open_for_append("STANDIN_TRACE");
	stats_fd = open_for_append("STANDIN_STATS");
	copies_fd = open_for_append("STANDIN_COPIES");
	waits_fd = open_for_append("STANDIN_WAITS");
	graphs_fd = open_for_append("STANDIN_GRAPHS");
	truth_on = truth_fd >= 0;
	copies_on = copies_fd >= 0;
	gate__read(getenv("STANDIN_GATE"));
	dev.traced = trace_fd >= 0 || gate_path;
}

CUresult trace__call(const char *entry, CUresult r)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%d %d %s %d\n", dev.pid, thread__self()->tid, entry,
			 r);

	if (trace_fd >= 0)
		write_all(trace_fd, line, (size_t)n);
	gate__wait(entry);
	return r;
}

/* --- one line, without stdio: it is on the launch path ---------------------------------------- */
static char *put_text(char *p, const char *s)
{
	while (*s)
		*p++ = *s++;
	return p;
}

static char *put_number(char *p, uint64_t v)
{
	char digits[24];
	int n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

static char *put_pointer(char *p, const void *pointer)
{
	uintptr_t v = (uintptr_t)pointer;
	int shift = 60;

	if (!v)
		return put_text(p, "(nil)");
	p = put_text(p, "0x");
	while (!(v >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

/* Blanks, control characters and % as %XX, so that a line keeps its columns; nothing is "%00". */
static char *put_name(char *p, const char *name, const char *end)
{
	if (!name)
		return put_text(p, "(null)");
	if (!*name)
		return put_text(p, "%00");
	for (; *name && p < end; name++) {
		unsigned char c = (unsigned char)*name;

		if (c > ' ' && c != '%' && c != 127) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = "0123456789ABCDEF"[c >> 4];
		*p++ = "0123456789ABCDEF"[c & 15];
	}
	return p;
}

static char *put_shape(char *p, const struct truth_line *l)
{
	if (!l->kernel)
		return put_text(p, " - - -");
	for (int i = 0; i < 6; i++) {
		*p++ = i % 3 ? ',' : ' ';
		p = put_number(p, l->dim[i]);
	}
	*p++ = ' ';
	return put_number(p, l->shared);
}

static char *put_line(char *p, const struct truth_line *l, int64_t start, int64_t end)
{
	char *limit = p + LINE_MAX_ - 512;

	p = put_number(p, (uint64_t)dev.pid);
	*p++ = ' ';
	p = put_number(p, (uint64_t)l->tid);
	*p++ = ' ';
	p = put_text(p, l->entry);
	*p++ = ' ';
	if (l->kernel) {
		p = put_name(p, l->name, limit);
	} else {
		p = put_text(p, "(graph of ");
		p = put_number(p, l->nodes);
		p = put_text(p, " nodes)");
	}
	p = put_shape(p, l);
	*p++ = ' ';
	p = put_pointer(p, l->stream);
	*p++ = ' ';
	p = put_number(p, l->ctx_id);
	if (start == SIM_NONE)
		return put_text(p, " - -\n");
	*p++ = ' ';
	p = put_number(p, (uint64_t)start);
	*p++ = ' ';
	p = put_number(p, (uint64_t)end);
	*p++ = '\n';
	return p;
}

/* --- buffers ---------------------------------------------------------------------------------- */
static void buffer__lock(struct truth_buffer *b)
{
	while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE))
		sim__nap();
}

static void buffer__unlock(struct truth_buffer *b)
{
	store(&b->lock, 0);
}

static void buffer__write(struct truth_buffer *b)
{
	write_all(truth_fd, b->text, b->len);
	b->len = 0;
}

static struct truth_buffer *buffer__of(struct thread *t)
{
	struct truth_buffer *b = t->truth;

	if (likely(b != NULL))
		return b;
	b = slab__get(&slab);
	b->lock = 0;
	b->written = 0;
	b->len = 0;
	pthread_mutex_lock(&list_lock);
	b->next = buffers;
	buffers = b;
	pthread_mutex_unlock(&list_lock);
	t->truth = b;
	return b;
}

/* Copies are few: each is written through. */
static void write_copy(const struct truth_line *l, int64_t start, int64_t end)
{
	char line[256], times[64] = "- -";
	int n;

	if (start != SIM_NONE)
		snprintf(times, sizeof(times), "%lld %lld", (long long)start, (long long)end);
	n = snprintf(line, sizeof(line), "%d %d %s %s %zu %p %u %s\n", dev.pid, l->tid, l->entry, l->copy,
		     l->bytes, (const void *)l->stream, l->ctx_id, times);
	if (copies_on)
		write_all(copies_fd, line, (size_t)n);
}

void trace__waited(int64_t begun)
{
	int64_t now = now_ns();
	char line[128];
	int n;

	if (waits_fd < 0)
		return;
	n = snprintf(line, sizeof(line), "%d %d %lld %lld\n", dev.pid, thread__self()->tid,
		     (long long)begun, (long long)now);
	write_all(waits_fd, line, (size_t)n);
}

static size_t kernels_of(CUgraph g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->count; i++) {
		n += g->nodes[i]->type == CU_NODE_KERNEL;
		n += g->nodes[i]->child ? kernels_of(g->nodes[i]->child) : 0;
	}
	return n;
}

static char *put_kernels(char *p, CUgraph g)
{
	for (size_t i = 0; i < g->count; i++) {
		CUgraphNode n = g->nodes[i];

		if (n->child)
			p = put_kernels(p, n->child);
		if (n->type != CU_NODE_KERNEL)
			continue;
		*p++ = ' ';
		p = put_name(p, n->name, p + LINE_MAX_ - 512);
	}
	return p;
}

/* They are few, too. */
void trace__graph(struct thread *t, CUgraph g)
{
	char *line, *p;

	if (graphs_fd < 0)
		return;
	line = malloc((kernels_of(g) + 1) * LINE_MAX_);
	p = put_number(line, (uint64_t)dev.pid);
	*p++ = ' ';
	p = put_number(p, (uint64_t)t->tid);
	p = put_kernels(p, g);
	*p++ = '\n';
	write_all(graphs_fd, line, (size_t)(p - line));
	free(line);
}

void trace__write(struct thread *t, const struct truth_line *l, int64_t start, int64_t end)
{
	struct truth_buffer *b;
	int64_t now;

	if (l->copy) {
		write_copy(l, start, end);
		return;
	}
	if (!truth_on)
		return;
	b = buffer__of(t);
	now = now_ns();
	buffer__lock(b);
	b->len = (size_t)(put_line(b->text + b->len, l, start, end) - b->text);
	if (now - b->written > KEEP_NS || b->len > ROOM - LINE_MAX_ || load(&finished)) {
		buffer__write(b);
		b->written = now;
	}
	buffer__unlock(b);
}

void trace__flush(struct thread *t)
{
	struct truth_buffer *b = t->truth;

	if (!b)
		return;
	buffer__lock(b);
	if (b->len)
		buffer__write(b);
	b->written = 0;
	buffer__unlock(b);
}

void trace__thread_ends(struct thread *t)
{
	struct truth_buffer *b = t->truth;

	if (!b)
		return;
	trace__flush(t);
	t->truth = NULL;
	pthread_mutex_lock(&list_lock);
	for (struct truth_buffer **p = &buffers; *p; p = &(*p)->next)
		if (*p == b) {
			*p = b->next;
			break;
		}
	pthread_mutex_unlock(&list_lock);
	slab__put(&slab, b);
}

/* The parent's lines are the parent's to write. */
void trace__forget(void)
{
	pthread_mutex_init(&list_lock, NULL);
	buffers = NULL;
}

static void write_stats(void)
{
	static const char *const name[C_NR] = {
#define X(n) #n,
		SIM_COUNTERS(X)
#undef X
	};
	uint64_t total[C_NR];
	char text[2048];
	int n = 0;

	if (stats_fd < 0)
		return;
	thread__totals(total);
	for (int i = 0; i < C_NR; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%d %s %llu\n", dev.pid, name[i],
			      (unsigned long long)total[i]);
	write_all(stats_fd, text, (size_t)n);
}

void trace__finish(void)
{
	store(&finished, true);
	pthread_mutex_lock(&list_lock);
	for (struct truth_buffer *b = buffers; b; b = b->next) {
		buffer__lock(b);
		buffer__write(b);
		buffer__unlock(b);
	}
	pthread_mutex_unlock(&list_lock);
	write_stats();
}
