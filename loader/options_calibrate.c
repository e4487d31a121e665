// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line of `gpucollect calibrate`. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/parse.h"
#include "loader/base/text.h"
#include "loader/options.h"

#define MAX_DEVICE 1023		/* more than any machine has */

#define usage_error(message, ...) (text__printf(message, __VA_ARGS__), -EINVAL)

enum { OPT_DEVICE = 1000, OPT_JSON, OPT_VERSION };

static const struct option longs[] = {
	{ .name = "device", .has_arg = required_argument, .val = OPT_DEVICE },
	{ .name = "json", .val = OPT_JSON },
	{ .name = "quiet", .val = 'q' },
	{ .name = "help", .val = 'h' },
	{ .name = "version", .val = OPT_VERSION },
	{ 0 },
};

static int read_device(const char *s, struct options *o, struct text *message)
{
	uint64_t n;

	if (parse__u64(s, 0, MAX_DEVICE, &n))
		return usage_error(message, "--device %s: not the number of a device: give 0 for the first, "
				   "1 for the second", s);
	o->device = (int)n;
	return 0;
}

static int read_option(int key, const char *word, struct options *o, struct text *message)
{
	switch (key) {
	case OPT_DEVICE:
		return read_device(optarg, o, message);
	case OPT_JSON:
		o->json = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case ':':
		return usage_error(message, "%s: a value is missing: give the number of a device", word);
	default:
		return usage_error(message, "%s: calibrate has no such option: it takes --device N, --json "
				   "and -q", word);
	}
}

int options__parse_calibrate(int argc, char **argv, struct options *o, struct text *message)
{
	int key, before, err;

	o->action = ACTION_CALIBRATE;
	o->device = -1;
	optind = 0;	/* glibc: begin anew */
	opterr = 0;
	for (;;) {
		before = optind ? optind : 1;
		key = getopt_long(argc, argv, "+:qh", longs, NULL);
		if (key == -1)
			break;
		if (key == 'h' || key == OPT_VERSION) {
			o->action = key == 'h' ? ACTION_HELP : ACTION_VERSION;
			return 0;
		}
		err = read_option(key, argv[before], o, message);
		if (err)
			return err;
	}
	if (argv[optind])
		return usage_error(message, "%s: calibrate measures this machine's devices and takes nothing "
				   "else: gpucollect calibrate [--device N]", argv[optind]);
	return 0;
}
