// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What event calls answer after the end of what they belong to. May crash: one process each.
 *   probe_dead context | recycled | reset | stream | event | stream-record | fork | race | race-reset
 *   probe_dead locked | locked-reset: as race, but no question is under way during the end
 *   probe_dead numbers: are the driver's numbers for contexts really never used twice, as addresses are?
 */
#include "probe_common.h"

#include <sys/wait.h>

static CUfunction f_spin;
static CUcontext ctx, ctx2;
static CUstream stream, doomed;
static CUevent first, second;
static CUdevice dev;
static CUmodule module;

static void spin_us(CUstream s, unsigned long long us)
{
	unsigned long long ns = us * 1000, none = 0;
	void *args[] = { &ns, &none };

	MUST(cu.LaunchKernel(f_spin, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
}

static void set_up(void)
{
	MUST(cu.Init(0));
	MUST(cu.DeviceGet(&dev, 0));
	MUST(cu.PrimaryRetain(&ctx, dev));
	MUST(cu.CtxSetCurrent(ctx));
	MUST(cu.ModuleLoad(&module, probe_cubin()));
	MUST(cu.ModuleGetFunction(&f_spin, module, "k_spin"));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.StreamCreate(&doomed, CU_STREAM_NON_BLOCKING));
	MUST(cu.EventCreate(&first, 0));
	MUST(cu.EventCreate(&second, 0));
	MUST(cu.EventRecord(first, doomed));
	spin_us(doomed, 20000);
	MUST(cu.EventRecord(second, doomed));
}

static int end(const char *how)
{
	CUevent other;
	CUstream s;
	int rc, same = 0;

	if (!strcmp(how, "reset"))
		return cu.PrimaryReset(dev);
	if (!strncmp(how, "stream", 6))
		return cu.StreamDestroy(doomed);
	if (!strcmp(how, "event"))
		return cu.EventDestroy(first);
	MUST(cu.CtxCreate(&ctx2, 0, dev));
	MUST(cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
	MUST(cu.EventCreate(&first, 0));
	MUST(cu.EventCreate(&second, 0));
	MUST(cu.EventRecord(first, s));
	MUST(cu.EventRecord(second, s));
	rc = cu.CtxDestroy(ctx2);
	if (strcmp(how, "recycled"))
		return rc;
	for (int i = 0; i < 6; i++) {
		MUST(cu.CtxCreate(&ctx2, 0, dev));
		for (int k = 0; k < 5000; k++) {
			MUST(cu.EventCreate(&other, 0));
			same += other == first || other == second;
		}
	}
	printf("30000 new events in 6 new contexts, %d with an old address; ", same);
	return rc;
}

static void ask(const char *how)
{
	float ms = -1;
	int rc;

	printf("Elapsed_v2 at once");
	fflush(stdout);
	rc = cu.Elapsed(&ms, first, second);
	printf(" %d %.4f ms", rc, (double)ms);
	fflush(stdout);
	sleep_us(60000);
	ms = -1;
	rc = cu.Elapsed(&ms, first, second);
	printf(", 60 ms later %d %.4f ms", rc, (double)ms);
	fflush(stdout);
	printf(", (e,e) %d", cu.Elapsed(&ms, second, second));
	fflush(stdout);
	printf(", query %d", cu.EventQuery(second));
	fflush(stdout);
	printf(", record %d", cu.EventRecord(second, strcmp(how, "stream-record") ? stream :
					    doomed));
	fflush(stdout);
	printf(", destroy %d\n", cu.EventDestroy(second));
}

/* ---- a harvester that asks while the main thread destroys ---- */

static CUevent shared_a, shared_b;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;
static _Atomic long asked, answers[1000];
static int locked;

static void publish(CUevent a, CUevent b)
{
	pthread_mutex_lock(&guard);
	shared_a = a;
	shared_b = b;
	pthread_mutex_unlock(&guard);
}

static void *harvest(void *arg)
{
	float ms;

	(void)arg;
	while (!stop) {
		CUevent a, b;
		int rc = -1;

		pthread_mutex_lock(&guard);
		a = shared_a;
		b = shared_b;
		if (locked && a)
			rc = cu.Elapsed(&ms, a, b);
		pthread_mutex_unlock(&guard);
		if (!locked && a)
			rc = cu.Elapsed(&ms, a, b);
		if (!a)
			continue;
		asked++;
		answers[rc >= 0 && rc < 999 ? rc : 999]++;
	}
	return NULL;
}

/* Not locked: the pair stays published while and after its context goes. */
static void race(int reset)
{
	pthread_t t[2];
	int rounds = reset ? 10 : 60;

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, harvest, NULL);
	for (int i = 0; i < rounds; i++) {
		CUevent a, b;
		CUstream s;

		if (reset) {
			MUST(cu.PrimaryRetain(&ctx2, dev));
			MUST(cu.CtxSetCurrent(ctx2));
		} else {
			MUST(cu.CtxCreate(&ctx2, 0, dev));
		}
		MUST(cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
		MUST(cu.EventCreate(&a, 0));
		MUST(cu.EventCreate(&b, 0));
		MUST(cu.EventRecord(a, s));
		MUST(cu.EventRecord(b, s));
		publish(a, b);
		sleep_us(1000);
		if (locked)
			publish(NULL, NULL);
		MUST(reset ? cu.PrimaryReset(dev) : cu.CtxDestroy(ctx2));
		sleep_us(1000);
		publish(NULL, NULL);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%d rounds, asked %ld times:", rounds, asked);
	for (int i = 0; i < 1000; i++)
		if (answers[i])
			printf(" rc %d: %ld", i, answers[i]);
	printf("\n");
}

static void forked(void)
{
	CUstreamCaptureStatus status;
	CUevent e;
	float ms;
	pid_t pid;
	int st;

	cu.StreamSynchronize(doomed);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(5);
		printf("child: Elapsed_v2 %d", cu.Elapsed(&ms, first, second));
		fflush(stdout);
		printf(", IsCapturing %d", cu.StreamIsCapturing(stream, &status));
		fflush(stdout);
		printf(", record %d", cu.EventRecord(first, stream));
		fflush(stdout);
		printf(", create %d", cu.EventCreate(&e, 0));
		fflush(stdout);
		printf(", launch %d\n", cu.LaunchKernel(f_spin, 1, 1, 1, 1, 1, 1, 0, stream, NULL,
							NULL));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &st, 0);
	printf("parent: child status %x, Elapsed_v2 %d\n", (unsigned int)st,
	       cu.Elapsed(&ms, first, second));
}

#define LIVES 60

/* A primary context that is reset, and others, in turn: each is noted while it lives. */
static void numbers(void)
{
	static CUcontext handle[LIVES];
	static unsigned long long id[LIVES];
	int failed = 0, old_handles = 0, old_ids = 0;

	for (int i = 0; i < LIVES; i++) {
		if (i % 2)
			MUST(cu.CtxCreate(&handle[i], 0, dev));
		else
			MUST(cu.PrimaryRetain(&handle[i], dev));
		failed += cu.CtxGetId(handle[i], &id[i]) != CUDA_SUCCESS;
		for (int k = 0; k < i; k++) {
			old_handles += handle[k] == handle[i];
			old_ids += id[k] == id[i];
		}
		MUST(i % 2 ? cu.CtxDestroy(handle[i]) : cu.PrimaryReset(dev));
	}
	printf("%d contexts: %d pairs with one address, %d with one number, %d refused; first numbers "
	       "%llu %llu %llu %llu\n", LIVES, old_handles, old_ids, failed, id[0], id[1], id[2], id[3]);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "context";

	cu_load();
	set_up();
	printf("%s: ", how);
	fflush(stdout);
	locked = !strncmp(how, "locked", 6);
	if (locked || !strncmp(how, "race", 4)) {
		race(strstr(how, "-reset") != NULL);
	} else if (!strcmp(how, "numbers")) {
		numbers();
	} else if (!strcmp(how, "fork")) {
		forked();
	} else {
		printf("ended %d; ", end(how));
		ask(how);
	}
	return 0;
}
