// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All options, and the help that argp makes of them. */
#include "loader/options_table.h"

#include <errno.h>
#include <stdio.h>

#include "loader/exit_codes.h"
#include "loader/kept_out.h"
#include "loader/options.h"
#include "loader/version.h"

const struct argp_option options__table[] = {
	{ .doc = "What to watch:" },
	{ "pid", 'p', "PID[,PID...]", 0, "processes that run already, with their children; may be "
	  "repeated", 0 },
	{ "cgroup", OPT_CGROUP, "PATH", 0, "all processes of a control group (version 2) and below "
	  "it, as of a container: a directory, or a path below /sys/fs/cgroup", 0 },
	{ "all", 'a', NULL, 0, "the whole machine", 0 },
	{ .doc = "How:" },
	{ "duration", 'd', "TIME", 0, "stop after 10, 1.5s, 500ms, 2m or 1h (bare: seconds); "
	  "default: when the target ends, or at Ctrl-C", 0 },
	{ "frequency", 'F', "HZ", 0, "samples a second on each CPU, 1 to 10000; default 20", 0 },
	{ "no-cpu", OPT_NO_CPU, NULL, 0, "take no CPU samples", 0 },
	{ "no-gpu", OPT_NO_GPU, NULL, 0, "watch no launches", 0 },
	{ "inject", OPT_INJECT, NULL, 0, "with -a: load the timing library into every process that "
	  "uses CUDA; else it is the default", 0 },
	{ "no-inject", OPT_NO_INJECT, NULL, 0, "load no library into any process: launches are "
	  "counted by probes, not timed", 0 },
	{ "launches", OPT_LAUNCHES, "WHICH", 0, "which launches and copies are looked at: all, N (one of N, "
	  "chosen at random) or auto, as many as --overhead allows; what each stands for is scaled up. "
	  "Default: auto", 0 },
	{ "overhead", OPT_OVERHEAD, "PERCENT", 0, "what looking at launches may take of each launching "
	  "thread's time and of a device's, 0.01 to 100; default 1", 0 },
	{ "dry-run", OPT_DRY_RUN, NULL, 0, "only print which processes would be touched, and how; status "
	  "and message are those of a run that would not begin", 0 },
	{ .doc = "Output:" },
	{ "output", 'o', "FILE", 0, "write here (- is stdout); a command's default is "
	  "gpucollect-NAME-PID.folded, else stdout", 0 },
	{ "format", 'f', "FORMAT", 0, "folded; default: by the suffix of FILE", 0 },
	{ "metric", OPT_METRIC, "METRIC", 0, "what the stacks weigh: gpu (ns of GPU time), cpu "
	  "(ns of CPU time), launches (a number), bytes (copied or set in memory) or wait (ns that threads "
	  "waited for the GPU). Default: gpu, with "
	  "--no-inject launches, with --no-gpu cpu; of -a cpu, with --no-cpu launches", 0 },
	{ "per-thread", OPT_PER_THREAD, NULL, 0, "a frame for each thread under its process", 0 },
	{ "annotate", OPT_ANNOTATE, NULL, 0, "mark frames: _[k] kernel, _[i] inlined, _[j] made at "
	  "run time, _[G] GPU", 0 },
	{ "native-python", OPT_NATIVE_PYTHON, NULL, 0, "keep the Python interpreter's own frames", 0 },
	{ "no-inlines", OPT_NO_INLINES, NULL, 0, "do not read debug information for the functions "
	  "that the compiler inlined", 0 },
	{ "debuginfod", OPT_DEBUGINFOD, NULL, 0, "ask the servers of DEBUGINFOD_URLS for names that "
	  "this machine doesn't have", 0 },
	{ "force", 'y', NULL, 0, "replace an existing FILE", 0 },
	{ "quiet", 'q', NULL, 0, "no progress and no closing summary on stderr", 0 },
	{ "verbose", 'v', NULL, 0, "more on stderr: what is probed, and what libbpf says", 0 },
	{ "json", OPT_JSON, NULL, 0, "messages and closing summary on stderr as JSON, an object a "
	  "line (docs/output.md)", 0 },
	{ "help", 'h', NULL, 0, "print this text", -1 },
	{ "version", OPT_VERSION, NULL, 0, "print the version", -1 },
	{ 0 },
};
_Static_assert(sizeof(options__table) <= OPTIONS_MAX * sizeof(options__table[0]), "room for getopt's");

static const char usage[] = "-p PID[,PID...]\n--cgroup PATH\n-a\n-- CMD [ARG...]";

static const char doc[] =
	"Shows which lines of code the GPU and the CPU work for, as folded stacks.\n\n"
	"  sudo gpucollect -o train.folded -- python3 train.py\n"
	"  speedscope train.folded\n\n"
	"  sudo gpucollect -p 4242 -d 10s | speedscope -\n"
	"  sudo gpucollect -a -d 30s --metric launches -o all.folded\n"
	"  sudo gpucollect calibrate [--device N] [--json] [-q]\n"
	"\v"
	"GPU time counts for the path that launched the work; kernels that overlap are each "
	"counted in full. Only data goes to stdout, all else to stderr. The first Ctrl-C stops "
	"and writes; while a command runs the first is the command's own. SIGUSR1 writes a file "
	"and goes on.\n\n"
	"GPU work is timed by a library that gpucollect loads into the processes that it was pointed "
	"at. A variable GPUCOLLECT_DISABLE in a process's environment, or a file "
	KEPT_OUT_FILE " (the machine's, or one in the process's root directory), keeps it and all "
	"probes out.\n\n"
	"gpucollect calibrate measures by how much the events around a piece of GPU work make it look too "
	"long on this machine's devices (with --device N on that one), prints it, and, as root, keeps it for "
	"later captures in /var/lib/gpucollect/calibration. It takes some seconds, and devices that nothing "
	"else uses.\n\nExit status:\n"
#define X(name, code, meaning) "  " #code "\t" meaning "\n"
	EXIT_CODES(X)
#undef X
	EXIT_OF_COMMAND;

static const struct argp argp = { .options = options__table, .args_doc = usage, .doc = doc };

int options__print_help(void)
{
	errno = 0;
	/* argp does not change the name it is given. */
	argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG |
		  ARGP_HELP_POST_DOC, (char *)(uintptr_t)"gpucollect");
	return fflush(stdout) || ferror(stdout) ? (errno ? -errno : -EIO) : 0;
}

int options__print_version(void)
{
	errno = 0;
	printf("gpucollect %s\n", version__text);
	return fflush(stdout) || ferror(stdout) ? (errno ? -errno : -EIO) : 0;
}
