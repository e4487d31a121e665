// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* libdw's unwinder over a copied stack. It reads files and nothing else of the process. */
#include "tests/bpf/agree.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

struct reference {
	Dwfl *dwfl;
	pid_t pid;
	const struct rec_raw *raw;
	struct frames *out;
	bool attached;
	bool outside;		/* memory that isn't in the copy was asked for */
};

static int no_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)mod, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
};

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	struct reference *r = arg;
	const struct rec_raw *raw = r->raw;
	uint64_t at = addr - raw->start, last = at + 7;

	(void)dwfl;
	if (addr < raw->start || at > raw->len || raw->len - at < 8 ||
	    raw->holes[at / RAW_CHUNK / 64] >> (at / RAW_CHUNK % 64) & 1 ||
	    raw->holes[last / RAW_CHUNK / 64] >> (last / RAW_CHUNK % 64) & 1) {
		r->outside = true;
		return false;
	}
	memcpy(result, (const char *)(raw + 1) + at, sizeof(*result));
	return true;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = arg;
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct reference *r = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = r;
	return r->pid;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct reference *r = arg;
	Dwarf_Word regs[17];
	int i;

	for (i = 0; i < 16; i++)
		regs[i] = r->raw->regs[i];
	regs[16] = r->raw->pc;
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

int reference__refresh(struct reference *r)
{
	int err;

	dwfl_report_begin(r->dwfl);
	err = dwfl_linux_proc_report(r->dwfl, r->pid);
	if (dwfl_report_end(r->dwfl, NULL, NULL) || err)
		return -1;
	if (!r->attached && !dwfl_attach_state(r->dwfl, NULL, r->pid, &thread_callbacks, r))
		return -1;
	r->attached = true;
	return 0;
}

struct reference *reference__new(pid_t pid)
{
	struct reference *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->pid = pid;
	r->dwfl = dwfl_begin(&callbacks);
	if (r->dwfl && !reference__refresh(r))
		return r;
	reference__free(r);
	return NULL;
}

void reference__free(struct reference *r)
{
	if (!r)
		return;
	dwfl_end(r->dwfl);
	free(r);
}

static int add_frame(Dwfl_Frame *state, void *arg)
{
	struct reference *r = arg;
	struct frames *out = r->out;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(state, &pc, &exact) || !pc ||
	    out->nr == sizeof(out->pc) / sizeof(out->pc[0]))
		return DWARF_CB_ABORT;
	/* In a system call pc is behind the instruction: looked up before it, as ours does. */
	if (!out->nr && !(r->raw->flags & RAW_EXACT))
		exact = false;
	out->pc[out->nr++] = exact ? pc : pc - 1;
	return DWARF_CB_OK;
}

void reference__unwind(struct reference *r, const struct rec_raw *raw, struct frames *out)
{
	int err;

	r->raw = raw;
	r->out = out;
	r->outside = false;
	out->nr = 0;
	out->why = NULL;
	err = dwfl_getthread_frames(r->dwfl, r->pid, add_frame, r);
	if (err == -1)
		out->why = r->outside ? "memory outside the copy" : dwfl_errmsg(-1);
	r->raw = NULL;
	r->out = NULL;
}
