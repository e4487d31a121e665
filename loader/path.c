// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "bpf/gpucollect.h"
#include "loader/base/array.h"
#include "loader/python_fold.h"

struct path {
	struct path_input in;
	uint32_t *frame;
	size_t nr, room;
	bool *is_library;	/* by file */
};

/* A process that the library was brought to has a file of its own with it. */
static int find_libraries(struct path *path)
{
	uint32_t i, nr = files__count(path->in.files);

	path->is_library = calloc(nr + 1ul, sizeof(*path->is_library));
	if (!path->is_library)
		return -ENOMEM;
	for (i = 1; path->in.sites && i <= nr; i++)
		if (files__fd(path->in.files, i) >= 0)
			path->is_library[i] = sites__has(path->in.sites, files__fd(path->in.files, i));
	return 0;
}

int path__new(const struct path_input *in, struct path **out)
{
	struct path *path = calloc(1, sizeof(*path));
	int err;

	if (!path)
		return -ENOMEM;
	path->in = *in;
	err = find_libraries(path);
	if (err)
		path__free(path);
	else
		*out = path;
	return err;
}

void path__free(struct path *path)
{
	if (!path)
		return;
	free(path->frame);
	free(path->is_library);
	free(path);
}

void path__clear(struct path *path)
{
	path->nr = 0;
}

const uint32_t *path__frames(const struct path *path, size_t *nr)
{
	*nr = path->nr;
	return path->frame;
}

static enum profile_mark mark_of(uint32_t why)
{
	switch (why) {
	case END_TRUNCATED: return PROFILE_MARK_TRUNCATED;
	case END_NO_INFO: return PROFILE_MARK_NO_UNWIND_INFO;
	case END_NO_RULE: return PROFILE_MARK_NO_UNWIND_RULE;
	case END_UNREADABLE: return PROFILE_MARK_STACK_UNREADABLE;
	case END_NO_PROGRESS: return PROFILE_MARK_STACK_LOOPS;
	case END_NOT_CODE: return PROFILE_MARK_NOT_CODE;
	case END_ANON: return PROFILE_MARK_GENERATED;
	case END_NO_STACK: return PROFILE_MARK_NO_STACK;
	default: return PROFILE_MARK_UNKNOWN;
	}
}

static uint8_t unresolved_of(const struct path *path, const struct resolved *r, uint64_t word)
{
	if (r->kind != RESOLVED_UNNAMED)
		return PROFILE_RESOLVED;
	switch (FRAME_KIND(word)) {
	case FRAME_ANON:
	case FRAME_ANON_GUESS:
		return PROFILE_GENERATED;
	case FRAME_KERNEL:
		return PROFILE_KERNEL_HIDDEN;
	default:
		return files__fd(path->in.files, FRAME_FILE_ID(word)) < 0 &&
		       FRAME_FILE_ID(word) != FILES_VDSO ? PROFILE_FILE_UNREADABLE :
		       PROFILE_NO_SYMBOL;
	}
}

static int add(struct path *path, uint32_t frame)
{
	int err = array__reserve((void **)&path->frame, &path->room, path->nr, sizeof(*path->frame));

	if (!err)
		path->frame[path->nr++] = frame;
	return err;
}

int path__add_frame(struct path *path, const struct profile_frame *frame)
{
	uint32_t id;
	int err = profile__frame(path->in.profile, frame, &id);

	return err ? err : add(path, id);
}

int path__add_mark(struct path *path, enum profile_mark mark, const char *module)
{
	uint32_t id;
	int err = profile__mark(path->in.profile, mark, module, &id);

	return err ? err : add(path, id);
}

/* Outermost first, as they stand behind the function that they are inlined in. */
static int add_inlines(struct path *path, const struct resolved *res, uint8_t flags)
{
	int err = 0;

	for (uint32_t i = 0; i < res->nr_inlines && !err; i++) {
		const struct resolved_inline *in = &res->inlines[i];
		const struct profile_frame frame = {
			.kind = PROFILE_NATIVE,
			.flags = (uint8_t)(flags | PROFILE_INLINED),
			.line = in->line,
			.name = in->name,
			.raw = in->symbol && strcmp(in->symbol, in->name) ? in->symbol : NULL,
			.module = res->module,
			.file = in->file,
		};

		err = path__add_frame(path, &frame);
	}
	return err;
}

