// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Drives a fuzzer where there is no libFuzzer: changes the files of a folder at random, blindly, for some
 * seconds. The same number gives the same inputs.
 *
 *   NAME_plain SECONDS NUMBER FOLDER FAILED
 *
 * An input that crashes, or takes longer than 10 s, is left in the file FAILED; NAME_plain 0 0 FOLDER
 * FAILED tries the files of FOLDER as they are.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 4096
#define MAX_SIZE 40000		/* as libFuzzer's in fuzz.mk */
#define LIMIT 10
#define BATCH 64		/* inputs between two looks at the clock */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct file {
	uint8_t *bytes;
	size_t size;
};

static struct file files[MAX_FILES];
static size_t nr_files;
static uint8_t input[MAX_SIZE];
static size_t input_size;
static const char *failed;
static uint64_t state;

static void keep_input(void)
{
	int fd = open(failed, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, input, input_size) != (ssize_t)input_size)
		_exit(2);
	close(fd);
}

static void on_signal(int sig)
{
	keep_input();
	signal(sig, SIG_DFL);
	raise(sig);
}

static uint64_t draw(void)	/* splitmix64 */
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static size_t below(size_t n)
{
	return n ? draw() % n : 0;
}

static int read_file(const char *folder, const char *name)
{
	struct file *f = &files[nr_files];
	char path[4096];
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	in = fopen(path, "rb");
	if (!in)
		return -1;
	f->bytes = malloc(MAX_SIZE);
	f->size = f->bytes ? fread(f->bytes, 1, MAX_SIZE, in) : 0;
	nr_files += f->size > 0;
	fclose(in);
	return f->bytes ? 0 : -1;
}

static int read_folder(const char *folder)
{
	struct dirent **names;
	int n = scandir(folder, &names, NULL, alphasort), err = n < 0 ? -1 : 0;

	for (int i = 0; i < n; i++) {
		if (!err && *names[i]->d_name != '.' && nr_files < MAX_FILES)
			err = read_file(folder, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return err;
}

/* Numbers that readers stumble over, of 1 to 8 bytes; or any. */
static void change_number(size_t at)
{
	static const uint64_t odd[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000,
					INT32_MAX, 1ull << 31, UINT32_MAX, 1ull << 32, INT64_MAX,
					1ull << 63, UINT64_MAX };
	size_t width = (size_t)1 << below(4);
	uint64_t value = 0;

	if (width > input_size - at)
		width = 1;
	memcpy(&value, input + at, width);
	switch (below(4)) {
	case 0:
		value += below(33) - 16;
		break;
	case 1:
		value = draw();
		break;
	default:
		value = odd[below(sizeof(odd) / sizeof(odd[0]))];
	}
	memcpy(input + at, &value, width);
}

static void change(void)
{
	size_t at = below(input_size), from = below(input_size), n;

	switch (below(8)) {
	case 0:
		input[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:		/* a piece from elsewhere */
		n = below(input_size - (at > from ? at : from)) + 1;
		memmove(input + at, input + from, n < 64 ? n : 64);
		break;
	case 2:		/* longer by a piece */
		n = below(64) + 1;
		if (input_size + n <= MAX_SIZE) {
			memmove(input + at + n, input + at, input_size - at);
			input_size += n;
		}
		break;
	case 3:
		if (!below(4))
			input_size = at + 1;
		break;
	default:
		change_number(at);
	}
}

static void try_one(size_t file, unsigned int changes)
{
	uint8_t *exact;

	input_size = files[file].size;
	memcpy(input, files[file].bytes, input_size);
	while (changes--)
		change();
	exact = malloc(input_size);	/* so that a byte too far is seen */
	if (!exact)
		exit(2);
	memcpy(exact, input, input_size);
	alarm(LIMIT);
	LLVMFuzzerTestOneInput(exact, input_size);
	alarm(0);
	free(exact);
}

int main(int argc, char **argv)
{
	unsigned long tried = 0;
	time_t end;

	if (argc != 5)
		return 64;
	end = time(NULL) + (time_t)strtoul(argv[1], NULL, 10);
	state = strtoull(argv[2], NULL, 0);
	failed = argv[4];
	if (read_folder(argv[3]) || !nr_files) {
		fprintf(stderr, "%s: no inputs\n", argv[3]);
		return 2;
	}
	__sanitizer_set_death_callback(keep_input);
	signal(SIGABRT, on_signal);
	signal(SIGALRM, on_signal);
	for (; tried < nr_files; tried++)
		try_one(tried, 0);
	while (time(NULL) < end)
		for (unsigned int i = 0; i < BATCH; i++, tried++)
			try_one(below(nr_files), 1 + (unsigned int)below(1 + below(24)));
	printf("%lu inputs, none failed\n", tried);
	return 0;
}
