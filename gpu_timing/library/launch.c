// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/launch.h"

#include <errno.h>

#include "gpu_timing/library/harvest.h"
#include "gpu_timing/library/segment.h"
#include "gpu_timing/library/strata.h"

#define LAST_WAIT_NS 1000000ull
#define QUEUED_NS 10000		/* what it may take to queue a copy */
#define RUN_ENDS 2
#define DEVICE_NS 3200ull	/* that a bracket takes of the device: measured, docs/measurements.md */

/*
 * May a record be put into this stream at all? Asked in this order: without a current context the
 * calls about default streams fail, and a failure leaves a line in the driver's error log; a
 * record in the legacy stream while another stream captures would destroy that capture, asking
 * whether it captures does not.
 */
static enum launch_cause find_stream(struct call *call)
{
	struct capture_answer *a = &call->answer;
	struct channel_launch *l = &call->t->launch;
	struct context *current = NULL;
	CUcontext handle = NULL;

	if (stream__is_default(call->stream)) {
		if (lib.driver.ctx_get_current(&handle) || !handle)
			return CAUSE_OTHER_CONTEXT;
	}
	if (likely(!a->asked)) {
		a->status = CU_STREAM_CAPTURE_STATUS_NONE;
		a->error = lib.driver.stream_is_capturing(call->stream, &a->status);
	}
	call->error = a->error;
	if (call->error) {
		l->flags |= LAUNCH_STREAM_UNKNOWN;
		return CAUSE_CAPTURED;
	}
	if (a->status != CU_STREAM_CAPTURE_STATUS_NONE) {
		l->flags |= LAUNCH_CAPTURED;
		return CAUSE_CAPTURED;
	}
	if (handle) {
		current = context__get(handle);
		if (!current)
			return CAUSE_OTHER_CONTEXT;
	}
	call->t->stream = stream__get(call->stream, current, call->t);
	return call->t->stream ? CAUSE_NONE : CAUSE_NO_STREAM;
}

static void give_back(struct thread *t, bool forget)
{
	context__give(t->bracket, forget);
	t->bracket = 0;
	__atomic_sub_fetch(&t->stream->outstanding, 1, __ATOMIC_RELAXED);
}

static enum launch_cause take_bracket(struct call *call)
{
	struct thread *t = call->t;
	struct stream *s = t->stream;
	enum launch_cause cause = CAUSE_OTHER_CONTEXT;
	unsigned int ends;

	call->context = stream__context(s);
	if (!call->context)
		return CAUSE_OTHER_CONTEXT;
	ends = stream__wants_ends(s);
	/* Whether runs are of use here is to be known soon. */
	if (unlikely(call->stays) && !ends && lib.driver.cheap_elapsed)
		ends = RUN_ENDS;
	if (ends && harvest__own(s, ends))
		stream__moved(s);
	if (!stream__admit(s, t, &call->weight))
		return CAUSE_OUTSTANDING;
	call->weight *= call->one_in;
	if (call->weight > CHANNEL_MAX_WEIGHT)
		call->weight = CHANNEL_MAX_WEIGHT;
	t->bracket = context__take(call->context, load_relaxed(&s->serial), &cause);
	if (!t->bracket) {
		__atomic_sub_fetch(&s->outstanding, 1, __ATOMIC_RELAXED);
		return cause;
	}
	context__bracket(t->bracket)->half = false;
	if (unlikely(call->stays) && !run__new(context__bracket(t->bracket))) {
		give_back(t, false);
		return CAUSE_POOL_EMPTY;
	}
	context__bracket(t->bracket)->hold = load_acquire(&s->held);
	thread__count(t, brackets);
	t->launch.flags |= LAUNCH_TIMED;
	return CAUSE_NONE;
}

void launch__fire(struct thread *t, struct channel_launch *l, uint32_t session)
{
	l->id = (uint64_t)session << CHANNEL_SESSION_SHIFT | ++t->next_id;
	thread__count(t, probes);
	/* The id stays in the thread's memory: the probe must see all stores before it. */
	__asm__ volatile("" ::: "memory");
	if (load_relaxed(&lib.segment->site) == SITE_NOP5)
		gpucollect_site_nop5(l->id, l);
	else
		gpucollect_site_nop1(l->id, l);
}

/* 0 where no budget decides. */
static uint64_t now_if_asked(const struct call *call)
{
	return call->every ? 0 : clock__ns();
}

/* A bracket takes the device's time, too, of which all threads that launch have one budget. */
static void spend(struct call *call, uint64_t since, bool bracketed)
{
	uint64_t ns, device = DEVICE_NS * load_relaxed(&lib.memory->strata.threads);

	if (!since)
		return;
	ns = call->spent + clock__ns() - since;
	pace__spend(&call->t->pace, bracketed && ns < device ? device : ns);
}

