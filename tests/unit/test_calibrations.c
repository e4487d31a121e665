// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The file of constants: its text, its place, and the way from rounds to a constant. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_timing/calibrations.h"
#include "loader/calibrate/found.h"
#include "loader/calibrate/series.h"
#include "loader/calibrate/store.h"
#include "tests/unit/unit.h"

#define HEAD "gpucollect calibration 1\n"
#define H200 "13000 kernel 2900 1500 NVIDIA H200\n"
#define COPY "13000 HtoD 3100 6000 NVIDIA H200\n"

static struct calibrations c;
static unsigned int line;

static int parse(const char *text)
{
	int err = calibrations__parse(&c, text, strlen(text), &line);

	if (err)
		ck_assert(!c.nr && !c.entry);
	return err;
}

/* --- text ------------------------------------------------------------------------------------- */

START_TEST(a_whole_file_is_read)
{
	static const char text[] = HEAD H200 COPY "13000 DtoH 1 2 NVIDIA H200\n13000 DtoD 0 20000 A\n"
				   "12080 set 0 0 Some \"device\" (x/y)\nend 5\n";
	struct text again = { 0 };

	ck_assert_int_eq(parse(text), 0);
	ck_assert_uint_eq(c.nr, 5);
	ck_assert_str_eq(c.entry[0].device, "NVIDIA H200");
	ck_assert_uint_eq(c.entry[0].version, 13000);
	ck_assert_int_eq(c.entry[0].work, CALIBRATION_KERNEL);
	ck_assert_uint_eq(c.entry[0].busy_ns, 2900);
	ck_assert_uint_eq(c.entry[0].idle_ns, 1500);
	ck_assert_int_eq(c.entry[1].work, CALIBRATION_HTOD);
	ck_assert_int_eq(c.entry[4].work, CALIBRATION_SET);
	ck_assert_str_eq(c.entry[4].device, "Some \"device\" (x/y)");
	calibrations__print(&c, &again);
	ck_assert_str_eq(again.data, text);
	text__free(&again);
	calibrations__free(&c);
	ck_assert_int_eq(parse(HEAD "end 0\n"), 0);
	ck_assert_uint_eq(c.nr, 0);
}
END_TEST

START_TEST(what_is_not_whole_is_refused_by_line)
{
	static const struct {
		const char *text;
		unsigned int line;
	} files[] = {
		{ "", 1 }, { "\n", 1 }, { HEAD, 2 }, { "gpucollect calibration 2\nend 0\n", 1 },
		{ "gpucollect calibration 1\r\nend 0\n", 1 }, { "gpucollect calibration 1", 1 },
		{ HEAD H200, 3 }, { HEAD H200 "end 1", 3 }, { HEAD H200 "end 2\n", 3 },
		{ HEAD H200 "end 01\n", 3 }, { HEAD H200 "end 1\n\n", 4 }, { HEAD H200 "end 1\n" H200, 4 },
		{ HEAD H200 "\nend 1\n", 3 }, { HEAD H200 "# a comment\nend 1\n", 3 },
		{ HEAD H200 H200 "end 2\n", 3 },		/* which of them? */
		{ HEAD "13000 kernel 20001 0 A\nend 1\n", 2 }, { HEAD "13000 kernel 0 20001 A\nend 1\n", 2 },
		{ HEAD "13000 kernel -1 0 A\nend 1\n", 2 }, { HEAD "13000 kernel 1.5 0 A\nend 1\n", 2 },
		{ HEAD "13000 kernel 99999999999999999999 0 A\nend 1\n", 2 },
		{ HEAD "-1 kernel 1 1 A\nend 1\n", 2 }, { HEAD "4294967296 kernel 1 1 A\nend 1\n", 2 },
		{ HEAD "2147483648 kernel 1 1 A\nend 1\n", 2 }, { HEAD " kernel 1 1 A\nend 1\n", 2 },
		{ HEAD "13000 Kernel 1 1 A\nend 1\n", 2 }, { HEAD "13000 PtoP 1 1 A\nend 1\n", 2 },
		{ HEAD "13000  kernel 1 1 A\nend 1\n", 2 }, { HEAD "13000 kernel 1 1\nend 1\n", 2 },
		{ HEAD "13000 kernel 1 1 \nend 1\n", 2 }, { HEAD "13000 kernel 1 1  A\nend 1\n", 2 },
		{ HEAD "13000 kernel 1 1 A \nend 1\n", 2 }, { HEAD "13000 kernel 1 1 A\tB\nend 1\n", 2 },
		{ HEAD "13000 kernel 1 1 \33[2J\nend 1\n", 2 },
		{ HEAD "13000 kernel 1 1 \xc3\xa4\nend 1\n", 2 },
		{ HEAD "13000\nend 1\n", 2 }, { HEAD "kernel\nend 1\n", 2 },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		ck_assert_msg(parse(files[i].text) == -EINVAL, "%zu: %s", i, files[i].text);
		ck_assert_msg(line == files[i].line, "%zu: line %u: %s", i, line, files[i].text);
	}
}
END_TEST

