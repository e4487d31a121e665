// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lines and inlined calls against addr2line's, and what becomes of a file that takes too long or lies. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/lines.h"
#include "tests/unit/symbols_places.h"
#include "tests/unit/unit.h"

static const char source[] =
	"namespace space { volatile int sink;\n"
	"template <class T> inline __attribute__((always_inline)) void deepest(T x) {\n"
	"	sink += (int)(x * 3);\n"
	"	sink ^= 5;\n"
	"}\n"
	"struct thing { int at;\n"
	"	inline __attribute__((always_inline)) void between(int n) {\n"
	"		for (int i = 0; i < n; i++)\n"
	"			deepest(i + at);\n"
	"		auto add = [this](int y) __attribute__((always_inline)) { sink += y + at; };\n"
	"		add(n);\n"
	"	}\n"
	"	__attribute__((noinline)) int real(int n);\n"
	"};\n"
	"int thing::real(int n) {\n"
	"	{\n"
	"		int k = n + sink;\n"
	"		between(k);\n"
	"	}\n"
	"	deepest(2.5);\n"
	"	return sink;\n"
	"} }\n"
	"int main(int c, char **) {\n"
	"	space::thing t = { c };\n"
	"	return t.real(c) & 1;\n"
	"}\n";

static bool build(const char *compiler, const char *flags)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/p.cc", places_dir);
	f = fopen(path, "w");
	fputs(source, f);
	fclose(f);
	if (places__sh("%s --version >/dev/null 2>&1", compiler)) {
		printf("no %s here\n", compiler);
		return false;
	}
	ck_assert_int_eq(places__sh("cd %s && %s -O2 %s -o p p.cc", places_dir, compiler, flags), 0);
	return true;
}

static int open_built(const char *file)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", places_dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

/* One address a line, of the functions of p.cc. */
static FILE *addresses(void)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && objdump -d --no-show-raw-insn p | awk '/^[0-9a-f]+ <.*>:"
		 "$/ { on = /real|<main>/ } on && $1 ~ /:$/ { print substr($1, 1, length($1) - 1) }'",
		 places_dir);
	return popen(command, "r");
}

static const char *last(const char *path)
{
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* addr2line prints innermost first: a name, then file:line with remarks behind it. */
static size_t compare(const struct lines_frame *frames, size_t nr, unsigned long address,
		      const char *by)
{
	char command[512], name[512], place[1024], file[600];
	unsigned int line;
	FILE *f;
	size_t i = nr;

	snprintf(command, sizeof(command), "%s -i -f -e %s/p 0x%lx", by, places_dir, address);
	f = popen(command, "r");
	while (fgets(name, sizeof(name), f) && fgets(place, sizeof(place), f)) {
		if (!nr && !strncmp(place, "??", 2))	/* padding behind a function */
			break;
		ck_assert_msg(i > 0, "%lx: %zu frames, and %s%s", address, nr, name, place);
		i--;
		name[strcspn(name, "\n")] = '\0';
		if (frames[i].name)
			ck_assert_msg(!strcmp(frames[i].name, name), "%lx %zu: %s, not %s", address, i,
				      frames[i].name, name);
		if (sscanf(place, "%599[^:]:%u", file, &line) < 2)
			line = 0;
		ck_assert_msg(frames[i].line == line, "%lx %zu %s: line %u, not %u", address, i, name,
			      frames[i].line, line);
		if (line && last(file)[0] != '<')	/* "<artificial>", says addr2line after -flto */
			ck_assert_str_eq(last(frames[i].file), last(file));
	}
	pclose(f);
	ck_assert_msg(i == 0, "%lx: %zu of %zu frames are more than there are", address, i, nr);
	return nr;
}

static void compare_all(const char *by)
{
	struct lines_pool *p = lines_pool__new();
	int fd = open_built("p");
	struct lines *l = lines__new(p, fd, -1);
	const struct lines_frame *frames;
	unsigned long address, nr_addresses = 0;
	size_t nr, deepest = 0;
	FILE *f = addresses();

	while (fscanf(f, "%lx", &address) == 1) {
		nr = compare(frames, lines__find(l, address, &frames), address, by);
		deepest = nr > deepest ? nr : deepest;
		nr_addresses++;
	}
	pclose(f);
	ck_assert_uint_gt(nr_addresses, 10);
	ck_assert_uint_ge(deepest, 3);
	ck_assert_ptr_null(lines__missing(l));
	ck_assert_uint_eq(lines__find(l, 1, &frames), 0);
	lines__free(l);
	lines_pool__free(p);
	close(fd);
}

START_TEST(as_addr2line_has_it)
{
	static const char *const how[][3] = {
		{ "g++", "-g", "addr2line" }, { "g++", "-gdwarf-4", "addr2line" },
		{ "g++", "-gdwarf-3 -gstrict-dwarf", "addr2line" }, { "g++", "-g -gz", "addr2line" },
		{ "g++", "-g -flto", "addr2line" },
		{ "clang++", "-gdwarf-4", "addr2line" },
		/* these are beyond binutils 2.40 */
		{ "clang++", "-g", "llvm-addr2line" },
		{ "g++", "-g -fdebug-types-section", "llvm-addr2line" },
	};

	places__make_dir();
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		if (places__sh("%s --version >/dev/null 2>&1", how[i][2]))
			printf("no %s here\n", how[i][2]);
		else if (build(how[i][0], how[i][1]))
			compare_all(how[i][2]);
	}
	places__remove_dir();
}
END_TEST