/* The run before is over: its end goes in front of this launch. */
static void close_run(const struct call *call)
{
	if (load_acquire(&lib.memory->guard.open) == call->session)
		run__end(call->t);
	else
		run__lose(call->t, false);
}

/* It is to be in its stream next. */
static void enter_stream(struct call *call)
{
	struct thread *t = call->t;

	if (unlikely(run__any()) && call->every == 1)
		run__part(t->stream, t);
	if (t->turn != call->turn)
		return;
	__atomic_add_fetch(&t->stream->active, 1, __ATOMIC_ACQ_REL);
	t->entered = 1;
	call->seq = __atomic_add_fetch(&t->stream->seq, 1, __ATOMIC_ACQ_REL);
}

static enum launch_cause find_bracket(struct call *call)
{
	enum launch_cause cause = run__meet(call);

	return cause || call->joined ? cause : take_bracket(call);
}

void launch__begin(struct call *call, CUstream stream)
{
	struct thread *t = call->t;
	int saved = errno;
	uint32_t fp, bracket;
	uint64_t since;

	/* A signal handler that has launched since has left it. */
	if (unlikely(t->at != call->place))
		__atomic_store_n(&t->at, call->place, __ATOMIC_SEQ_CST);
	crowd__enter(t);
	call->marked = false;
	call->every = load_acquire(&lib.segment->every);
	if (unlikely(run__any()) && call->every != 1)
		run__lose_all();
	/* What goes into a capture runs later, or never: it is none of the launches that others stand for. */
	call->counted = !capture__takes(t, stream, &call->answer) && !strata__choose(t, call->every);
	if (call->counted) {
		session__leave(t, call->was_inside);
		return;
	}
	fp = fp__save();
	since = now_if_asked(call);
	call->stream = stream;
	call->context = NULL;
	call->weight = 1;
	call->error = CUDA_SUCCESS;
	call->waits = false;
	call->took = 0;
	if (!stream && t->launch.flags & LAUNCH_PTSZ)
		call->stream = CU_STREAM_PER_THREAD;
	call->cause = CAUSE_NO_END;
	if (likely(!load_relaxed(&lib.memory->guard.quiet)))
		call->cause = find_stream(call);
	call->one_in = 1;
	call->alone = call->joined = call->stays = call->apart = call->ended = false;
	if (unlikely(t->closing))	/* left by a jump */
		run__lose(t, true);
	if (!call->cause)
		call->cause = find_bracket(call);
	launch__fire(t, &t->launch, call->session);
	session__leave(t, call->was_inside);

	if (unlikely(t->closing) && t->turn == call->turn)
		close_run(call);
	if (t->stream && t->turn == call->turn)
		enter_stream(call);
	bracket = t->bracket;
	if (bracket && t->turn == call->turn)
		crowd__open(t, load_relaxed(&t->stream->order));
	if (bracket && !call->joined && t->turn == call->turn) {
		call->error = lib.driver.event_record(context__bracket(bracket)->begin, call->stream);
		if (call->error)
			call->cause = CAUSE_RECORD_FAILED;
		call->begun = clock__ns();
	} else if (t->launch.flags & LAUNCH_COPY) {
		call->begun = clock__ns();
	}
	call->spent = since ? clock__ns() - since : 0;
	fp__restore(fp);
	errno = saved;
}

/* Where it was executed; NULL: it went into a graph, or that isn't known. */
static const struct context *executed_in(const struct call *call)
{
	if (call->cause == CAUSE_CAPTURED)
		return NULL;
	return call->context ? call->context : call->t->stream ? stream__context(call->t->stream) : NULL;
}

static void report(struct call *call, uint32_t name, uint64_t waited)
{
	const struct context *c = executed_in(call);
	struct thread *t = call->t;
	struct channel_result result = {
		.launch = t->launch.id,
		.function = t->launch.function,
		.stream = t->launch.stream,
		.name = name,
		.device = -1,
		.launches = 1,
		.weight = 1,
		.stands_for = t->launch.weight,
		.stratum = t->launch.stratum,
		.entry = t->launch.entry,
		.flags = t->launch.flags & (uint16_t)~LAUNCH_TIMED,
		.cause = (uint16_t)call->cause,
		.error = (uint32_t)call->error,
	};

	if (t->launch.flags & LAUNCH_COPY) {
		result.copy = t->launch.grid[2];
		result.bytes = copy__bytes(t->launch.grid);
		result.waited = waited;
	}
	if (c) {
		result.context = load_relaxed(&c->serial);
		result.device = load_relaxed(&c->device);
	}
	segment__result(t, &result, NULL);
	t->launch.id = 0;
}

