// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/calibrate/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/log.h"
#include "loader/calibrate/found.h"
#include "loader/calibrate/process.h"
#include "loader/calibrate/store.h"
#include "loader/exit_codes.h"

struct calibrate {
	const struct options *options;
	struct calibrate_found found;	/* on the device that is measured now */
	bool measuring;
	struct calibrations constants;
	struct text out;
	int code;
	int err;
};

/* The first thing that goes wrong decides, but one that could be measured in part is not as bad. */
static void fail(struct calibrate *c, int code)
{
	if (!c->code || c->code == EXIT_PARTIAL)
		c->code = code;
}

/* --- what the process tells -------------------------------------------------------------------- */

/* All of one device is there. */
static void settle(struct calibrate *c)
{
	unsigned int missing = 0;

	if (!c->measuring)
		return;
	c->measuring = false;
	if (c->options->json)
		calibrate_found__print_json(&c->found, &c->out);
	else
		calibrate_found__print(&c->found, &c->out);
	if (calibrate_found__settle(&c->found, &c->constants, &missing))
		c->err = -ENOMEM;
	if (missing) {
		log_warn("device %d (%s): %u of %d kinds of work have no constant, see the table; again "
			 "on a device that nothing else uses it may be found", c->found.device,
			 c->found.name, missing, NR_CALIBRATION_WORKS);
		if (!c->code)
			c->code = EXIT_PARTIAL;
	}
}

static void begin_device(struct calibrate *c, const struct calibrate_record *r)
{
	settle(c);
	memset(&c->found, 0, sizeof(c->found));
	c->found.device = r->device;
	c->found.version = r->version;
	memcpy(c->found.name, r->text, sizeof(c->found.name));
	c->measuring = true;
	log__progress("measuring device %d, %s", r->device, r->text);
}

static void add_series(struct calibrate *c, const struct calibrate_record *r)
{
	struct calibrate_found *f = &c->found;

	if (!c->measuring || f->nr == SERIES_MOST)
		return;
	f->step_ns = r->step_ns;
	f->series[f->nr++] = r->series;
	log__progress("measuring device %d, %s: %zu series", f->device, f->name, f->nr);
}

/* Constants of a device that has failed on the way are not to be had. */
static void give_up_device(struct calibrate *c, const struct calibrate_record *r)
{
	c->measuring = false;
	if (r->device < 0)
		log_error("%s", r->text);
	else
		log_error("device %d: %s", r->device, r->text);
	fail(c, r->kind == CALIBRATE_MISSING ? EXIT_NO_PERMISSION : EXIT_OWN_FAILURE);
}

static void on_record(void *ctx, const struct calibrate_record *r)
{
	struct calibrate *c = ctx;

	switch (r->kind) {
	case CALIBRATE_DEVICE:
		begin_device(c, r);
		break;
	case CALIBRATE_SAME:
		settle(c);
		log_info("device %d: %s, as one before it, whose constants hold for it, too", r->device,
			 r->text);
		break;
	case CALIBRATE_SERIES:
		add_series(c, r);
		break;
	default:
		give_up_device(c, r);
	}
}

/* --- kept --------------------------------------------------------------------------------------- */

static void save(struct calibrate *c)
{
	char *why = NULL;
	int err;

	if (!c->constants.nr)
		return;
	if (geteuid()) {
		log_error("not saved: only root can write " CALIBRATION_STORE_FILE "; run it with sudo");
		fail(c, EXIT_NO_PERMISSION);
		return;
	}
	err = calibration_store__save(CALIBRATION_STORE_FOLDER, &c->constants, &why);
	if (err) {
		log_error("not saved: %s", why ? why : strerror(-err));
		fail(c, err == -EPERM || err == -EACCES || err == -EROFS ? EXIT_NO_PERMISSION :
			EXIT_OWN_FAILURE);
	} else {
		if (why)
			log_warn("%s", why);
		log_info("saved to " CALIBRATION_STORE_FILE);
	}
	free(why);
}

static void measure(struct calibrate *c, const struct caller *caller)
{
	char *why = NULL;
	int err;

	err = calibrate_process__run(caller, c->options->device, on_record, c, &why);
	log__progress_end();
	if (err) {
		c->measuring = false;
		log_error("%s", why ? why : strerror(-err));
		fail(c, EXIT_OWN_FAILURE);
	}
	free(why);
	settle(c);
}

static void show(struct calibrate *c)
{
	int err = c->err;

	if (!err && (c->out.len || c->out.failed))
		err = text__write(&c->out, stdout);
	if (!err)
		return;
	log_error("writing what was measured: %s", strerror(-err));
	fail(c, EXIT_OWN_FAILURE);
}

int calibrate__run(const struct options *options)
{
	struct calibrate c = { .options = options };
	struct caller caller;
	int err = caller__get(&caller);

	if (err) {
		log_error("finding out who calls from SUDO_UID and SUDO_GID, which sudo sets (unset them "
			  "where there is no sudo): %s", strerror(-err));
		return EXIT_OWN_FAILURE;
	}
	measure(&c, &caller);
	show(&c);
	save(&c);
	text__free(&c.out);
	calibrations__free(&c.constants);
	caller__free(&caller);
	return c.code;
}
