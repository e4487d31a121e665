// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/lines_reply.h"

#include <string.h>

struct writing {
	char *message;
	size_t len;
};

static bool put(struct writing *w, const void *data, size_t len)
{
	if (len > LINES_MESSAGE - w->len)
		return false;
	if (len)
		memcpy(w->message + w->len, data, len);
	w->len += len;
	return true;
}

static bool put_frame(struct writing *w, const struct dwarf_frame *f)
{
	size_t before = w->len, name = f->name ? strlen(f->name) : 0;
	size_t file = f->file ? strlen(f->file) : 0;
	struct lines_reply_frame head = {
		.line = f->line,
		.name_len = f->name ? (uint32_t)name : LINES_NO_STRING,
		.file_len = f->file ? (uint32_t)file : LINES_NO_STRING,
	};

	if (name < LINES_MESSAGE && file < LINES_MESSAGE && put(w, &head, sizeof(head)) &&
	    put(w, f->name, name) && put(w, f->file, file))
		return true;
	w->len = before;
	return false;
}

size_t lines_reply__write(const struct dwarf_answer *answer, uint32_t flags, char *message)
{
	struct writing w = { .message = message, .len = sizeof(struct lines_reply) };
	struct lines_reply reply = { .flags = flags };

	for (size_t i = 0; i < answer->nr; i++) {
		if (put_frame(&w, &answer->frames[i]))
			reply.nr++;
		else
			reply.flags |= LINES_CUT;
	}
	if (answer->split)
		reply.flags |= LINES_SPLIT;
	if (answer->nameless)
		reply.flags |= LINES_NAMELESS;
	memcpy(message, &reply, sizeof(reply));
	return w.len;
}

struct reading {
	const char *from, *end;
	char *to;
};

/* false: not what was agreed upon. */
static bool take_string(struct reading *r, uint32_t len, const char **out)
{
	*out = NULL;
	if (len == LINES_NO_STRING)
		return true;
	if (len > (size_t)(r->end - r->from) || memchr(r->from, '\0', len))
		return false;
	*out = r->to;
	memcpy(r->to, r->from, len);
	r->to[len] = '\0';
	r->to += len + 1;
	r->from += len;
	return true;
}

static bool take_frame(struct reading *r, struct lines_frame *frame)
{
	struct lines_reply_frame head;

	if ((size_t)(r->end - r->from) < sizeof(head))
		return false;
	memcpy(&head, r->from, sizeof(head));
	r->from += sizeof(head);
	frame->line = head.line;
	return take_string(r, head.name_len, &frame->name) &&
	       take_string(r, head.file_len, &frame->file);
}

size_t lines_reply__parse(const char *message, size_t len, uint32_t *flags,
			  struct lines_frame *frames, char *text)
{
	struct reading r = { message, message + len, text };
	struct lines_reply head;

	*flags = 0;
	if (len < sizeof(head) || len > LINES_MESSAGE)
		return 0;
	memcpy(&head, r.from, sizeof(head));
	r.from += sizeof(head);
	if (head.nr > DWARF_MAX_FRAMES)
		return 0;
	for (uint32_t i = 0; i < head.nr; i++)
		if (!take_frame(&r, &frames[i]))
			return 0;
	*flags = head.flags;
	return head.nr;
}