/* The end is recorded at once after the launch; all else can wait. */
static void record_end(struct call *call)
{
	struct thread *t = call->t;
	struct bracket *b = context__bracket(t->bracket);
	uint64_t gap = clock__ns() - call->begun;
	bool forget;
	CUresult r;
	float ms;

	r = lib.driver.event_record(b->end, call->stream);
	b->gap = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
	if (r) {
		call->cause = CAUSE_RECORD_FAILED;
		call->error = r;
		return;
	}
	call->ended = true;
	if (!crowd__close(t))
		call->cause = CAUSE_DISTURBED;
	b->load = LOAD_UNKNOWN;
	if (lib.driver.cheap_elapsed) {
		r = lib.driver.elapsed(&ms, b->begin, b->begin);
		if (!r)
			b->load = LOAD_IDLE;
		else if (r == CUDA_ERROR_NOT_READY)
			b->load = LOAD_BUSY;
		else	/* at once: each further question would leave a line in the error log */
			harvest__meaning(b, r, &forget);
	}
}

/* And memory of the host that isn't pinned is copied by the call: its time is no gap before the copy. */
bool launch__may_wait(uint32_t kind)
{
	switch (kind) {
	case COPY_DTOD:
	case COPY_PTOP:
	case COPY_SET:
	case COPY_ATOD:
	case COPY_DTOA:
	case COPY_ATOA:
		return false;
	default:
		return true;
	}
}

static void fill_in(const struct call *call, uint32_t name, uint64_t waited)
{
	const struct thread *t = call->t;
	struct bracket *b = context__bracket(t->bracket);

	b->launch = t->launch.id;
	b->function = t->launch.function;
	b->stream = t->launch.stream;
	b->name = name;
	b->weight = call->weight;
	b->stands_for = t->launch.weight;
	b->stratum = t->launch.stratum;
	b->entry = t->launch.entry;
	b->flags = t->launch.flags;
	b->copy = COPY_UNKNOWN;
	b->bytes = 0;
	b->waited = waited;
	if (t->launch.flags & LAUNCH_COPY) {
		b->copy = (uint16_t)t->launch.grid[2];
		b->bytes = copy__bytes(t->launch.grid);
		if (launch__may_wait(b->copy))
			b->gap = 0;
	}
	b->device = load_relaxed(&call->context->device);
	b->cause = (uint16_t)call->cause;
}

static void publish(struct call *call, uint32_t name, uint64_t waited)
{
	struct thread *t = call->t;
	struct stream *s = t->stream;
	uint32_t bracket = t->bracket;

	fill_in(call, name, waited);
	t->launch.id = 0;
	t->bracket = 0;
	stream__publish(s, bracket);
	/* What is published after the last harvest would never be reported. */
	if (unlikely(!load_acquire(&lib.memory->guard.active)))
		harvest__last(s, clock__ns() + LAST_WAIT_NS);
}

static void leave_stream(struct thread *t)
{
	crowd__close(t);
	if (t->entered)
		__atomic_sub_fetch(&t->stream->active, 1, __ATOMIC_ACQ_REL);
	t->entered = 0;
}

static void let_go(struct thread *t, bool forget)
{
	leave_stream(t);
	run__lose(t, forget);
	if (t->bracket)
		give_back(t, forget);
	t->stream = NULL;
}

static void note_success(void)
{
	if (unlikely(load_relaxed(&lib.segment->state) == CHANNEL_ARMED))
		session__first_launch();
}

/* For the next one in its stream. */
static void note_place(const struct call *call)
{
	struct stream *s = call->t->stream;
	enum stream_place place = PLACE_KERNEL;

	if (call->ended)
		place = PLACE_END;
	else if (call->t->launch.flags & (LAUNCH_GRAPH | LAUNCH_COPY))
		place = PLACE_OTHER;
	store_relaxed(&s->place, (uint32_t)place);
	store_relaxed(&s->left_out, (uint32_t)(call->cause == CAUSE_OUTSTANDING));
}

/* What is left of a launch once its end is recorded; we are inside its session. */
static void finish(struct call *call, CUresult result, uint64_t waited)
{
	struct thread *t = call->t;
	uint32_t name = 0;

	if (!result) {
		note_success();
		if (t->launch.flags & LAUNCH_GRAPH)
			name = graph__find(t->launch.function);
		else if (!(t->launch.flags & LAUNCH_COPY))
			name = name__find_run(t, t->launch.function, executed_in(call));
	}
	/* The events of a disturbed one take room in the stream as others do. */
	if (!call->cause || (call->cause == CAUSE_DISTURBED && t->bracket)) {
		if (call->stays)
			fill_in(call, name, waited);
		if (call->stays || call->joined)
			run__keep(call, name);
		else
			publish(call, name, waited);
	} else {
		if (call->joined)
			run__return(call);
		else if (t->bracket)
			give_back(t, false);
		if (!result && t->launch.flags & LAUNCH_CAPTURED)
			capture__note(t, call->stream);
		report(call, name, waited);
	}
	if (call->waits)
		store_release(&t->counters->waiting, 0ull);
	t->stream = NULL;
}