/* Every part of a file, and every byte of it changed: refused, or another that can be read. */
START_TEST(any_bytes_are_survived)
{
	char text[] = HEAD H200 COPY "end 2\n";
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		ck_assert_int_eq(calibrations__parse(&c, text, i, &line), -EINVAL);
	for (size_t i = 0; i < len; i++) {
		char was = text[i];

		for (int b = 0; b < 256; b++) {
			int err;

			text[i] = (char)b;
			err = calibrations__parse(&c, text, len, &line);
			ck_assert(err == -EINVAL || (!err && c.nr == 2));
			if (!err)
				ck_assert_uint_le(c.entry[0].busy_ns, CALIBRATIONS_MAX_NS);
			calibrations__free(&c);
		}
		text[i] = was;
	}
}
END_TEST

START_TEST(names_and_files_have_a_limit)
{
	static char text[CALIBRATIONS_MAX_FILE + 100];
	char name[CALIBRATIONS_MAX_NAME + 2];
	size_t len;

	memset(name, 'x', sizeof(name));
	ck_assert(calibrations__is_name(name, CALIBRATIONS_MAX_NAME));
	ck_assert(!calibrations__is_name(name, CALIBRATIONS_MAX_NAME + 1) && !calibrations__is_name("", 0));
	snprintf(text, sizeof(text), HEAD "13000 kernel 1 2 %.255s\nend 1\n", name);
	ck_assert_int_eq(parse(text), 0);
	ck_assert_uint_eq(strlen(c.entry[0].device), 255);
	calibrations__free(&c);
	snprintf(text, sizeof(text), HEAD "13000 kernel 1 2 %.256s\nend 1\n", name);
	ck_assert_int_eq(parse(text), -EINVAL);
	len = (size_t)sprintf(text, HEAD);
	for (unsigned int i = 1; len + 40 < CALIBRATIONS_MAX_FILE; i++)
		len += (size_t)sprintf(text + len, "%u kernel 1 2 A\n", i);
	memset(text + len, '\n', sizeof(text) - len);
	ck_assert_int_eq(calibrations__parse(&c, text, CALIBRATIONS_MAX_FILE + 1, &line), -EINVAL);
}
END_TEST

