// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Modules, libraries and kernels. An image is PTX text (each ".entry NAME" is a kernel) or text
 * that starts with "STANDIN\n", one kernel a line with %XX escapes; "%NULL" has no name. Behind a tab
 * may stand its registers, behind another its static shared memory; in PTX they are those of
 * ".maxnreg N" and the sum of ".shared … NAME[BYTES]".
 */
#include "sim.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st {
	unsigned magic;
	CUcontext ctx;
	unsigned generation;
	unsigned count;
	CUfunction *functions;
	CUmodule next;			/* of one library, one for each context */
};

struct CUlib_st {
	unsigned magic, count;
	CUkernel *kernels;
	char *image;
	CUmodule modules;
};

#define REGISTERS 16			/* of a kernel that doesn't say */

struct names {
	char **name;
	struct sizes *sizes;
	unsigned count, room;
};

static struct slab functions = SLAB(struct CUfunc_st), kernels = SLAB(struct CUkern_st);
static struct slab modules = SLAB(struct CUmod_st), libraries = SLAB(struct CUlib_st);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- images ----------------------------------------------------------------------------------- */
static void names__add(struct names *v, char *name, struct sizes sizes)
{
	if (v->count == v->room) {
		v->room = v->room * 2 + 16;
		v->name = realloc(v->name, v->room * sizeof(*v->name));
		v->sizes = realloc(v->sizes, v->room * sizeof(*v->sizes));
	}
	v->sizes[v->count] = sizes;
	v->name[v->count++] = name;
}

static void names__free(struct names *v)
{
	free(v->name);
	free(v->sizes);
}

/* Of the lines from `s` to `end` that follow a kernel's name in PTX. */
static struct sizes ptx__sizes(const char *s, const char *end)
{
	struct sizes sizes = { .registers = REGISTERS };
	const char *p = strstr(s, ".maxnreg");

	if (p && p < end)
		sizes.registers = atoi(p + strlen(".maxnreg"));
	for (p = s; (p = strstr(p, "\t.shared")) && p < end; p++)
		if (strcspn(p, "[") < strcspn(p, ";"))
			sizes.shared += atoi(p + strcspn(p, "[") + 1);
	return sizes;
}

static struct sizes line__sizes(const char *s, const char *end)
{
	struct sizes sizes = { .registers = REGISTERS };

	s += strcspn(s, "\t\n");
	if (s < end)
		sizes.registers = (int)strtol(s, (char **)&s, 10);
	if (s < end)
		sizes.shared = (int)strtol(s, NULL, 10);
	return sizes;
}

static char *unescape(const char *s, size_t n)
{
	char *out, *o;

	if (n == 5 && !memcmp(s, "%NULL", 5))
		return NULL;
	out = o = malloc(n + 1);
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '%' && i + 2 < n) {
			char hex[3] = { s[i + 1], s[i + 2], 0 };

			*o++ = (char)strtol(hex, NULL, 16);
			i += 2;
		} else {
			*o++ = s[i];
		}
	}
	*o = 0;
	return out;
}

static bool image__names(const char *image, struct names *v)
{
	const char *p;

	*v = (struct names){ 0 };
	if (!memcmp(image, "\177ELF", 4) || !memcmp(image, "\x50\xed\x55\xba", 4))
		return false;		/* machine code, which this device can't run */
	if (!strncmp(image, "STANDIN\n", 8)) {
		for (p = image + 8; *p;) {
			size_t len = strcspn(p, "\n");

			names__add(v, unescape(p, strcspn(p, "\t\n")), line__sizes(p, p + len));
			p += len + (p[len] == '\n');
		}
		return true;
	}
	for (p = image; (p = strstr(p, ".entry"));) {
		const char *next;
		size_t len;

		p += strlen(".entry");
		p += strspn(p, " \t\n");
		len = strcspn(p, "( \t\n{");
		next = strstr(p, ".entry");
		names__add(v, strndup(p, len), ptx__sizes(p, next ? next : p + strlen(p)));
	}
	return true;
}

static unsigned name__spins(const char *name)
{
	if (!name || strncmp(name, "spin", 4))
		return SPIN_NO;
	return strcmp(name, "spin_and_tell") ? SPIN : SPIN_AND_TELL;
}

static bool name__is(const char *have, const char *want)
{
	return have ? !strcmp(have, want) : !strcmp(want, "%NULL");
}

static CUmodule module__new(CUcontext c, const char *image)
{
	struct names v;
	CUmodule m;

	if (!image__names(image, &v))
		return NULL;
	m = slab__get(&modules);
	m->ctx = c;
	m->generation = c->generation;
	m->count = v.count;
	m->next = NULL;
	m->functions = calloc(v.count + 1, sizeof(CUfunction));
	for (unsigned i = 0; i < v.count; i++) {
		CUfunction f = slab__get(&functions);

		memset(f, 0, sizeof(*f));
		f->spin = name__spins(v.name[i]);
		f->name = v.name[i];
		f->sizes = v.sizes[i];
		f->module = m;
		f->ctx = c;
		f->generation = c->generation;
		store(&f->magic, M_FUNC);
		m->functions[i] = f;
	}
	names__free(&v);
	store(&m->magic, M_MODULE);
	return m;
}