/* Code that the process made at run time: its name is what the process told, if it did. */
static void name_generated(struct path *path, const struct process *p, uint32_t stack, uint64_t word,
			   struct profile_frame *frame)
{
	const char *name = path->in.jit ? jit__name(path->in.jit, p, stack, word) : NULL;

	if (name || FRAME_KIND(word) == FRAME_ANON || FRAME_KIND(word) == FRAME_ANON_GUESS)
		frame->flags |= PROFILE_JIT;
	if (!name)
		return;
	frame->name = symbols__readable(path->in.symbols, name);
	frame->raw = strcmp(frame->name, name) ? name : NULL;
	frame->unresolved = PROFILE_RESOLVED;
}

/* The frames of a word of a process's stack: none, one, or a function and what is inlined in it. */
static int add_word(struct path *path, const struct process *p, uint32_t stack, uint64_t word)
{
	struct resolved res;
	struct profile_frame frame = {};
	int err;

	if (FRAME_KIND(word) == FRAME_END && FRAME_END_WHY(word) == END_KERNEL_THREAD)
		return 0;	/* its kernel stack is all there is */
	if (!symbols__resolve(path->in.symbols, word, &res))
		return 0;
	if (FRAME_KIND(word) == FRAME_END)
		return path__add_mark(path, mark_of(FRAME_END_WHY(word)), res.module);
	frame.kind = FRAME_KIND(word) == FRAME_KERNEL ? PROFILE_KERNEL : PROFILE_NATIVE;
	frame.flags = res.guess ? PROFILE_GUESS : 0;
	frame.unresolved = unresolved_of(path, &res, word);
	frame.name = res.name;
	if (res.symbol && strcmp(res.symbol, res.name))
		frame.raw = res.symbol;
	frame.module = res.module;
	frame.file = res.file;
	frame.line = res.line;
	if (res.kind == RESOLVED_UNNAMED)
		name_generated(path, p, stack, word, &frame);
	err = path__add_frame(path, &frame);
	return err ? err : add_inlines(path, &res, frame.flags);
}

/* --- Python ------------------------------------------------------------------------------- */

static int add_python(struct path *path, const struct process *p, uint64_t code, uint64_t at)
{
	struct profile_frame frame = { .kind = PROFILE_PYTHON };
	struct python_name name;

	if (!FRAME_ADDRESS(code) || !path->in.python_names ||
	    !python_names__of(path->in.python_names, p, code, at, &name))
		return path__add_mark(path, PROFILE_MARK_PYTHON_UNKNOWN, NULL);
	frame.name = name.function;
	frame.file = name.file;
	frame.line = name.line;
	return path__add_frame(path, &frame);
}

static bool is_interpreter(const struct path *path, uint64_t word)
{
	return (FRAME_KIND(word) == FRAME_FILE || FRAME_KIND(word) == FRAME_FILE_GUESS) &&
	       path->in.python && python__is_interpreter(path->in.python, FRAME_FILE_ID(word));
}

/* A function of the interpreter's; false: it is none. */
static bool resolve_own(const struct path *path, uint64_t word, struct resolved *res, const char **symbol)
{
	if (!is_interpreter(path, word) || !symbols__resolve(path->in.symbols, word, res))
		return false;
	*symbol = res->symbol ? res->symbol : res->name;
	return true;
}

/* Whether a frame of a stack with Python frames tells nothing beside them. */
static bool is_internal(const struct path *path, uint64_t word)
{
	struct resolved res;
	const char *symbol;

	if (!resolve_own(path, word, &res, &symbol))
		return false;
	return res.kind == RESOLVED_UNNAMED || python_fold__is_internal(symbol);
}

/* Of perf's trampolines (-X perf), one for each Python function, named after it. */
static bool is_trampoline(const struct path *path, const struct process *p, uint32_t stack, uint64_t word)
{
	const char *name = FRAME_KIND(word) == FRAME_ANON && path->in.jit ?
			   jit__name(path->in.jit, p, stack, word) : NULL;

	return name && !strncmp(name, "py::", 4);
}

