// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols/itanium.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Substitutions make the tree of a name a graph: a hundred bytes can stand for a text of any
 * length, and nothing in the library stops it. So the graph is walked once before it is printed,
 * which gives the number of steps that printing takes. References to template parameters are what
 * can't be counted beforehand (they are looked up while printing); the walk replaces them.
 */
#define MAX_COST (1u << 18)
#define MAX_DEPTH 1000		/* libiberty prints no deeper than 1024 */
#define MAX_OUTPUT (1u << 20)
#define MAX_REPARSED 8
#define IN_PROGRESS UINT32_MAX
#define NR_AUTO 16

struct walk {
	struct demangle_component *nodes;
	size_t nr_nodes;
	uint32_t *cost;			/* of a node and all it leads to; 0: not seen yet */
	struct demangle_component autos[NR_AUTO];
	char texts[NR_AUTO][sizeof("auto:99")];
	int err;
};

struct output {
	char *text;
	size_t len, size;
	bool failed;
};

static bool is_qualifier(const struct demangle_component *dc)
{
	switch (dc->type) {
	case DEMANGLE_COMPONENT_RESTRICT_THIS:
	case DEMANGLE_COMPONENT_VOLATILE_THIS:
	case DEMANGLE_COMPONENT_CONST_THIS:
	case DEMANGLE_COMPONENT_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_TRANSACTION_SAFE:
	case DEMANGLE_COMPONENT_NOEXCEPT:
	case DEMANGLE_COMPONENT_THROW_SPEC:
		return true;
	default:
		return false;
	}
}

/* The name alone of a function: without parameters, return type and what qualifies `this`. */
static struct demangle_component *bare_name(struct demangle_component *dc)
{
	while (dc && (dc->type == DEMANGLE_COMPONENT_TYPED_NAME || is_qualifier(dc)))
		dc = dc->u.s_binary.left;
	return dc;
}

static struct demangle_component *argument(struct demangle_component *list, long index)
{
	while (list && list->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST && index-- > 0)
		list = list->u.s_binary.right;
	return list && list->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST ? list->u.s_binary.left :
									     NULL;
}

/*
 * What a template parameter means where it is left after the functions' types are gone: the target
 * of a conversion operator, or a parameter of a generic lambda.
 */
static struct demangle_component *replacement(struct walk *w, struct demangle_component *param,
					      struct demangle_component *args)
{
	long index = param->u.s_number.number;
	struct demangle_component *arg = args ? argument(args, index) : NULL;

	if (arg && arg->type != DEMANGLE_COMPONENT_TEMPLATE_PARAM)
		return arg;
	if (index < 0 || index >= NR_AUTO)
		index = NR_AUTO - 1;
	return &w->autos[index];
}

static uint32_t walk(struct walk *w, struct demangle_component *dc, int depth,
		     struct demangle_component *args);

/* Follows one edge; what it leads to may be replaced. */
static uint32_t walk_edge(struct walk *w, struct demangle_component **edge, int depth,
			  struct demangle_component *args)
{
	if (!*edge)
		return 0;
	if ((*edge)->type == DEMANGLE_COMPONENT_TYPED_NAME)
		*edge = bare_name(*edge);
	if (*edge && (*edge)->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM)
		*edge = replacement(w, *edge, args);
	return *edge ? walk(w, *edge, depth + 1, args) : 0;
}

/* The cost of what `dc` leads to. */
static uint64_t walk_below(struct walk *w, struct demangle_component *dc, int depth,
			   struct demangle_component *args)
{
	struct demangle_component **left = &dc->u.s_binary.left, **right = &dc->u.s_binary.right;
	uint64_t cost;

	switch (dc->type) {
	case DEMANGLE_COMPONENT_NAME:
		return dc->u.s_name.len > 0 ? (uint32_t)dc->u.s_name.len / 16 : 0;
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_NUMBER:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
		return 0;
	case DEMANGLE_COMPONENT_CTOR:
		return walk_edge(w, &dc->u.s_ctor.name, depth, args);
	case DEMANGLE_COMPONENT_DTOR:
		return walk_edge(w, &dc->u.s_dtor.name, depth, args);
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		return walk_edge(w, &dc->u.s_extended_operator.name, depth, args);
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		return walk_edge(w, &dc->u.s_fixed.length, depth, args);
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		return walk_edge(w, &dc->u.s_unary_num.sub, depth, NULL);
	case DEMANGLE_COMPONENT_LOCAL_NAME:
		/* the qualifiers of a lambda's operator() stand here, its parameters outside */
		*right = bare_name(*right);
		break;
	case DEMANGLE_COMPONENT_TEMPLATE:
		/* the type of a conversion operator is written in terms of its own arguments */
		cost = walk_edge(w, right, depth, args);
		return cost + walk_edge(w, left, depth, *right);
	case DEMANGLE_COMPONENT_PACK_EXPANSION:
		/* looked through for a pack first */
		return 3ull * walk_edge(w, left, depth, args);
	default:
		break;
	}
	cost = walk_edge(w, left, depth, args);
	return cost + walk_edge(w, right, depth, args);
}