START_TEST(the_file_goes_before_what_is_built_in)
{
	static const char h200[] = "NVIDIA H200";
	struct calibration k;

	ck_assert_int_eq(parse(HEAD "13000 kernel 11 12 NVIDIA H200\n13000 DtoD 21 22 NVIDIA H200\n"
			       "13000 set 31 32 NVIDIA A100\nend 3\n"), 0);
	calibrations__find(&c, h200, strlen(h200), 13000, &k);
	ck_assert(k.kernels.known && k.kernels.busy_ns == 11 && k.kernels.idle_ns == 12);
	ck_assert(k.copies[COPY_DTOD].known && k.copies[COPY_DTOD].busy_ns == 21 &&
		  k.copies[COPY_DTOD].idle_ns == 22);
	for (int i = 0; i < NR_COPY_KINDS; i++)
		ck_assert(k.copies[i].known == (i == COPY_DTOD));
	/* Another version, a longer or shorter name, or no file: what is built in, if anything. */
	calibrations__find(&c, h200, strlen(h200), 13010, &k);
	ck_assert(k.kernels.busy_ns == 2870 && !k.copies[COPY_DTOD].known);
	calibrations__find(NULL, h200, strlen(h200), 13000, &k);
	ck_assert(k.kernels.busy_ns == 2870 && !k.copies[COPY_DTOD].known);
	calibrations__find(&c, "NVIDIA H200 NVL", 15, 13000, &k);
	ck_assert(!k.kernels.known);
	calibrations__find(&c, "NVIDIA A100\0x", 13, 13000, &k);
	ck_assert(!k.copies[COPY_SET].known);
	calibrations__find(&c, "NVIDIA A100", 11, 13000, &k);
	ck_assert(!k.kernels.known && k.copies[COPY_SET].known && k.copies[COPY_SET].idle_ns == 32);
	calibrations__find(&c, "", 0, 13000, &k);
	ck_assert(!k.kernels.known);
}
END_TEST

/* --- the file ----------------------------------------------------------------------------------- */

static char folder[4096], path[4200], *why;

static void make_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/calibrations.XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/calibration", folder);
}

static void put(const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(chmod(path, mode), 0);
}

/* What reading it gives; why holds the words, if any. */
static int read_it(const char *words)
{
	int err = calibration_store__read(path, &c, &why);

	if (words)
		ck_assert_msg(why && strstr(why, words) && strstr(why, path), "%s",
			      why ? why : "nothing said");
	else
		ck_assert_msg(!why, "%s", why);
	free(why);
	return err;
}

static bool is_root(void)
{
	if (!geteuid())
		return true;
	printf("skipped: only root has files of root\n");
	return false;
}

START_TEST(only_what_root_alone_can_write_is_believed)
{
	static const mode_t open_modes[] = { 0664, 0646, 0666, 0622 };

	make_folder();
	ck_assert_int_eq(read_it(NULL), 0);
	ck_assert_uint_eq(c.nr, 0);
	if (!is_root())
		return;
	put(HEAD H200 "end 1\n", 0644);
	ck_assert_int_eq(read_it(NULL), 0);
	ck_assert_uint_eq(c.nr, 1);
	calibrations__free(&c);
	for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
		chmod(path, open_modes[i]);
		ck_assert_int_eq(read_it("gpucollect calibrate"), -EPERM);
		ck_assert_uint_eq(c.nr, 0);
	}
	chmod(path, 0644);
	ck_assert_int_eq(chown(path, 65534, 0), 0);
	ck_assert_int_eq(read_it("belongs to user 65534"), -EPERM);
	unlink(path);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	ck_assert_int_eq(read_it("symbolic link"), -EPERM);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(read_it("no plain file"), -EPERM);
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(read_it("no plain file"), -EPERM);
	rmdir(path);
}
END_TEST

START_TEST(a_torn_file_is_told_with_its_line)
{
	static char much[CALIBRATIONS_MAX_FILE + 2];

	if (!is_root())
		return;
	make_folder();
	put(HEAD H200, 0644);
	ck_assert_int_eq(read_it("line 3"), -EINVAL);
	put("", 0644);
	ck_assert_int_eq(read_it("line 1"), -EINVAL);
	memset(much, 'x', sizeof(much) - 1);
	put(much, 0644);
	ck_assert_int_eq(read_it("line 1"), -EINVAL);
}
END_TEST

static void set(const char *device, uint32_t version, enum calibration_work work, uint32_t ns)
{
	struct calibrations_entry e = { .version = version, .work = work, .busy_ns = ns, .idle_ns = ns + 1 };

	snprintf(e.device, sizeof(e.device), "%s", device);
	ck_assert_int_eq(calibrations__set(&c, &e), 0);
}

static void content(const char *want)
{
	char got[1024] = "";
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_gt(fread(got, 1, sizeof(got) - 1, f), 0);
	fclose(f);
	ck_assert_str_eq(got, want);
}

