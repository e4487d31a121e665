/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exit codes: one table for the enum, for --help and for the documentation's test. */
#ifndef EXIT_CODES_H
#define EXIT_CODES_H

/* X(name, code, meaning) */
#define EXIT_CODES(X) \
	X(EXIT_COMPLETE, 0, "complete") \
	X(EXIT_PARTIAL, 1, "written but partial (over 1 % lost, target gone early, rescue file)") \
	X(EXIT_EMPTY, 2, "nothing was captured") \
	X(EXIT_USAGE, 64, "usage error, also an -o FILE that exists or for which there is no place") \
	X(EXIT_NO_PERMISSION, 77, "a right or a feature is missing, or another gpucollect has the target") \
	X(EXIT_OWN_FAILURE, 125, "gpucollect itself failed") \
	X(EXIT_NOT_EXECUTABLE, 126, "with a command: it could not be executed") \
	X(EXIT_NOT_FOUND, 127, "with a command: it was not found") \
	X(EXIT_ABORTED, 130, "aborted by a second signal")

#define EXIT_SIGNAL 128
/* The codes above that say what gpucollect could not do, 64 and more, hold with a command, too. */
#define EXIT_OF_COMMAND \
	"With a command that ran: its own status, or 128 + the number of the signal that ended it. " \
	"Where that is 0 and nothing was captured it is 2; a partial result does not change it."

enum exit_code {
#define X(name, code, meaning) name = code,
	EXIT_CODES(X)
#undef X
};

#endif