/* Backwards, so that the next module of the same size gets the same handles in the same order. */
static void module__free(CUmodule m)
{
	for (unsigned i = m->count; i-- > 0;) {
		CUfunction f = m->functions[i];

		store(&f->magic, M_DEAD);
		free(f->name);
		slab__put(&functions, f);
	}
	store(&m->magic, M_DEAD);
	free(m->functions);
	slab__put(&modules, m);
}

static char *read_file(const char *path)
{
	FILE *fp = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (!fp)
		return NULL;
	if (getdelim(&text, &room, 0, fp) < 0) {
		free(text);
		text = NULL;
	}
	fclose(fp);
	return text;
}

/* --- modules ---------------------------------------------------------------------------------- */
static CUresult load_data(CUmodule *out, const void *image)
{
	struct thread *t = thread__self();
	CUcontext c;
	CUresult r = ctx__current(t, &c);
	CUmodule m;

	if (!r && (!image || !out))
		r = CU_INVALID_VALUE;
	if (!r)
		r = capture__unsafe(t);
	if (r)
		return r;
	m = module__new(c, image);
	if (!m)
		return CU_INVALID_IMAGE;
	*out = m;
	return CU_OK;
}

API(cuModuleLoadData, CUmodule *m, const void *image) { ENTER(); RET(load_data(m, image)); }
API(cuModuleLoadFatBinary, CUmodule *m, const void *image) { ENTER(); RET(load_data(m, image)); }

API(cuModuleLoadDataEx, CUmodule *m, const void *image, unsigned n, void *options, void **values)
{
	(void)n, (void)options, (void)values;
	ENTER();
	RET(load_data(m, image));
}

API(cuModuleLoad, CUmodule *m, const char *path)
{
	char *text;
	CUresult r;

	ENTER();
	text = path ? read_file(path) : NULL;
	if (!text)
		RET(CU_FILE_NOT_FOUND);
	r = load_data(m, text);
	free(text);
	RET(r);
}

API(cuModuleUnload, CUmodule m)
{
	ENTER();
	if (!m || m->magic != M_MODULE)
		RET(CU_INVALID_HANDLE);
	module__free(m);
	RET(CU_OK);
}

API(cuModuleGetFunction, CUfunction *f, CUmodule m, const char *name)
{
	ENTER();
	if (!m || m->magic != M_MODULE)
		RET(CU_INVALID_HANDLE);
	if (!f || !name)
		RET(CU_INVALID_VALUE);
	for (unsigned i = 0; i < m->count; i++)
		if (name__is(m->functions[i]->name, name)) {
			*f = m->functions[i];
			RET(CU_OK);
		}
	RET(CU_NOT_FOUND);
}

API(cuModuleGetFunctionCount, unsigned *n, CUmodule m)
{
	ENTER();
	if (!m || m->magic != M_MODULE)
		RET(CU_INVALID_HANDLE);
	*n = m->count;
	RET(CU_OK);
}

API(cuModuleEnumerateFunctions, CUfunction *f, unsigned n, CUmodule m)
{
	ENTER();
	if (!m || m->magic != M_MODULE)
		RET(CU_INVALID_HANDLE);
	for (unsigned i = 0; i < n && i < m->count; i++)
		f[i] = m->functions[i];
	RET(CU_OK);
}

API(cuModuleGetLoadingMode, int *mode)
{
	enum { EAGER = 1 };

	ENTER();
	*mode = EAGER;
	RET(CU_OK);
}

/* --- libraries -------------------------------------------------------------------------------- */
static CUresult load_library(CUlibrary *out, const char *image)
{
	struct names v;
	CUlibrary l;

	if (!image || !out)
		return CU_INVALID_VALUE;
	if (!image__names(image, &v))
		return CU_INVALID_IMAGE;
	l = slab__get(&libraries);
	l->image = strdup(image);
	l->count = v.count;
	l->modules = NULL;
	l->kernels = calloc(v.count + 1, sizeof(CUkernel));
	for (unsigned i = 0; i < v.count; i++) {
		CUkernel k = slab__get(&kernels);

		k->spin = name__spins(v.name[i]);
		k->name = v.name[i];
		k->library = l;
		k->sizes = v.sizes[i];
		store(&k->magic, M_KERNEL);
		l->kernels[i] = k;
	}
	names__free(&v);
	store(&l->magic, M_LIBRARY);
	*out = l;
	return CU_OK;
}

