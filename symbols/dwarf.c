// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/table.h"

#define MAX_RANGES 256		/* of one function or unit */
#define MAX_DEPTH 16		/* of namespaces and classes in each other */
#define MAX_BLOCKS 256		/* blocks in each other */

struct range {
	uint64_t low, high;
	Dwarf_Off die;
};

struct ranges {
	struct range *list;
	size_t nr, size;
};

struct dwarf_file {
	Elf *elf, *alt_elf;
	Dwarf *dwarf, *alt;
	struct ranges units;		/* by their own ranges, where .debug_aranges doesn't say */
	bool has_units;
	struct table *by_unit;		/* offset of a unit's DIE -> its struct ranges */
};

static Dwarf *open_dwarf(int fd, Elf **elf)
{
	*elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	return *elf ? dwarf_begin_elf(*elf, DWARF_C_READ, NULL) : NULL;
}

struct dwarf_file *dwarf_file__new(int fd, int alt)
{
	struct dwarf_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	elf_version(EV_CURRENT);
	f->by_unit = table__new();
	f->dwarf = open_dwarf(fd, &f->elf);
	f->alt = alt < 0 ? NULL : open_dwarf(alt, &f->alt_elf);
	if (f->dwarf && f->alt)
		dwarf_setalt(f->dwarf, f->alt);
	if (f->by_unit && f->dwarf)
		return f;
	dwarf_file__free(f);
	return NULL;
}

void dwarf_file__free(struct dwarf_file *f)
{
	uint64_t key, value;
	size_t pos = 0;

	if (!f)
		return;
	while (f->by_unit && table__next(f->by_unit, &pos, &key, &value)) {
		struct ranges *r = (struct ranges *)(uintptr_t)value;

		free(r->list);
		free(r);
	}
	table__free(f->by_unit);
	free(f->units.list);
	dwarf_end(f->dwarf);
	dwarf_end(f->alt);
	elf_end(f->elf);
	elf_end(f->alt_elf);
	free(f);
}

/* --- ranges ------------------------------------------------------------------------------- */

/* What the linker threw away keeps its entry, at address 0. */
static void add_ranges(struct ranges *r, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	for (int i = 0; i < MAX_RANGES; i++) {
		at = dwarf_ranges(die, at, &base, &low, &high);
		if (at <= 0)
			return;
		if (!low || low >= high ||
		    array__reserve((void **)&r->list, &r->size, r->nr, sizeof(*r->list)))
			continue;
		r->list[r->nr++] = (struct range){ low, high, dwarf_dieoffset(die) };
	}
}

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	if (a->high != b->high)
		return a->high > b->high ? -1 : 1;
	return (a->die > b->die) - (a->die < b->die);
}

static void sort(struct ranges *r)
{
	if (r->nr)
		qsort(r->list, r->nr, sizeof(*r->list), compare_ranges);
}

/* The one that starts last before the address; of nested ones that is the inner one. */
static const struct range *find(const struct ranges *r, uint64_t address)
{
	size_t low = 0, high = r->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->list[mid].low <= address)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i > 0 && low - i < MAX_RANGES; i--)
		if (address < r->list[i - 1].high)
			return &r->list[i - 1];
	return NULL;
}

/* --- units and functions -------------------------------------------------------------------- */

static void read_units(struct dwarf_file *f)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	f->has_units = true;
	while (!dwarf_get_units(f->dwarf, unit, &unit, NULL, NULL, &die, NULL))
		add_ranges(&f->units, &die);
	sort(&f->units);
}

/* .debug_aranges need not be there, nor be whole. */
static bool find_unit(struct dwarf_file *f, uint64_t address, Dwarf_Die *unit)
{
	const struct range *r;

	if (dwarf_addrdie(f->dwarf, address, unit))
		return true;
	if (!f->has_units)
		read_units(f);
	r = find(&f->units, address);
	return r && dwarf_offdie(f->dwarf, r->die, unit);
}

