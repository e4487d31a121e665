// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gpu_timing/library/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu_timing/library/libc.h"
#include "gpu_timing/library/maps.h"

struct search {
	struct driver *driver;
	uint64_t address;
	const char *path;	/* NULL: not found */
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;
	struct driver *d = s->driver;
	bool ours = false;

	(void)size;
	d->nr_segments = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		struct driver_segment *seg = &d->segments[d->nr_segments];

		if (ph->p_type != PT_LOAD || !ph->p_memsz)
			continue;
		if (d->nr_segments == DRIVER_SEGMENTS)
			return 0;
		seg->start = info->dlpi_addr + ph->p_vaddr;
		seg->end = seg->start + ph->p_memsz;
		seg->flags = ph->p_flags;
		ours |= s->address >= seg->start && s->address < seg->end;
		d->nr_segments++;
	}
	if (!ours)
		return 0;
	d->base = info->dlpi_addr;
	s->path = info->dlpi_name;
	return 1;
}

static bool find_object(struct driver *d, uint64_t address, const char **path)
{
	struct search s = { .driver = d, .address = address };

	if (!dl_iterate_phdr(look_at_object, &s) || !s.path) {
		d->nr_segments = 0;
		return false;
	}
	*path = s.path;
	return true;
}

struct count {
	uint64_t dev, inode;
	uint64_t code;		/* an address in it */
	bool several;
};

static bool count_drivers(const struct map *map, void *ctx)
{
	static const char soname[] = "libcuda.so";
	const char *slash = strrchr(map->name, '/');
	struct count *c = ctx;

	if (!slash || strncmp(slash + 1, soname, sizeof(soname) - 1) || !map->inode ||
	    !(map->prot & PROT_EXEC))
		return true;
	if (c->inode && (c->inode != map->inode || c->dev != map->dev))
		c->several = true;
	c->dev = map->dev;
	c->inode = map->inode;
	c->code = map->start;
	return !c->several;
}

bool driver__holds(const struct driver *d, uint64_t address, uint64_t len, uint32_t flags)
{
	for (uint32_t i = 0; i < d->nr_segments; i++) {
		const struct driver_segment *seg = &d->segments[i];

		if (address >= seg->start && address < seg->end && len <= seg->end - address &&
		    (seg->flags & flags) == flags)
			return true;
	}
	return false;
}

const void *driver__entry(const struct driver *d, const char *name, uint64_t *size)
{
	void *address = dlsym(d->handle, name);
	const ElfW(Sym) *sym;
	Dl_info info;

	if (!address || !dladdr1(address, &info, (void **)&sym, RTLD_DL_SYMENT) || !sym ||
	    d->base + sym->st_value != (uint64_t)address ||
	    !driver__holds(d, (uint64_t)address, sym->st_size, PF_R | PF_X))
		return NULL;
	*size = sym->st_size;
	return address;
}

/* A call of the very driver; NULL where it has none. */
static void *call(const struct driver *d, const char *name)
{
	uint64_t size;

	return (void *)driver__entry(d, name, &size);
}

static bool take_calls(struct driver *d)
{
	d->version = call(d, "cuDriverGetVersion");
	d->device_name = call(d, "cuDeviceGetName");
	d->ctx_get_current = call(d, "cuCtxGetCurrent");
	d->ctx_get_device = call(d, "cuCtxGetDevice");
	d->primary_state = call(d, "cuDevicePrimaryCtxGetState");
	d->ctx_get_id = call(d, "cuCtxGetId");
	d->from_green = call(d, "cuCtxFromGreenCtx");
	d->stream_get_ctx = call(d, "cuStreamGetCtx");
	d->stream_get_flags = call(d, "cuStreamGetFlags");
	d->stream_is_capturing = call(d, "cuStreamIsCapturing");
	d->exchange_mode = call(d, "cuThreadExchangeStreamCaptureMode");
	d->event_create = call(d, "cuEventCreate");
	d->event_record = call(d, "cuEventRecord");
	d->elapsed = call(d, "cuEventElapsedTime_v2");
	d->cheap_elapsed = d->elapsed != NULL;
	if (!d->elapsed)
		d->elapsed = call(d, "cuEventElapsedTime");
	d->pointer_attributes = call(d, "cuPointerGetAttributes");
	d->array_descriptor = call(d, "cuArray3DGetDescriptor_v2");
	d->func_name = call(d, "cuFuncGetName");
	d->kernel_name = call(d, "cuKernelGetName");
	d->func_attribute = call(d, "cuFuncGetAttribute");
	d->kernel_attribute = call(d, "cuKernelGetAttribute");
	d->graph_nodes = call(d, "cuGraphGetNodes");
	d->node_type = call(d, "cuGraphNodeGetType");
	d->kernel_node = call(d, "cuGraphKernelNodeGetParams_v2");
	d->child_graph = call(d, "cuGraphChildGraphNodeGetGraph");
	d->capture_info = call(d, "cuStreamGetCaptureInfo_v2");
	d->capture_info_v3 = call(d, "cuStreamGetCaptureInfo_v3");
	return d->version && d->device_name && d->ctx_get_current && d->ctx_get_device &&
	       d->primary_state && d->stream_get_ctx && d->stream_is_capturing &&
	       d->exchange_mode && d->event_create && d->event_record && d->elapsed;
}

enum channel_reason driver__find(struct driver *d, const void *caller)
{
	struct count c = { 0 };
	const char *path;
	void *known;

	if (own_maps__each(count_drivers, &c))
		return REASON_NO_DRIVER;
	if (c.several)
		return REASON_TWO_DRIVERS;
	if (d->handle)
		return REASON_NONE;
	/* The driver may have been loaded under any name, and where only it can see itself. */
	if (find_object(d, caller ? (uint64_t)caller : c.code, &path) && *path)
		d->handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!d->handle || !call(d, "cuLaunchKernel")) {
		d->handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
		known = d->handle ? dlsym(d->handle, "cuLaunchKernel") : NULL;
		if (!known || !find_object(d, (uint64_t)known, &path))
			goto none;
	}
	if (take_calls(d))
		return REASON_NONE;
	d->handle = NULL;
	return REASON_NO_CALL;
none:
	d->handle = NULL;
	return REASON_NO_DRIVER;
}