bool launch__is_ours(const struct call *call)
{
	/* Forked inside the driver's call (from a signal handler): all of this is the parent's. */
	return likely(load_relaxed(&lib.memory->guard.owner)) && likely(call->t->turn == call->turn);
}

/* How long a copy's call took, if it waits for the copy. */
static uint64_t waited_in(const struct call *call)
{
	if (!call->waits || call->cause == CAUSE_CAPTURED || !launch__may_wait(call->t->launch.grid[2]))
		return 0;
	return call->took;
}

bool launch__took_long(struct call *call)
{
	if (!launch__is_ours(call) || call->counted || call->waits)
		return false;
	if (!call->took)
		call->took = clock__ns() - call->begun;
	return call->took > QUEUED_NS;
}

static void mark_end(struct call *call, CUresult result)
{
	struct thread *t = call->t;

	if (call->marked)
		return;
	call->marked = true;
	if (t->launch.flags & LAUNCH_COPY && !call->took)
		call->took = clock__ns() - call->begun;
	if (unlikely(call->stays || call->joined))
		call->alone = crowd__close(t);
	if (result) {
		call->cause = CAUSE_LAUNCH_FAILED;
		call->error = result;
		t->launch.flags |= LAUNCH_FAILED;
	} else if (t->bracket && !call->cause &&
		   load_acquire(&lib.memory->guard.open) == call->session) {
		if (call->stays || call->joined)
			run__stay(call);
		else
			record_end(call);
	}
	if (t->stream && !result && call->every == 1)
		note_place(call);
}

bool launch__mark_end(struct call *call, struct launch_question *q)
{
	if (!launch__is_ours(call) || call->counted || call->cause == CAUSE_CAPTURED || !library__is_active())
		return false;
	q->saved = errno;
	q->fp = fp__save();
	q->since = now_if_asked(call);
	mark_end(call, CUDA_SUCCESS);
	return true;
}

void launch__answered(struct call *call, const struct launch_question *q)
{
	if (q->since)
		call->spent += clock__ns() - q->since;
	fp__restore(q->fp);
	errno = q->saved;
}

void launch__end(struct call *call, CUresult result)
{
	struct thread *t = call->t;
	uint64_t since, waited;
	uint32_t was = 0, fp;
	bool bracketed;
	int saved = errno;

	if (!launch__is_ours(call))
		return;
	if (call->counted) {
		launch__leave(call);
		return;
	}
	fp = fp__save();
	since = now_if_asked(call);
	bracketed = t->bracket;
	mark_end(call, result);
	waited = waited_in(call);
	leave_stream(t);
	if (session__enter(t, call->session, &was)) {
		finish(call, result, waited);
		session__leave(t, was);
	} else {
		/* Its session is over: nobody waits for it. */
		let_go(t, false);
	}
	launch__leave(call);
	spend(call, since, bracketed);
	fp__restore(fp);
	errno = saved;
}

void launch__wait(struct call *call)
{
	session__leave(call->t, call->was_inside);
}

void launch__only_seen(struct call *call, CUresult result, bool further)
{
	struct thread *t = call->t;
	uint32_t was = 0;
	int saved = errno;

	if (!session__enter(t, call->session, &was))
		return;

	if (further)
		thread__count(t, launches[t->launch.entry]);
	call->context = NULL;
	call->cause = result ? CAUSE_LAUNCH_FAILED : CAUSE_ENTRY;
	t->launch.weight = 1;
	t->launch.stratum = 0;
	call->error = result;
	launch__fire(t, &t->launch, call->session);
	if (!result)
		note_success();
	report(call, result ? 0 : name__find(t, t->launch.function), 0);
	session__leave(t, was);
	errno = saved;
}

void launch__leave(struct call *call)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	call->t->frame = NULL;
	launch__leave_place(call->t);
}

void launch__nested(struct thread *t, uint64_t place)
{
	if (t->open)
		t->disturbed = 1;
	if (load_relaxed(&lib.memory->crowd.open))
		crowd__tell(t, place);
	if (unlikely(run__any()))
		run__nested(place);
}

void launch__abandon(struct thread *t)
{
	struct call call = { .t = t, .cause = CAUSE_NO_END };

	t->inside = 0;
	let_go(t, true);
	if (t->launch.id)
		report(&call, 0, 0);
	store_release(&t->counters->waiting, 0ull);
	t->frame = NULL;
	launch__leave_place(t);
}