static bool is_main(const struct path *path, uint64_t word)
{
	struct resolved res;
	const char *symbol;

	return resolve_own(path, word, &res, &symbol) && python_fold__is_main(symbol);
}

static bool is_mark(uint64_t word)
{
	return FRAME_KIND(word) == FRAME_END || FRAME_KIND(word) == FRAME_RUN_AT ||
	       FRAME_KIND(word) == FRAME_RUN_CUT;
}

/*
 * Whether what stands before the first Python frame is only the way there: of the program python3, or of a
 * thread that Python started, where it is the interpreter and the C library alone.
 */
static bool is_way_in(const struct path *path, const struct process *p, uint32_t stack, const uint64_t *word,
		      uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (is_main(path, word[i]))
			return true;
	for (uint32_t i = 0; i < nr; i++) {
		if (is_mark(word[i]) || is_trampoline(path, p, stack, word[i]))
			continue;
		if (FRAME_KIND(word[i]) != FRAME_FILE || (!is_interpreter(path, word[i]) &&
		    !python_fold__is_c_library(files__path(path->in.files, FRAME_FILE_ID(word[i])))))
			return false;
	}
	return true;
}

/* Index of the outermost word that is of a Python frame; nr: there is none. */
static uint32_t outermost_python(const uint64_t *word, uint32_t nr)
{
	for (uint32_t i = nr; i > 0; i--)
		if (FRAME_KIND(word[i - 1]) == FRAME_PYTHON_AT)
			return i - 1;
	return nr;
}

bool path__is_python(const struct path *path, const struct process *p, uint32_t stack, bool anyhow)
{
	uint32_t nr, outer;
	const uint64_t *word = stacks__words(path->in.stacks, stack, &nr);

	outer = outermost_python(word, nr);
	return outer < nr && (anyhow || is_way_in(path, p, stack, word + outer + 1, nr - outer - 1));
}

/*
 * Whether Python ran, and nothing tells what: how its frames are read was not known yet, or it was just
 * about to begin.
 */
static bool lacks_python(const struct path *path, const uint64_t *word, uint32_t nr)
{
	bool calls = false;

	for (uint32_t i = 0; i < nr; i++) {
		if (FRAME_KIND(word[i]) >= FRAME_PYTHON)
			return false;
		calls |= path->in.python && python__is_call(path->in.python, word[i]);
	}
	return calls;
}

/* A stack, leaf first, perhaps with Python frames. */
static int add_mixed(struct path *path, const struct process *p, uint32_t stack, const uint64_t *word,
		     uint32_t nr)
{
	uint32_t outer = outermost_python(word, nr), i;
	bool fold = outer < nr && !path->in.native_python;
	bool way_in = fold && is_way_in(path, p, stack, word + outer + 1, nr - outer - 1);
	int err = 0;

	if (lacks_python(path, word, nr))
		err = path__add_mark(path, PROFILE_MARK_PYTHON_CUT, NULL);
	for (i = nr; i > 0 && !err; i--) {
		uint64_t w = word[i - 1];

		switch (FRAME_KIND(w)) {
		case FRAME_PYTHON_AT:
			i--;
			err = add_python(path, p, i ? word[i - 1] : 0, w);
			break;
		case FRAME_RUN_AT:
			err = path__add_mark(path, PROFILE_MARK_PYTHON_PLACE, NULL);
			break;
		case FRAME_RUN_CUT:
			err = path__add_mark(path, PROFILE_MARK_PYTHON_CUT, NULL);
			break;
		default:
			if (fold && FRAME_KIND(w) != FRAME_END &&
			    ((way_in && i - 1 > outer) || is_internal(path, w) ||
			     is_trampoline(path, p, stack, w)))
				break;
			err = add_word(path, p, stack, w);
		}
	}
	return err;
}

int path__add_stack(struct path *path, const struct process *p, uint32_t stack, bool launch)
{
	uint32_t nr, first = 0;
	const uint64_t *word = stacks__words(path->in.stacks, stack, &nr);

	while (launch && first < nr && FRAME_KIND(word[first]) == FRAME_FILE &&
	       path->is_library[FRAME_FILE_ID(word[first])])
		first++;
	return add_mixed(path, p, stack, word + first, nr - first);
}