/* Saves c: what that gives, and in `why` no words, or these. */
static int save(const char *into, const char *words)
{
	int err = calibration_store__save(into, &c, &why);

	ck_assert_msg(words ? why && strstr(why, words) : !why, "%s", why ? why : "nothing said");
	free(why);
	return err;
}

START_TEST(what_is_saved_stands_beside_the_rest)
{
	struct stat st;

	if (!is_root())
		return;
	make_folder();
	umask(077);
	rmdir(folder);
	set("B", 13000, CALIBRATION_KERNEL, 5);
	ck_assert_int_eq(save(folder, NULL), 0);
	ck_assert(!stat(folder, &st) && (st.st_mode & 07777) == 0755);
	ck_assert(!stat(path, &st) && (st.st_mode & 07777) == 0644 && !st.st_uid);
	content(HEAD "13000 kernel 5 6 B\nend 1\n");
	calibrations__free(&c);
	set("B", 13000, CALIBRATION_KERNEL, 7);
	set("B", 12000, CALIBRATION_KERNEL, 8);
	set("B", 13000, CALIBRATION_SET, 9);
	ck_assert_int_eq(save(folder, NULL), 0);
	content(HEAD "13000 kernel 7 8 B\n12000 kernel 8 9 B\n13000 set 9 10 B\nend 3\n");
	/* What can't be believed goes, and that is said. */
	put("nonsense\n", 0644);
	ck_assert_int_eq(save(folder, "line 1"), 0);
	content(HEAD "13000 kernel 7 8 B\n12000 kernel 8 9 B\n13000 set 9 10 B\nend 3\n");
	chmod(folder, 0775);
	ck_assert_int_eq(save(folder, "mode 775"), -EPERM);
	chmod(folder, 0755);
	unlink(path);
	mkdir(path, 0755);
	ck_assert_int_eq(save(folder, "directory"), -EISDIR);
	rmdir(path);
	ck_assert_int_eq(rmdir(folder), 0);	/* nothing else is left there */
	ck_assert_int_eq(save("/proc/none/x", "can't be made"), -ENOENT);
	calibrations__free(&c);
}
END_TEST

/* --- from rounds to a constant ------------------------------------------------------------------ */

START_TEST(quartiles_are_values_in_order)
{
	double v[] = { 9, -3.6, 5, 4.4, 100, 7, 6, 8 };
	double far[] = { 1e300, -1e300 };
	struct calibrate_series s = { 0 };

	calibrate_series__spread(v, 8, &s);	/* -3.6 4.4 5 6 7 8 9 100 */
	ck_assert_int_eq(s.low, 5);
	ck_assert_int_eq(s.median, 7);
	ck_assert_int_eq(s.high, 8);
	calibrate_series__spread(v, 2, &s);
	ck_assert_int_eq(s.low, -4);
	ck_assert_int_eq(s.median, 4);
	calibrate_series__spread(v, 0, &s);
	ck_assert(!s.low && !s.median && !s.high);
	calibrate_series__spread(far, 2, &s);
	ck_assert(s.low == INT32_MIN && s.high == INT32_MAX);
}
END_TEST

static struct calibrate_series series(enum calibration_work work, enum launch_load load, uint64_t size,
				      int32_t median)
{
	return (struct calibrate_series){
		.work = work, .load = load, .size = size, .wanted = 200, .rounds = 200,
		.low = median - 100, .median = median, .high = median + 100,
	};
}