START_TEST(split_is_said)
{
	struct lines_pool *p = lines_pool__new();
	const struct lines_frame *frames;
	unsigned long address;
	struct lines *l;
	FILE *f;
	int fd;

	places__make_dir();
	if (build("g++", "-g -gsplit-dwarf")) {
		fd = open_built("p");
		l = lines__new(p, fd, -1);
		f = addresses();
		ck_assert_int_eq(fscanf(f, "%lx", &address), 1);
		pclose(f);
		ck_assert_uint_eq(lines__find(l, address, &frames), 1);
		ck_assert_uint_gt(frames[0].line, 0);
		ck_assert_ptr_nonnull(strstr(lines__missing(l), ".dwo"));
		lines__free(l);
		close(fd);
	}
	lines_pool__free(p);
	places__remove_dir();
}
END_TEST

/* The one process below this one. */
static pid_t worker(void)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	return pid;
}

static char *status_of(pid_t pid, const char *key)
{
	static char line[256];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			break;
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line + strlen(key) + 1;
}

static unsigned long main_address(void)
{
	char command[400];
	unsigned long address = 0;
	FILE *f;

	snprintf(command, sizeof(command), "nm %s/p | sed -n 's/ T main$//p'", places_dir);
	f = popen(command, "r");
	ck_assert_int_eq(fscanf(f, "%lx", &address), 1);
	pclose(f);
	return address;
}

START_TEST(without_rights)
{
	struct lines_pool *p = lines_pool__new();
	const struct lines_frame *frames;
	struct dirent *entry;
	struct lines *l;
	char path[64];
	int fd, nr = 0;
	DIR *dir;

	places__make_dir();
	if (build("g++", "-g")) {
		fd = open_built("p");
		l = lines__new(p, fd, -1);
		ck_assert_int_eq(worker(), 0);
		ck_assert_uint_gt(lines__find(l, main_address(), &frames), 0);
		ck_assert_str_eq(status_of(worker(), "Seccomp"), "\t2");
		ck_assert_str_eq(status_of(worker(), "NoNewPrivs"), "\t1");
		if (!geteuid()) {
			ck_assert_str_eq(status_of(worker(), "Uid"), "\t65534\t65534\t65534\t65534");
			ck_assert_str_eq(status_of(worker(), "CapPrm"), "\t0000000000000000");
			snprintf(path, sizeof(path), "/proc/%d/fd", (int)worker());
			dir = opendir(path);
			while ((entry = readdir(dir)))
				nr += entry->d_name[0] != '.';
			closedir(dir);
			ck_assert_int_eq(nr, 5);
		}
		lines__free(l);
		ck_assert_int_eq(worker(), 0);
		close(fd);
	}
	lines_pool__free(p);
	places__remove_dir();
}
END_TEST

static unsigned int pulses;

