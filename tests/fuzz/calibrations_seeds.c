// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the fuzzer's first inputs into a folder: a whole file, and one without entries. */
#include <stdio.h>

#define HEAD "gpucollect calibration 1\n"

static int save(const char *folder, const char *name, const char *text)
{
	char path[4096];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/seed-%s", folder, name);
	f = fopen(path, "wb");
	if (!f)
		return -1;
	err = fputs(text, f) < 0;
	return fclose(f) || err ? -1 : 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	return save(argv[1], "none", HEAD "end 0\n") ||
	       save(argv[1], "some",
		    HEAD "13000 kernel 2870 1450 NVIDIA H200\n13000 HtoD 3100 6000 NVIDIA H200\n"
		    "13000 DtoH 1 2 NVIDIA H200\n12080 DtoD 0 20000 A\n13000 set 5 6 A\nend 5\n");
}