API(cuLibraryLoadData, CUlibrary *l, const void *image, void *a, void **b, unsigned c, void *d,
    void **e, unsigned f)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	ENTER();
	RET(load_library(l, image));
}

API(cuLibraryLoadFromFile, CUlibrary *l, const char *path, void *a, void **b, unsigned c, void *d,
    void **e, unsigned f)
{
	char *text;
	CUresult r;

	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	ENTER();
	text = path ? read_file(path) : NULL;
	if (!text)
		RET(CU_FILE_NOT_FOUND);
	r = load_library(l, text);
	free(text);
	RET(r);
}

API(cuLibraryUnload, CUlibrary l)
{
	ENTER();
	if (!l || l->magic != M_LIBRARY)
		RET(CU_INVALID_HANDLE);
	pthread_mutex_lock(&lock);
	while (l->modules) {
		CUmodule m = l->modules;

		l->modules = m->next;
		module__free(m);
	}
	for (unsigned i = l->count; i-- > 0;) {
		store(&l->kernels[i]->magic, M_DEAD);
		free(l->kernels[i]->name);
		slab__put(&kernels, l->kernels[i]);
	}
	store(&l->magic, M_DEAD);
	free(l->kernels);
	free(l->image);
	slab__put(&libraries, l);
	pthread_mutex_unlock(&lock);
	RET(CU_OK);
}

API(cuLibraryGetKernel, CUkernel *k, CUlibrary l, const char *name)
{
	ENTER();
	if (!l || l->magic != M_LIBRARY)
		RET(CU_INVALID_HANDLE);
	for (unsigned i = 0; i < l->count; i++)
		if (name__is(l->kernels[i]->name, name)) {
			*k = l->kernels[i];
			RET(CU_OK);
		}
	RET(CU_NOT_FOUND);
}

API(cuLibraryGetKernelCount, unsigned *n, CUlibrary l)
{
	ENTER();
	if (!l || l->magic != M_LIBRARY)
		RET(CU_INVALID_HANDLE);
	*n = l->count;
	RET(CU_OK);
}

API(cuLibraryEnumerateKernels, CUkernel *k, unsigned n, CUlibrary l)
{
	ENTER();
	if (!l || l->magic != M_LIBRARY)
		RET(CU_INVALID_HANDLE);
	for (unsigned i = 0; i < n && i < l->count; i++)
		k[i] = l->kernels[i];
	RET(CU_OK);
}

/* The library's module in that context, made at the first demand. */
static CUmodule library__module(CUlibrary l, CUcontext c)
{
	CUmodule m;

	pthread_mutex_lock(&lock);
	for (m = l->modules; m; m = m->next)
		if (m->ctx == c && m->generation == c->generation)
			break;
	if (!m) {
		m = module__new(c, l->image);
		m->next = l->modules;
		l->modules = m;
	}
	pthread_mutex_unlock(&lock);
	return m;
}

API(cuLibraryGetModule, CUmodule *m, CUlibrary l)
{
	CUcontext c;
	CUresult r;

	ENTER();
	if (!l || l->magic != M_LIBRARY)
		RET(CU_INVALID_HANDLE);
	r = ctx__current(thread__self(), &c);
	if (!r)
		*m = library__module(l, c);
	RET(r);
}

API(cuKernelGetFunction, CUfunction *f, CUkernel k)
{
	CUcontext c;
	CUresult r;
	CUmodule m;

	ENTER();
	if (!k || k->magic != M_KERNEL)
		RET(CU_INVALID_HANDLE);
	r = ctx__current(thread__self(), &c);
	if (r)
		RET(r);
	m = library__module(k->library, c);
	for (unsigned i = 0; i < m->count; i++)
		if (k->library->kernels[i] == k)
			*f = m->functions[i];
	RET(CU_OK);
}

API(cuKernelGetName, const char **name, CUkernel k)
{
	ENTER();
	if (k && k->magic == M_FUNC)
		sim__log("Cannot pass CUfunction handle to this API");
	if (!k || k->magic != M_KERNEL)
		RET(CU_INVALID_HANDLE);
	*name = k->name;
	RET(CU_OK);
}

API(cuKernelGetAttribute, int *v, int attribute, CUkernel k, CUdevice device)
{
	ENTER();
	if (!k || k->magic != M_KERNEL)
		RET(CU_INVALID_HANDLE);
	if (device < 0 || device >= dev.count)
		RET(CU_INVALID_DEVICE);
	RET(sizes__attribute(&k->sizes, attribute, v));
}

API(cuKernelGetLibrary, CUlibrary *l, CUkernel k)
{
	ENTER();
	if (!k || k->magic != M_KERNEL)
		RET(CU_INVALID_HANDLE);
	*l = k->library;
	RET(CU_OK);
}