static bool count_pulse(void *ctx)
{
	return ++pulses == *(unsigned int *)ctx;
}

/* It is stopped, which is as good as an endless loop; killed, as good as a crash. */
START_TEST(too_long_and_dead)
{
	struct lines_pool *p = lines_pool__new();
	const struct lines_frame *frames;
	unsigned int never = 0, second = 2;
	struct lines *l[3];
	int fd;

	places__make_dir();
	if (build("g++", "-g")) {
		fd = open_built("p");
		for (int i = 0; i < 3; i++) {
			l[i] = lines__new(p, fd, -1);
			ck_assert_uint_gt(lines__find(l[i], main_address(), &frames), 0);
			kill(worker(), i == 1 ? SIGKILL : SIGSTOP);
			lines_pool__set_pulse(p, count_pulse, i == 2 ? &second : &never);
			pulses = 0;
			ck_assert_uint_eq(lines__find(l[i], main_address(), &frames), 0);
			if (i == 0)
				ck_assert_uint_ge(pulses, 20);
			if (i == 2)
				ck_assert_uint_eq(pulses, 2);
			ck_assert_ptr_nonnull(strstr(lines__missing(l[i]), i ? "failed" : "too long"));
			ck_assert_int_eq(worker(), 0);
			/* it is not tried again */
			ck_assert_uint_eq(lines__find(l[i], main_address(), &frames), 0);
			ck_assert_int_eq(worker(), 0);
			lines__free(l[i]);
		}
		close(fd);
	}
	lines_pool__free(p);
	places__remove_dir();
}
END_TEST

/* More files than processes: all get their answers, and no process is left. */
START_TEST(few_processes)
{
	enum { FILES = LINES_PROCESSES + 3 };
	struct lines_pool *p = lines_pool__new();
	const struct lines_frame *frames;
	struct lines *l[FILES];
	int fd;

	places__make_dir();
	if (build("g++", "-g")) {
		fd = open_built("p");
		for (int i = 0; i < FILES; i++)
			l[i] = lines__new(p, fd, -1);
		for (int i = 0; i < 2 * FILES; i++)
			ck_assert_uint_gt(lines__find(l[i % FILES], main_address(), &frames), 0);
		for (int i = 0; i < FILES; i++)
			lines__free(l[i]);
		ck_assert_int_eq(worker(), 0);
		close(fd);
	}
	lines_pool__free(p);
	places__remove_dir();
}
END_TEST

/* Bytes of the debug sections changed at random, and a file that shrinks while it is mapped. */
START_TEST(damaged)
{
	struct lines_pool *p = lines_pool__new();
	const struct lines_frame *frames;
	unsigned long main_at;
	unsigned char byte;
	struct stat st;
	struct lines *l;
	int fd;

	places__make_dir();
	if (!build("g++", "-g"))
		return;
	main_at = main_address();
	srand(1);
	for (int turn = 0; turn < 40; turn++) {
		ck_assert_int_eq(places__sh("cp %s/p %s/d", places_dir, places_dir), 0);
		fd = open_built("d");
		ck_assert_int_eq(fstat(fd, &st), 0);
		close(fd);
		{
			char path[300];

			snprintf(path, sizeof(path), "%s/d", places_dir);
			fd = open(path, O_RDWR | O_CLOEXEC);
		}
		for (int i = 0; i < 200; i++) {	/* behind the code, mostly */
			byte = (unsigned char)rand();
			ck_assert_int_eq(pwrite(fd, &byte, 1, st.st_size / 4 +
						rand() % (st.st_size * 3 / 4)), 1);
		}
		l = lines__new(p, fd, -1);
		for (unsigned long at = 0; at < 64; at++)
			lines__find(l, main_at + at, &frames);
		if (turn % 4 == 0) {
			ck_assert_int_eq(ftruncate(fd, 4096), 0);
			for (unsigned long at = 64; at < 128; at++)
				lines__find(l, main_at + at, &frames);
		}
		lines__free(l);
		close(fd);
	}
	lines_pool__free(p);
	places__remove_dir();
}
END_TEST

UNIT_MAIN("lines", as_addr2line_has_it, split_is_said, without_rights, too_long_and_dead,
	  few_processes, damaged)
