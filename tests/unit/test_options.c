// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/exit_codes.h"
#include "tests/unit/docs.h"
#include "tests/unit/refuse.h"
#include "tests/unit/unit.h"

#define MAX_WORDS 32

/* The words of a line as argv; "''" is an empty word. The text stays in a static buffer. */
static int split(const char *line, char **argv)
{
	static char buf[1024];
	int argc = 0;
	char *word;

	argv[argc++] = (char *)(uintptr_t)"gpucollect";
	snprintf(buf, sizeof(buf), "%s", line);
	for (word = strtok(buf, " "); word; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "''") ? word : word + 2;
	argv[argc] = NULL;
	return argc;
}

static int parse(const char *line, struct options *o, char **message)
{
	static char *argv[MAX_WORDS];

	return options__parse(split(line, argv), argv, o, message);
}

/* Each message names the flag and the value that are wrong, and the way out. */
START_TEST(what_is_wrong_is_said)
{
	static const struct {
		const char *line;
		const char *flag, *value, *mend;
	} rows[] = {
		{ "", "no target", "-p PID", "-- CMD" },
		{ "-q", "no target", "-a", "-- CMD" },
		{ "-p abc", "-p", "abc", "-p 4242" },
		{ "-p 0", "-p", "0", "1 to 4194304" },
		{ "-p -1", "-p", "-1", "-p 4242" },
		{ "-p 99999999", "-p", "99999999", "1 to 4194304" },
		{ "-p 4194305", "-p", "4194305", "1 to 4194304" },
		{ "-p 99999999999999999999", "-p", "99999999999999999999", "1 to 4194304" },
		{ "-p 12345678901234567890123456789012", "-p", "12345678901234567890123456789012",
		  "-p 4242" },
		{ "-p 1,", "-p", "1,", "-p 4242,4243" },
		{ "-p 1,,2", "-p", "1,,2", "-p 4242,4243" },
		{ "-p ,", "-p", ",", "-p 4242,4243" },
		{ "-p ''", "-p", "", "-p 4242" },
		{ "-p 1,x", "-p", "1,x", "-p 4242,4243" },
		{ "-p 12abc", "-p", "12abc", "-p 4242" },
		{ "-p 0x10", "-p", "0x10", "-p 4242" },
		{ "-p", "-p", "missing", "--help" },
		{ "--pid", "--pid", "missing", "--help" },
		{ "-p 1 -a", "-p", "-a", "leave one out" },
		{ "-p 1 -- x", "-p", "command", "leave out -p" },
		{ "-a -- x", "-a", "command", "leave out -a" },
		{ "-a -d 0", "-d", "0", "leave -d out" },
		{ "-a -d 0s", "-d", "0s", "leave -d out" },
		{ "-a -d 999us", "-d", "999us", "1ms" },
		{ "-a -d 367h -d 9999h", "-d", "9999h", "366 days" },
		{ "-a -d 99999999999999999999", "-d", "99999999999999999999", "366 days" },
		{ "-a -d -5", "-d", "-5", "500ms" },
		{ "-a -d soon", "-d", "soon", "500ms" },
		{ "-a -d 10x", "-d", "10x", "500ms" },
		{ "-a -F 0", "-F", "0", "1 to 10000" },
		{ "-a -F 000", "-F", "000", "--no-cpu" },
		{ "-a -F 10001", "-F", "10001", "1 to 10000" },
		{ "-a -F 100000", "-F", "100000", "1 to 10000" },
		{ "-a -F 99.5", "-F", "99.5", "whole number" },
		{ "-a -F max", "-F", "max", "1 to 10000" },
		{ "-a -F -20", "-F", "-20", "1 to 10000" },
		{ "-a -f json", "-f", "json", "folded" },
		{ "-a -f ''", "-f", "", "folded" },
		{ "-a -o x.json", "-o", "x.json", ".folded" },
		{ "-a -o dir.d/x.speedscope.json", "-o", ".json", "-f folded" },
		{ "-a -o x.folded.gz", "-o", ".gz", "-f folded" },
		{ "-a -o ''", "-o", "''", "stdout" },
		{ "-a --metric gpu", "--metric gpu", "-a", "add --inject" },
		{ "-p 1 --metric gpu --no-inject", "--metric gpu", "--no-inject", "--metric "
		  "launches" },
		{ "--cgroup", "--cgroup", "missing", "--help" },
		{ "--cgroup ''", "--cgroup", "no path", "/sys/fs/cgroup" },
		{ "--cgroup x -p 1", "--cgroup", "-p", "leave one out" },
		{ "--cgroup x -a", "--cgroup", "-a", "leave one out" },
		{ "--cgroup x -- x", "--cgroup", "command", "leave out --cgroup" },
		{ "-a --inject --no-inject", "--inject", "--no-inject", "leave one out" },
		{ "-a --inject --no-gpu", "--inject", "--no-gpu", "leave one out" },
		{ "-a --metric time", "--metric", "time", "gpu, cpu, launches, bytes or wait" },
		{ "-a --metric ''", "--metric", "", "gpu, cpu, launches, bytes or wait" },
		{ "-a --metric launches --no-gpu", "--metric launches", "--no-gpu", "--metric "
		  "cpu" },
		{ "--metric gpu --no-gpu -- x", "--metric gpu", "--no-gpu", "leave --no-gpu out" },
		{ "--metric gpu --no-inject -- x", "--metric "
		  "gpu", "--no-inject", "leave --no-inject out" },
		{ "--metric cpu --no-cpu -- x", "--metric cpu", "--no-cpu", "leave --no-cpu out" },
		{ "--metric bytes --no-gpu -- x", "--metric bytes", "--no-gpu", "leave --no-gpu out" },
		{ "-p 1 --metric bytes --no-inject", "--metric bytes", "--no-inject", "leave "
		  "--no-inject out" },
		{ "-a --metric bytes", "--metric bytes", "-a", "add --inject" },
		{ "--metric wait --no-gpu -- x", "--metric wait", "--no-gpu", "leave --no-gpu out" },
		{ "-p 1 --metric wait --no-inject", "--metric wait", "only it sees waits", "leave "
		  "--no-inject out" },
		{ "-a --metric wait", "--metric wait", "-a", "add --inject" },
		{ "--no-cpu --no-gpu -- x", "--no-cpu", "--no-gpu", "leave one out" },
		{ "-a -F 20 --no-cpu", "-F", "--no-cpu", "leave one out" },
		{ "-a -q -v", "-q", "-v", "leave one out" },
		{ "python3 x.py", "python3", "behind --", "-- python3" },
		{ "-F 99 prog -p 1", "prog", "behind --", "-- prog" },
		{ "4242", "4242", "what is it", "-p 4242" },
		{ "--", "--", "no command", "-- CMD" },
		{ "-q --", "--", "no command", "-- CMD" },
		{ "-- ''", "-- ''", "no name", "-- CMD" },
		{ "-X -a", "-X", "no such option", "--help" },
		{ "-aX", "-X", "no such option", "--help" },
		{ "--frobnicate -a", "--frobnicate", "no such option", "--help" },
		{ "--frobnicate=3 -a", "--frobnicate=3", "no such option", "--help" },
		{ "--no-c --no -a", "--no", "several", "in full" },
		{ "--all=3", "--all=3", "no value", "--all" },
		{ "-p 1 --launches often", "--launches", "often", "auto, all, or N" },
		{ "-p 1 --launches 0", "--launches", "0", "from 1 to 1000000" },
		{ "-p 1 --launches 1000001", "--launches", "1000001", "from 1 to 1000000" },
		{ "-p 1 --launches ''", "--launches", "which", "auto, all, or N" },
		{ "-p 1 --overhead 0", "--overhead", "0", "0.01 to 100" },
		{ "-p 1 --overhead 0.009", "--overhead", "0.009", "0.01 to 100" },
		{ "-p 1 --overhead 100.01", "--overhead", "100.01", "0.01 to 100" },
		{ "-p 1 --overhead 1.", "--overhead", "1.", "0.01 to 100" },
		{ "-p 1 --overhead .5", "--overhead", ".5", "0.01 to 100" },
		{ "-p 1 --overhead -1", "--overhead", "-1", "0.01 to 100" },
		{ "-p 1 --overhead 1e1", "--overhead", "1e1", "0.01 to 100" },
		{ "-p 1 --overhead 0.00001", "--overhead", "0.00001", "0.01 to 100" },
		{ "-p 1 --launches all --overhead 1", "--overhead", "--launches", "leave one out" },
		{ "-p 1 --launches 10 --no-inject", "--launches", "without the library", "--no-inject" },
		{ "-a --overhead 2", "--overhead", "without the library", "--inject" },
		{ "-p 1 --no-gpu --launches all", "--launches", "--no-gpu", "leave one out" },
		{ "-o", "-o", "missing", "--help" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o;
		char *message = NULL;

		ck_assert_msg(parse(rows[i].line, &o, &message) == -EINVAL, "%s", rows[i].line);
		ck_assert_ptr_nonnull(message);
		ck_assert_msg(strstr(message, rows[i].flag) && strstr(message, rows[i].value) &&
			      strstr(message, rows[i].mend), "%s: %s", rows[i].line, message);
		free(message);
	}
}
END_TEST

START_TEST(what_is_right_is_taken)
{
	static const struct {
		const char *line;
		enum options_metric metric;
		enum options_destination piped, terminal;
	} rows[] = {
		{ "-- x", METRIC_GPU, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--no-inject -- x", METRIC_LAUNCHES, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--no-gpu -- x", METRIC_CPU, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--no-gpu --no-inject -- "
		  "x", METRIC_CPU, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--no-cpu -- x", METRIC_GPU, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--metric cpu -- x", METRIC_CPU, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--metric launches -o - -- "
		  "x", METRIC_LAUNCHES, DESTINATION_STDOUT, DESTINATION_STDOUT },
		{ "--metric bytes -- x", METRIC_BYTES, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "--metric wait -p 1", METRIC_WAIT, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-f folded -- x", METRIC_GPU, DESTINATION_OWN_FILE, DESTINATION_OWN_FILE },
		{ "-o x.folded -- x", METRIC_GPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "-p 1", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-p 1 --inject", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-p 1 --no-cpu", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-p 1 --no-gpu", METRIC_CPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-p 1 --no-inject", METRIC_LAUNCHES, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-p 1 --metric cpu", METRIC_CPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-p 1 -f folded", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_STDOUT },
		{ "-p 1 -o -", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_STDOUT },
		{ "-p 1 -o x", METRIC_GPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "--cgroup x", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "--cgroup /x --no-inject", METRIC_LAUNCHES, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a --inject", METRIC_CPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a --inject --metric gpu", METRIC_GPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a", METRIC_CPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a --no-gpu", METRIC_CPU, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a --no-cpu", METRIC_LAUNCHES, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a --metric "
		  "launches", METRIC_LAUNCHES, DESTINATION_STDOUT, DESTINATION_SUMMARY },
		{ "-a -o /dev/full", METRIC_CPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "-a -o .hidden", METRIC_CPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "-a -o dir.d/x", METRIC_CPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "-a -o x.json -f folded", METRIC_CPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "-a -o x.gpu-ns.folded", METRIC_CPU, DESTINATION_FILE, DESTINATION_FILE },
		{ "-a -o ..", METRIC_CPU, DESTINATION_FILE, DESTINATION_FILE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o;
		char *message = NULL;

		ck_assert_msg(!parse(rows[i].line, &o, &message), "%s: %s", rows[i].line, message);
		ck_assert_int_eq(o.action, ACTION_RECORD);
		ck_assert_msg(o.metric == rows[i].metric, "%s", rows[i].line);
		ck_assert_msg(options__destination(&o, false) == rows[i].piped, "row %zu", i);
		ck_assert_msg(options__destination(&o, true) == rows[i].terminal, "row %zu", i);
		options__free(&o);
	}
}
END_TEST

START_TEST(values_arrive)
{
	struct options o;
	char *message;

	ck_assert_int_eq(parse("-p 30,1 --pid=20 -p 30 -F 99 -d 1.5s -o a -y --per-thread "
			       "--annotate -vv --dry-run", &o, &message), 0);
	ck_assert_uint_eq(o.nr_pids, 3);
	ck_assert(o.pids[0] == 1 && o.pids[1] == 20 && o.pids[2] == 30);
	ck_assert_uint_eq(o.frequency, 99);
	ck_assert_uint_eq(o.duration_ns, 1500000000);
	ck_assert_str_eq(o.output, "a");
	ck_assert(o.force && o.per_thread && o.annotate && o.frequency_given && o.dry_run);
	ck_assert_uint_eq(o.verbose, 2);
	ck_assert(!o.all && !o.command && !o.quiet && !o.no_cpu && !o.no_gpu && !o.no_inject);
	options__free(&o);
	ck_assert_int_eq(parse("-a --quiet", &o, &message), 0);
	ck_assert(o.all && o.quiet && !o.frequency_given && !o.nr_pids);
	ck_assert_uint_eq(o.frequency, 20);
	ck_assert_uint_eq(o.duration_ns, 0);
	ck_assert_ptr_null(o.output);
	options__free(&o);
	ck_assert_int_eq(parse("--cgroup system.slice/x.service --inject", &o, &message), 0);
	ck_assert_str_eq(o.cgroup, "system.slice/x.service");
	ck_assert(o.inject && !o.no_inject && !o.dry_run && !o.all);
	options__free(&o);
	ck_assert_int_eq(parse("-p 4194304 -F 10000 -d 1ms", &o, &message), 0);
	ck_assert_int_eq(o.pids[0], 4194304);
	options__free(&o);
}
END_TEST

START_TEST(the_command_is_not_read)
{
	struct options o;
	char *message;

	ck_assert_int_eq(parse("-F 99 -- B/showargs -p 1 -F 5 -- -o x --help", &o, &message), 0);
	ck_assert_uint_eq(o.frequency, 99);
	ck_assert_uint_eq(o.nr_pids, 0);
	ck_assert_str_eq(o.command[0], "B/showargs");
	ck_assert_str_eq(o.command[1], "-p");
	ck_assert_str_eq(o.command[5], "--");
	ck_assert_str_eq(o.command[8], "--help");
	ck_assert_ptr_null(o.command[9]);
	options__free(&o);
	/* As the value of -o it separates nothing. */
	ck_assert_int_eq(parse("-o -- -a", &o, &message), 0);
	ck_assert_str_eq(o.output, "--");
	ck_assert(o.all && !o.command);
	options__free(&o);
	ck_assert_int_eq(parse("-o -- prog", &o, &message), -EINVAL);
	free(message);
	ck_assert_int_eq(parse("-o -- -- prog", &o, &message), 0);
	ck_assert_str_eq(o.command[0], "prog");
	options__free(&o);
	ck_assert_int_eq(parse("-- -p", &o, &message), 0);
	ck_assert_str_eq(o.command[0], "-p");
	options__free(&o);
}
END_TEST

START_TEST(help_and_version_come_first)
{
	struct options o;
	char *message;

	ck_assert_int_eq(parse("--help", &o, &message), 0);
	ck_assert_int_eq(o.action, ACTION_HELP);
	ck_assert_int_eq(parse("-a -h", &o, &message), 0);
	ck_assert_int_eq(o.action, ACTION_HELP);
	ck_assert_int_eq(parse("-q --version --nonsense", &o, &message), 0);
	ck_assert_int_eq(o.action, ACTION_VERSION);
	ck_assert_int_eq(parse("-p 1 -a --help", &o, &message), 0);
	ck_assert_int_eq(o.action, ACTION_HELP);
	options__free(&o);
}
END_TEST

/* What the pure function says of every combination, against the same rules written another way. */
START_TEST(combinations_are_judged_one_by_one)
{
	char *command[] = { (char *)(uintptr_t)"x", NULL };
	pid_t pid = 1;
	unsigned int bad = 0, good = 0;

	for (unsigned int i = 0; i < (METRIC_WAIT + 1u) << 11; i++) {
		struct options o = { 0 };
		int targets;
		bool ok;

		o.pids = &pid;
		o.nr_pids = i & 1;
		o.all = i >> 1 & 1;
		o.command = i >> 2 & 1 ? command : NULL;
		o.no_cpu = i >> 3 & 1;
		o.no_gpu = i >> 4 & 1;
		o.no_inject = i >> 5 & 1;
		o.frequency_given = i >> 6 & 1;
		o.quiet = i >> 7 & 1;
		o.verbose = i >> 8 & 1;
		o.cgroup = i >> 9 & 1 ? "x" : NULL;
		o.inject = i >> 10 & 1;
		o.metric = (enum options_metric)(i >> 11);
		targets = (int)o.nr_pids + o.all + (o.command != NULL) + (o.cgroup != NULL);
		ok = targets == 1 && (!o.no_cpu || !o.no_gpu) && !(o.no_cpu && o.frequency_given) &&
		     !(o.quiet && o.verbose) && !(o.inject && (o.no_inject || o.no_gpu));
		switch (o.metric) {
		case METRIC_GPU:
		case METRIC_BYTES:
		case METRIC_WAIT:
			ok = ok && !o.no_gpu && !o.no_inject && (!o.all || o.inject);
			break;
		case METRIC_CPU:
			ok = ok && !o.no_cpu;
			break;
		case METRIC_LAUNCHES:
			ok = ok && !o.no_gpu;
			break;
		default:
			break;
		}
		ck_assert_msg(ok == !options__check(&o), "combination %#x", i);
		if (ok) {	/* a default is never one that would be refused */
			o.metric = options__default_metric(&o);
			ck_assert(o.metric != METRIC_DEFAULT);
			ck_assert_msg(!options__check(&o), "default of %#x", i);
		}
		good += ok;
		bad += !ok;
	}
	ck_assert_uint_gt(good, 50);
	ck_assert_uint_gt(bad, 1000);
}
END_TEST

static char *printed(int (*print)(void))
{
	static char buf[65536];
	int fds[2], out = dup(STDOUT_FILENO);
	ssize_t n;

	ck_assert_int_eq(pipe(fds), 0);
	fflush(stdout);
	dup2(fds[1], STDOUT_FILENO);
	ck_assert_int_eq(print(), 0);
	dup2(out, STDOUT_FILENO);
	close(fds[1]);
	n = read(fds[0], buf, sizeof(buf) - 1);
	ck_assert_int_gt(n, 0);
	buf[n] = '\0';
	close(fds[0]);
	close(out);
	return buf;
}

START_TEST(calibrate_has_a_line_of_its_own)
{
	static const struct {
		const char *line, *words;
	} wrong[] = {
		{ "calibrate --device", "missing" }, { "calibrate --device x", "--device x" },
		{ "calibrate --device -1", "--device -1" }, { "calibrate --device 1024", "--device 1024" },
		{ "calibrate 0", "0: calibrate" }, { "calibrate -p 1", "-p" },
		{ "calibrate -- x", "x: calibrate" },
		{ "calibrate -v", "-v" }, { "calibrate --devices 1", "--devices" },
		{ "--json calibrate", "before all options" },
		{ "--device 1 calibrate", "goes with calibrate" },
		{ "--device=1 -- x", "goes with calibrate" }, { "--devices -- x", "no such option" },
	};
	struct options o;
	char *message;

	ck_assert_int_eq(parse("calibrate", &o, &message), 0);
	ck_assert(o.action == ACTION_CALIBRATE && o.device == -1 && !o.json && !o.quiet);
	ck_assert_int_eq(parse("calibrate --device 3 --json -q", &o, &message), 0);
	ck_assert(o.action == ACTION_CALIBRATE && o.device == 3 && o.json && o.quiet);
	ck_assert_int_eq(parse("calibrate --dev=0", &o, &message), 0);
	ck_assert_int_eq(o.device, 0);
	ck_assert_int_eq(parse("calibrate --help", &o, &message), 0);
	ck_assert_int_eq(o.action, ACTION_HELP);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_eq(parse(wrong[i].line, &o, &message), -EINVAL);
		ck_assert_msg(strstr(message, wrong[i].words), "%s: %s", wrong[i].line, message);
		free(message);
	}
	/* It is a word of its own only in the first place: else it may be a command's. */
	ck_assert_int_eq(parse("-- calibrate --device 3", &o, &message), 0);
	ck_assert(o.action == ACTION_RECORD && !strcmp(o.command[0], "calibrate"));
}
END_TEST

START_TEST(help_names_every_code_and_option)
{
	static const char *const words[] = {
		"sudo gpucollect -o train.folded -- python3 train.py", "speedscope "
		"-", "--pid", "--all",
		"--duration", "--frequency", "--output", "--format", "--metric", "--no-inject",
		"--inject", "--cgroup", "--dry-run", "GPUCOLLECT_DISABLE", "/etc/gpucollect/disable",
		"--no-cpu", "--no-gpu", "--annotate", "--per-thread", "--force", "--quiet",
		"--verbose",
		"--version", "--help", "10000", "128 + ", "gpucollect calibrate", "calibrate [--device N]",
		"/var/lib/gpucollect/calibration",
	};
	char *help = printed(options__print_help), code[16];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		ck_assert_msg(strstr(help, words[i]) != NULL, "%s", words[i]);
#define X(name, number, meaning) \
	snprintf(code, sizeof(code), "  %d\t", number); \
	ck_assert_msg(strstr(help, code) && strstr(help, meaning), #name);
	EXIT_CODES(X)
#undef X
	ck_assert(!strncmp(printed(options__print_version), "gpucollect ", 11));
}
END_TEST

/* Lines are wrapped as it suits. */
static char *on_one_line(char *text)
{
	for (char *s = text; (s = strchr(s, '\n')); )
		*s = ' ';
	return text;
}

START_TEST(it_is_said_what_a_command_changes)
{
	char *doc = on_one_line(read_document("docs/output.md"));

	ck_assert(strstr(EXIT_OF_COMMAND, "128 + ") && EXIT_SIGNAL == 128 && EXIT_EMPTY == 2);
	ck_assert(strstr(on_one_line(printed(options__print_help)), EXIT_OF_COMMAND));
	ck_assert(strstr(doc, EXIT_OF_COMMAND));
	free(doc);
}
END_TEST

START_TEST(codes_are_documented)
{
	char *doc = read_document("docs/output.md"), row[256];

#define X(name, number, meaning) \
	snprintf(row, sizeof(row), "\n| %d | %s |\n", number, meaning); \
	ck_assert_msg(strstr(doc, row) != NULL, "%s", row);
	EXIT_CODES(X)
#undef X
	free(doc);
}
END_TEST

START_TEST(help_to_nowhere_is_an_error)
{
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	ck_assert_ptr_nonnull(freopen("/dev/full", "w", stdout));
	ck_assert_int_eq(options__print_help(), -ENOSPC);
	ck_assert_int_eq(pipe(fds), 0);
	close(fds[0]);
	clearerr(stdout);
	dup2(fds[1], fileno(stdout));
	ck_assert_int_eq(options__print_version(), -EPIPE);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
	struct options o;
	char *message;
	int err = -ENOMEM;

	for (long n = 0; CAN_REFUSE && err == -ENOMEM; n++) {
		allocations_left = n;
		err = parse("-p 1,2,3", &o, &message);
		allocations_left = -1;
	}
	ck_assert(!CAN_REFUSE || !err);
	allocations_left = CAN_REFUSE ? 0 : -1;
	err = parse("-p x", &o, &message);
	allocations_left = -1;
	free(message);
	ck_assert_int_eq(err, CAN_REFUSE ? -ENOMEM : -EINVAL);
}
END_TEST

UNIT_MAIN("options", what_is_wrong_is_said, what_is_right_is_taken, values_arrive,
	  the_command_is_not_read, help_and_version_come_first, combinations_are_judged_one_by_one,
	  calibrate_has_a_line_of_its_own, help_names_every_code_and_option, codes_are_documented,
	  it_is_said_what_a_command_changes,
	  help_to_nowhere_is_an_error, no_memory_is_an_error)