START_TEST(the_middle_of_the_small_ones_is_the_constant)
{
	struct calibrate_found f = { .device = 0, .version = 13000, .name = "B" };
	unsigned int missing;

	f.series[f.nr++] = series(CALIBRATION_KERNEL, LOAD_BUSY, 1000, 3000);
	f.series[f.nr++] = series(CALIBRATION_KERNEL, LOAD_BUSY, 10000, 3200);
	f.series[f.nr++] = series(CALIBRATION_KERNEL, LOAD_BUSY, 100000, 3100);
	f.series[f.nr++] = series(CALIBRATION_KERNEL, LOAD_IDLE, 1000, -20);
	f.series[f.nr++] = series(CALIBRATION_HTOD, LOAD_BUSY, 4, 2000);
	f.series[f.nr++] = series(CALIBRATION_HTOD, LOAD_BUSY, 4096, 2100);
	f.series[f.nr++] = series(CALIBRATION_HTOD, LOAD_BUSY, 1 << 20, 90);
	f.series[f.nr++] = series(CALIBRATION_HTOD, LOAD_IDLE, 4, 20000);
	f.series[f.nr++] = series(CALIBRATION_DTOH, LOAD_BUSY, 4, 2000);	/* no idle ones */
	ck_assert_int_eq(calibrate_found__settle(&f, &c, &missing), 0);
	ck_assert_uint_eq(missing, 3);
	ck_assert_uint_eq(c.nr, 2);
	ck_assert_str_eq(c.entry[0].device, "B");
	ck_assert(c.entry[0].work == CALIBRATION_KERNEL && c.entry[0].busy_ns == 3100 && !c.entry[0].idle_ns);
	ck_assert(c.entry[1].work == CALIBRATION_HTOD && c.entry[1].busy_ns == 2000 &&
		  c.entry[1].idle_ns == 20000);
}
END_TEST

START_TEST(what_is_no_constant_is_told)
{
	struct calibrate_series s = series(CALIBRATION_KERNEL, LOAD_BUSY, 1000, 3000);
	uint32_t ns;

	ck_assert(!calibrate_series__constant(&s, &ns) && ns == 3000);
	s.rounds = 99;
	ck_assert(strstr(calibrate_series__constant(&s, &ns), "few") && !ns);
	s.rounds = 100;
	ck_assert(!calibrate_series__constant(&s, &ns));
	s.high = s.low + 2001;
	ck_assert(strstr(calibrate_series__constant(&s, &ns), "uneven"));
	s = series(CALIBRATION_KERNEL, LOAD_BUSY, 1000, 20001);
	ck_assert(strstr(calibrate_series__constant(&s, &ns), "range"));
	s = series(CALIBRATION_KERNEL, LOAD_BUSY, 1000, -501);
	ck_assert(strstr(calibrate_series__constant(&s, &ns), "range"));
	s = series(CALIBRATION_KERNEL, LOAD_BUSY, 1000, -500);
	ck_assert(!calibrate_series__constant(&s, &ns) && !ns);
	ck_assert_ptr_nonnull(calibrate_series__constant(NULL, &ns));
}
END_TEST

START_TEST(an_object_is_a_line)
{
	static const char first[] =
		"{\"gpucollect\":\"constant\",\"device\":1,\"name\":\"B \\\"x\\\"\","
		"\"cuda_version\":13000,\"timer_step_ns\":32,\"work\":\"kernel\",\"stream\":"
		"\"busy\",\"constant_ns\":0,\"why_not\":null,\"series\":[{\"length_ns\":1000,"
		"\"low_ns\":-150,\"median_ns\":-50,\"high_ns\":50,\"rounds\":200,\"wanted\":200}]}\n"
		"{\"gpucollect\":\"constant\",";
	struct calibrate_found f = { .device = 1, .version = 13000, .step_ns = 32, .name = "B \"x\"" };
	struct text t = { 0 };
	int lines = 0;

	f.series[f.nr++] = series(CALIBRATION_KERNEL, LOAD_BUSY, 1000, -50);
	calibrate_found__print_json(&f, &t);
	ck_assert_msg(!strncmp(t.data, first, sizeof(first) - 1), "%s", t.data);
	for (const char *s = t.data; (s = strchr(s, '\n')); s++)
		lines++;
	ck_assert_int_eq(lines, 2 * NR_CALIBRATION_WORKS);
	text__free(&t);
}
END_TEST

UNIT_MAIN("calibrations", a_whole_file_is_read, what_is_not_whole_is_refused_by_line, any_bytes_are_survived,
	  names_and_files_have_a_limit, the_file_goes_before_what_is_built_in,
	  only_what_root_alone_can_write_is_believed, a_torn_file_is_told_with_its_line,
	  what_is_saved_stands_beside_the_rest, quartiles_are_values_in_order,
	  the_middle_of_the_small_ones_is_the_constant, what_is_no_constant_is_told, an_object_is_a_line)