static void add_functions(struct ranges *r, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;

	if (dwarf_child(parent, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			add_ranges(r, &die);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			if (depth < MAX_DEPTH)
				add_functions(r, &die, depth + 1);
			break;
		}
	} while (!dwarf_siblingof(&die, &die));
}

/* All of a unit at once: a walk from its start for each address takes as long for each. */
static const struct ranges *functions_of(struct dwarf_file *f, Dwarf_Die *unit)
{
	uint64_t key = dwarf_dieoffset(unit), value;
	struct ranges *r;

	if (table__get(f->by_unit, key, &value))
		return (const struct ranges *)(uintptr_t)value;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	add_functions(r, unit, 0);
	sort(r);
	if (!table__set(f->by_unit, key, (uintptr_t)r))
		return r;
	free(r->list);
	free(r);
	return NULL;
}

/* --- frames --------------------------------------------------------------------------------- */

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return dwarf_diename(die);
}

static bool number_of(Dwarf_Die *die, unsigned int what, Dwarf_Word *value)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, what, &attr) && !dwarf_formudata(&attr, value);
}

static void set_line(struct dwarf_frame *frame, const char *file, Dwarf_Word line)
{
	frame->line = line <= INT32_MAX ? (uint32_t)line : 0;
	frame->file = frame->line ? file : NULL;
}

/* An inlined call says where it stands: that is the line of the frame around it. */
static void set_call_line(struct dwarf_frame *frame, Dwarf_Die *unit, Dwarf_Die *call)
{
	Dwarf_Word line, file = 0;
	Dwarf_Files *files;
	const char *name = NULL;
	size_t nr;

	if (!number_of(call, DW_AT_call_line, &line))
		return;
	if (number_of(call, DW_AT_call_file, &file) && !dwarf_getsrcfiles(unit, &files, &nr) &&
	    file < nr)
		name = dwarf_filesrc(files, file, NULL, NULL);
	set_line(frame, name, line);
}

/* The block below `die` that holds the address, with the blocks between left out. */
static bool find_inlined(Dwarf_Die *die, uint64_t address)
{
	Dwarf_Die child;
	int blocks = 0;

	if (dwarf_child(die, &child))
		return false;
	for (;;) {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&child, address) > 0) {
			*die = child;
			if (tag == DW_TAG_inlined_subroutine)
				return true;
			if (++blocks == MAX_BLOCKS || dwarf_child(die, &child))
				return false;
			continue;
		}
		if (dwarf_siblingof(&child, &child))
			return false;
	}
}

static void find_inlines(struct dwarf_file *f, Dwarf_Die *unit, uint64_t address,
			 struct dwarf_answer *out)
{
	const struct ranges *functions = functions_of(f, unit);
	const struct range *r = functions ? find(functions, address) : NULL;
	Dwarf_Die die;

	if (!r || !dwarf_offdie(f->dwarf, r->die, &die))
		return;
	while (out->nr < DWARF_MAX_FRAMES && find_inlined(&die, address)) {
		const char *name = name_of(&die);

		if (!name) {
			out->nameless = true;
			continue;
		}
		set_call_line(&out->frames[out->nr - 1], unit, &die);
		out->frames[out->nr++] = (struct dwarf_frame){ .name = name };
	}
}

void dwarf_file__find(struct dwarf_file *f, uint64_t address, struct dwarf_answer *out)
{
	Dwarf_Line *source;
	Dwarf_Die unit;
	int line = 0;

	memset(out, 0, sizeof(*out));
	if (!find_unit(f, address, &unit))
		return;
	out->nr = 1;
	out->split = dwarf_hasattr(&unit, DW_AT_dwo_name) || dwarf_hasattr(&unit, DW_AT_GNU_dwo_name);
	if (!out->split)
		find_inlines(f, &unit, address, out);
	source = dwarf_getsrc_die(&unit, address);
	if (source && !dwarf_lineno(source, &line) && line > 0)
		set_line(&out->frames[out->nr - 1], dwarf_linesrc(source, NULL, NULL), (Dwarf_Word)line);
}
