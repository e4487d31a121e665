// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/demangle.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/itanium.h"

#define MAX_MANGLED (512u << 10)
#define MAX_RUST (16u << 10)
#define MAX_RUST_OUTPUT (64u << 10)
#define MAX_OWN_STACK 1024	/* longer names are worked on on a stack of their own */
#define MAX_SUFFIX_TRIES 4
#define RUST_HASH_LEN 16

struct rust_output {
	char *text;		/* MAX_RUST_OUTPUT + 1 bytes */
	size_t len;
	bool full;
	jmp_buf out;
};

/*
 * Back-references of the v0 form can stand for a text of any length: the only way out of the
 * library is a jump. While it prints an identifier outside ASCII, one character after the other, it
 * holds memory; two ASCII characters at once, such as the ", " of every list, come from elsewhere.
 */
static void put_rust(const char *s, size_t len, void *opaque)
{
	struct rust_output *o = opaque;

	if (len == 0)
		return;
	if (!o->full && len <= MAX_RUST_OUTPUT - o->len) {
		memcpy(o->text + o->len, s, len);
		o->len += len;
		return;
	}
	o->full = true;
	if (len >= 2 && isascii(s[0]) && isascii(s[1]))
		longjmp(o->out, 1);
}

static char *rust__demangle(const char *mangled)
{
	struct rust_output *o = calloc(1, sizeof(*o));
	char *text = NULL;
	int err = EINVAL;

	if (o)
		o->text = malloc(MAX_RUST_OUTPUT + 1);
	if (!o || !o->text) {
		err = ENOMEM;
		goto out;
	}
	if (setjmp(o->out)) {
		err = E2BIG;
		goto out;
	}
	if (!rust_demangle_callback(mangled, 0, put_rust, o) || !o->len)
		goto out;
	if (o->full) {
		err = E2BIG;
		goto out;
	}
	o->text[o->len] = '\0';
	text = strdup(o->text);
	err = text ? 0 : ENOMEM;
out:
	if (o)
		free(o->text);
	free(o);
	errno = err;
	return text;
}

/* The end of a legacy Rust name, "_ZN…17h<16 digits>E"; NULL: it isn't one. */
static const char *legacy_rust_end(const char *mangled)
{
	const char *s = mangled;

	if (strncmp(s, "_ZN", 3))
		return NULL;
	while ((s = strstr(s, "17h"))) {
		s += strlen("17h");
		if (strspn(s, "0123456789abcdef") >= RUST_HASH_LEN && s[RUST_HASH_LEN] == 'E' &&
		    (!s[RUST_HASH_LEN + 1] || s[RUST_HASH_LEN + 1] == '.'))
			return s + RUST_HASH_LEN + 1;
	}
	return NULL;
}

/* `part` is without suffix. */
static char *demangle_part(const char *part, size_t len, bool rust)
{
	if (!rust)
		return itanium__demangle(part, len);
	return len > MAX_RUST ? (errno = E2BIG, NULL) : rust__demangle(part);
}

/* mangled[0, len) is the name, what follows the suffix. */
static char *demangle_split(const char *mangled, size_t len, bool rust)
{
	size_t suffix = strlen(mangled + len);
	char *part = strndup(mangled, len), *text, *whole;
	size_t text_len;

	if (!part)
		return NULL;
	text = demangle_part(part, len, rust);
	free(part);
	if (!text || !suffix)
		return text;
	text_len = strlen(text);
	whole = realloc(text, text_len + suffix + 1);
	if (!whole) {
		free(text);
		return errno = ENOMEM, NULL;
	}
	memcpy(whole + text_len, mangled + len, suffix + 1);
	return whole;
}

static char *demangle_here(const char *mangled)
{
	const char *end = legacy_rust_end(mangled);
	char *text = NULL;
	size_t len;

	if (end) {
		text = demangle_split(mangled, (size_t)(end - mangled), true);
		if (text)
			return text;
	}
	if (mangled[1] == 'R')
		return demangle_split(mangled, strcspn(mangled, ".$"), true);
	/* a suffix starts at the first dot; but an identifier may hold dots, too */
	len = strcspn(mangled, ".");
	for (int i = 0; i < MAX_SUFFIX_TRIES; i++) {
		text = demangle_split(mangled, len, false);
		if (text || !mangled[len] || errno != EINVAL)
			break;
		len += 1 + strcspn(mangled + len + 1, ".");
	}
	return text;
}

struct job {
	const char *mangled;
	char *text;
	int err;
};

static void *run_job(void *arg)
{
	struct job *job = arg;

	job->text = demangle_here(job->mangled);
	job->err = errno;
	return NULL;
}

/* libiberty recurses as deep as a name is nested. */
static char *demangle_on_big_stack(const char *mangled, size_t len)
{
	struct job job = { .mangled = mangled };
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return errno = err, NULL;
	err = pthread_attr_setstacksize(&attr, ITANIUM_STACK(len) & ~0xffful);
	if (!err) {
		/* signals of the process are for its other threads */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		err = pthread_create(&thread, &attr, run_job, &job);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_attr_destroy(&attr);
	if (err)
		return errno = err == EAGAIN ? ENOMEM : err, NULL;
	pthread_join(thread, NULL);
	errno = job.err;
	return job.text;
}

char *demangle(const char *mangled)
{
	size_t len;

	if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R'))
		return errno = EINVAL, NULL;
	len = strnlen(mangled, MAX_MANGLED + 1);
	if (len > MAX_MANGLED)
		return errno = E2BIG, NULL;
	return len <= MAX_OWN_STACK ? demangle_here(mangled) : demangle_on_big_stack(mangled, len);
}
