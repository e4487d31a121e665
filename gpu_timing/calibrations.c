// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/calibrations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/array.h"
#include "loader/base/parse.h"

#define HEADING "gpucollect calibration 1"
#define END "end"
#define MAX_LINE (CALIBRATIONS_MAX_NAME + 64)

static const struct {
	const char *word;
	enum copy_kind copy;
} works[NR_CALIBRATION_WORKS] = {
	[CALIBRATION_KERNEL] = { "kernel", COPY_UNKNOWN },
	[CALIBRATION_HTOD] = { "HtoD", COPY_HTOD },
	[CALIBRATION_DTOH] = { "DtoH", COPY_DTOH },
	[CALIBRATION_DTOD] = { "DtoD", COPY_DTOD },
	[CALIBRATION_SET] = { "set", COPY_SET },
};

void calibrations__free(struct calibrations *c)
{
	free(c->entry);
	memset(c, 0, sizeof(*c));
}

bool calibrations__is_name(const char *name, size_t len)
{
	size_t i;

	if (!len || len > CALIBRATIONS_MAX_NAME || name[0] == ' ' || name[len - 1] == ' ')
		return false;
	for (i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return true;
}

static struct calibrations_entry *find(const struct calibrations *c, const char *device, size_t len,
				       uint32_t version, enum calibration_work work)
{
	size_t i;

	for (i = 0; i < c->nr; i++) {
		struct calibrations_entry *e = &c->entry[i];

		if (e->work == work && e->version == version && strlen(e->device) == len &&
		    !memcmp(e->device, device, len))
			return e;
	}
	return NULL;
}

int calibrations__set(struct calibrations *c, const struct calibrations_entry *entry)
{
	struct calibrations_entry *e = find(c, entry->device, strlen(entry->device), entry->version,
					    entry->work);

	if (!e) {
		if (array__reserve((void **)&c->entry, &c->size, c->nr, sizeof(*c->entry)))
			return -ENOMEM;
		e = &c->entry[c->nr++];
	}
	*e = *entry;
	return 0;
}

/* --- text ------------------------------------------------------------------------------------- */

/* The next word of *rest, which ends with a blank; *rest is what follows. NULL: there is none. */
static char *word(char **rest)
{
	char *begin = *rest, *blank = strchr(begin, ' ');

	if (!blank || blank == begin)
		return NULL;
	*blank = '\0';
	*rest = blank + 1;
	return begin;
}

static int number(const char *s, uint64_t max, uint32_t *value)
{
	uint64_t n;
	int err = s ? parse__u64(s, 0, max, &n) : -EINVAL;

	if (err)
		return -EINVAL;
	*value = (uint32_t)n;
	return 0;
}

/* "13000 kernel 2870 1450 NVIDIA H200" */
static int read_entry(char *line, struct calibrations_entry *e)
{
	const char *name;
	int i;

	memset(e, 0, sizeof(*e));
	if (number(word(&line), INT32_MAX, &e->version))
		return -EINVAL;
	name = word(&line);
	for (i = 0; name && i < NR_CALIBRATION_WORKS && strcmp(name, works[i].word); i++)
		;
	if (!name || i == NR_CALIBRATION_WORKS)
		return -EINVAL;
	e->work = (enum calibration_work)i;
	if (number(word(&line), CALIBRATIONS_MAX_NS, &e->busy_ns) ||
	    number(word(&line), CALIBRATIONS_MAX_NS, &e->idle_ns) ||
	    !calibrations__is_name(line, strlen(line)))
		return -EINVAL;
	memcpy(e->device, line, strlen(line));
	return 0;
}

static int add_entry(struct calibrations *c, char *line)
{
	struct calibrations_entry e;
	int err = read_entry(line, &e);

	if (!err && find(c, e.device, strlen(e.device), e.version, e.work))
		err = -EINVAL;
	return err ? err : calibrations__set(c, &e);
}

/* "end 5": so many entries stand before it, and nothing behind. */
static bool is_end(const char *line, size_t nr)
{
	char end[64];

	snprintf(end, sizeof(end), END " %zu", nr);
	return !strcmp(line, end);
}

/* The next line, without its end, into `line` of MAX_LINE bytes; false: there is none that is whole. */
static bool next_line(const char **text, size_t *len, char *line)
{
	const char *newline = memchr(*text, '\n', *len);
	size_t n = newline ? (size_t)(newline - *text) : 0;

	if (!newline || n >= MAX_LINE || memchr(*text, '\0', n))
		return false;
	memcpy(line, *text, n);
	line[n] = '\0';
	*text += n + 1;
	*len -= n + 1;
	return true;
}

int calibrations__parse(struct calibrations *c, const char *text, size_t len, unsigned int *nr)
{
	char line[MAX_LINE];
	int err = -EINVAL;

	memset(c, 0, sizeof(*c));
	*nr = 1;
	if (len > CALIBRATIONS_MAX_FILE || !next_line(&text, &len, line) || strcmp(line, HEADING))
		return -EINVAL;
	for (;;) {
		++*nr;
		if (!next_line(&text, &len, line))
			break;
		if (is_end(line, c->nr)) {
			err = len ? -EINVAL : 0;
			*nr += len != 0;
			break;
		}
		err = add_entry(c, line);
		if (err)
			break;
		err = -EINVAL;
	}
	if (err)
		calibrations__free(c);
	return err;
}

void calibrations__print(const struct calibrations *c, struct text *t)
{
	size_t i;

	text__add_string(t, HEADING "\n");
	for (i = 0; i < c->nr; i++) {
		const struct calibrations_entry *e = &c->entry[i];

		text__printf(t, "%" PRIu32 " %s %" PRIu32 " %" PRIu32 " %s\n", e->version,
			     works[e->work].word, e->busy_ns, e->idle_ns, e->device);
	}
	text__printf(t, END " %zu\n", c->nr);
}

/* --- looked up -------------------------------------------------------------------------------- */

void calibrations__find(const struct calibrations *c, const char *device, size_t len, uint32_t version,
			struct calibration *out)
{
	int i;

	calibration__builtin(device, len, version, out);
	for (i = 0; c && i < NR_CALIBRATION_WORKS; i++) {
		const struct calibrations_entry *e = find(c, device, len, version,
							  (enum calibration_work)i);
		struct calibration_constant *k = i == CALIBRATION_KERNEL ? &out->kernels :
						 &out->copies[works[i].copy];

		if (e)
			*k = (struct calibration_constant){ true, e->busy_ns, e->idle_ns };
	}
}