static uint32_t walk(struct walk *w, struct demangle_component *dc, int depth,
		     struct demangle_component *args)
{
	size_t i = (size_t)(dc - w->nodes);
	uint64_t cost;

	if (dc >= w->autos && dc < w->autos + NR_AUTO)
		return 1;
	/* types of later versions may have no subtrees where we would look for them */
	if (dc < w->nodes || i >= w->nr_nodes ||
	    dc->type > DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE) {
		w->err = w->err ?: EINVAL;
		return 0;
	}
	if (w->cost[i] && w->cost[i] != IN_PROGRESS)
		return w->cost[i];
	if (w->cost[i] == IN_PROGRESS || depth > MAX_DEPTH) {
		w->err = w->err ?: E2BIG;
		return 0;
	}
	w->cost[i] = IN_PROGRESS;
	cost = w->err ? 0 : walk_below(w, dc, depth, args);
	if (cost >= MAX_COST) {
		w->err = w->err ?: E2BIG;
		cost = MAX_COST;
	}
	w->cost[i] = (uint32_t)cost + 1;
	return w->cost[i];
}

static void put(const char *s, size_t len, void *opaque)
{
	struct output *o = opaque;
	size_t size = o->size;
	char *text;

	if (o->failed || len > MAX_OUTPUT - o->len) {
		o->failed = true;
		return;
	}
	while (size < o->len + len + 1)
		size = size ? size * 2 : 128;
	if (size != o->size) {
		text = realloc(o->text, size);
		if (!text) {
			o->failed = true;
			return;
		}
		o->text = text;
		o->size = size;
	}
	memcpy(o->text + o->len, s, len);
	o->len += len;
	o->text[o->len] = '\0';
}

/*
 * A conversion to a template parameter that is followed by arguments ("cvT_I") is ambiguous: the
 * library parses these arguments twice, nested ones twice again, and so on.
 */
static bool parses_in_time(const char *mangled)
{
	int reparsed = 0;

	for (const char *s = mangled; (s = strstr(s, "cvT")); ) {
		s += strlen("cvT");
		s += strspn(s, "0123456789");
		if (s[0] == '_' && s[1] == 'I' && ++reparsed > MAX_REPARSED)
			return false;
	}
	return true;
}

static char *print(struct demangle_component *tree)
{
	struct output o = {};

	if (!cplus_demangle_print_callback(DMGL_PARAMS, tree, put, &o) || o.failed || !o.len) {
		free(o.text);
		return errno = o.failed ? E2BIG : EINVAL, NULL;
	}
	return o.text;
}

char *itanium__demangle(const char *mangled, size_t len)
{
	struct walk w = { .nr_nodes = 2 * len };
	struct demangle_component *tree;
	void *memory = NULL;
	char *text = NULL;
	int err;

	if (!parses_in_time(mangled))
		return errno = E2BIG, NULL;
	/* DMGL_PARAMS: a name with something behind it is none */
	tree = cplus_demangle_v3_components(mangled, DMGL_PARAMS | DMGL_NO_RECURSE_LIMIT, &memory);
	if (!tree)
		return errno = EINVAL, NULL;
	w.nodes = memory;
	w.cost = calloc(w.nr_nodes, sizeof(*w.cost));
	if (!w.cost) {
		err = ENOMEM;
		goto out;
	}
	for (int i = 0; i < NR_AUTO; i++) {
		int n = snprintf(w.texts[i], sizeof(w.texts[i]), "auto:%d", i + 1);

		cplus_demangle_fill_name(&w.autos[i], w.texts[i], n);
	}
	tree = bare_name(tree);
	if (tree)
		walk(&w, tree, 0, NULL);
	err = tree ? w.err : EINVAL;
	if (err)
		goto out;
	text = print(tree);
	err = text ? 0 : errno;
out:
	free(w.cost);
	free(memory);
	errno = err;
	return text;
}
