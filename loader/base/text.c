// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

size_t text__utf8(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf;
	size_t n, i;

	if (!len)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (len < n)
		return 0;
	/* The second byte alone tells overlong forms, surrogates and what lies past U+10FFFF. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < n; i++)
		if (!is_tail(p[i]))
			return 0;
	return n;
}

size_t text__cut(const char *s, size_t len, size_t max)
{
	size_t back;

	if (len <= max)
		return len;
	for (back = 0; back < 4 && back < max; back++) {
		size_t start = max - back - 1, n = text__utf8(s + start, len - start);

		if (n)
			return start + n > max ? start : max;
	}
	return max;
}

uint32_t text__character(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;

	switch (n) {
	case 1:
		return p[0];
	case 2:
		return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
	case 3:
		return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
	default:
		return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
		       (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
	}
}

bool text__is_control(uint32_t c)
{
	static const struct {
		uint16_t first, last;
	} ranges[] = {
		{ 0x0000, 0x001f }, { 0x007f, 0x009f },	/* C0, DEL, C1 */
		{ 0x061c, 0x061c }, { 0x200e, 0x200f },	/* marks of direction */
		{ 0x180e, 0x180e }, { 0x200b, 0x200b }, { 0xfeff, 0xfeff },	/* of no width */
		{ 0x2028, 0x202e },	/* line and paragraph; embeddings and overrides */
		{ 0x2060, 0x206f },	/* of no width; isolates; the deprecated ones */
		{ 0xfff9, 0xfffb },	/* annotations */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

size_t text__clean(char *dst, const char *src, size_t len)
{
	size_t in = 0, out = 0, n;

	while (in < len) {
		n = text__utf8(src + in, len - in);
		if (!n || text__is_control(text__character(src + in, n))) {
			dst[out++] = '?';
			in += n ? n : 1;
			continue;
		}
		memmove(dst + out, src + in, n);
		out += n;
		in += n;
	}
	return out;
}

/* Room for `more` bytes and the NUL. */
static bool text__reserve(struct text *t, size_t more)
{
	size_t need, size;
	char *data;

	if (t->failed)
		return false;
	if (__builtin_add_overflow(t->len, more, &need) || need >= SIZE_MAX / 2) {
		t->failed = true;
		return false;
	}
	need++;
	if (need <= t->size)
		return true;
	size = t->size ? t->size : 64;
	while (size < need)
		size *= 2;
	data = realloc(t->data, size);
	if (!data) {
		t->failed = true;
		return false;
	}
	t->data = data;
	t->size = size;
	return true;
}

void text__add(struct text *t, const char *s, size_t len)
{
	if (!text__reserve(t, len))
		return;
	if (len)
		memcpy(t->data + t->len, s, len);
	t->len += len;
	t->data[t->len] = '\0';
}

void text__add_string(struct text *t, const char *s)
{
	text__add(t, s, strlen(s));
}

void text__add_clean(struct text *t, const char *s, size_t len)
{
	if (!text__reserve(t, len))
		return;
	t->len += text__clean(t->data + t->len, s, len);
	t->data[t->len] = '\0';
}

void text__printf(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		t->failed = true;
		return;
	}
	if (!text__reserve(t, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(t->data + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	t->len += (size_t)n;
}

void text__truncate(struct text *t, size_t len)
{
	if (len >= t->len)
		return;
	t->len = len;
	t->data[len] = '\0';
}

char *text__take(struct text *t)
{
	char *data = NULL;

	if (text__reserve(t, 0)) {
		t->data[t->len] = '\0';
		data = t->data;
		t->data = NULL;
	}
	text__free(t);
	return data;
}

void text__free(struct text *t)
{
	free(t->data);
	memset(t, 0, sizeof(*t));
}

int text__why(char **why, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return err;
}

const char *text__name(char *buf, const char *name)
{
	static const char more[] = "\xe2\x80\xa6";
	size_t len = strlen(name), kept = len;

	if (len >= TEXT_NAME)
		kept = text__cut(name, len, TEXT_NAME - sizeof(more));
	kept = text__clean(buf, name, kept);
	memcpy(buf + kept, len < TEXT_NAME ? "" : more, len < TEXT_NAME ? 1 : sizeof(more));
	return buf;
}

size_t text__columns(const char *s, size_t len)
{
	size_t columns = 0, i, n;

	for (i = 0; i < len; i += n, columns++) {
		n = text__utf8(s + i, len - i);
		if (!n)
			n = 1;
	}
	return columns;
}

/* Three significant digits, but whole numbers whole. */
static const char *figure(char *buf, double value, const char *unit)
{
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	snprintf(buf, TEXT_FIGURE, "%.*f %s", digits, value, unit);
	return buf;
}

const char *text__duration(char *buf, uint64_t ns)
{
	if (ns < 1000) {
		snprintf(buf, TEXT_FIGURE, "%u ns", (unsigned int)ns);
		return buf;
	}
	/* Borders where rounding would show 1000 of the smaller unit. */
	if (ns < 999500)
		return figure(buf, (double)ns / 1e3, "us");
	if (ns < 999500000)
		return figure(buf, (double)ns / 1e6, "ms");
	return figure(buf, (double)ns / 1e9, "s");
}

const char *text__bytes(char *buf, uint64_t bytes)
{
	static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, TEXT_FIGURE, "%u B", (unsigned int)bytes);
		return buf;
	}
	while (value >= 1023.5 && i + 1 < sizeof(unit) / sizeof(unit[0])) {
		value /= 1024;
		i++;
	}
	return figure(buf, value, unit[i]);
}

const char *text__count(char *buf, uint64_t n)
{
	char digits[TEXT_FIGURE];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), i;
	char *p = buf;

	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
	return buf;
}

void text__add_count(struct text *t, uint64_t n, const char *one, const char *many)
{
	char figures[TEXT_FIGURE];

	text__printf(t, "%s %s", text__count(figures, n), n == 1 ? one : many);
}

const char *text__share(char *buf, uint64_t part, uint64_t whole)
{
	double percent;

	if (!whole || !part) {
		snprintf(buf, TEXT_FIGURE, whole ? "0 %%" : "-");
		return buf;
	}
	percent = 100.0 * (double)part / (double)whole;
	/* Neither "0 %" for something nor "100 %" for less than all. */
	if (percent < 0.01)
		snprintf(buf, TEXT_FIGURE, "<0.01 %%");
	else if (part < whole && percent > 99.99)
		snprintf(buf, TEXT_FIGURE, ">99.99 %%");
	else if (percent < 1 || (percent > 99 && part < whole))
		snprintf(buf, TEXT_FIGURE, "%.2f %%", percent);
	else
		snprintf(buf, TEXT_FIGURE, "%.1f %%", percent);
	return buf;
}

int text__write(const struct text *t, FILE *f)
{
	if (t->failed)
		return -ENOMEM;
	errno = 0;
	if (fwrite(t->data, 1, t->len, f) != t->len || fflush(f))
		return errno ? -errno : -EIO;
	return 0;
}
