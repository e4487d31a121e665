// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-01: every launch entry point is reached by several routes, once each. The grid width tells the
 * launches apart (101, 102, ...). Prints one line a launch and the total. Also asks for names that
 * do not exist and for versions that are too old, and prints the answers. */
#include "gpuapp.h"
#include <dlfcn.h>

typedef CUresult (*KernelFn)(CU_LAUNCH_ARGS, void **, void **);
typedef CUresult (*CoopFn)(CU_LAUNCH_ARGS, void **);
typedef CUresult (*ExFn)(const CUlaunchConfig *, CUfunction, void **, void **);
typedef CUresult (*GraphFn)(CUgraphExec, CUstream);

static CUfunction f;
static CUgraphExec exec;
static CUstream stream;
static uint64_t length = 20000;
static unsigned id = 100;
static int total;

NOINLINE static void use(const char *route, const char *entry, void *p)
{
    void *params[] = { &length };
    CUresult r;
    id++;
    if (!p) {
        printf("%u %s %s: no address\n", id, route, entry);
        return;
    }
    if (!strncmp(entry, "cuLaunchKernelEx", 16)) {
        CUlaunchConfig c = { id, 1, 1, 32, 1, 1, 0, stream, 0, 0 };
        r = ((ExFn)p)(&c, f, params, 0);
    } else if (!strncmp(entry, "cuLaunchCoop", 12))
        r = ((CoopFn)p)(f, id, 1, 1, 32, 1, 1, 0, stream, params);
    else if (!strncmp(entry, "cuGraphLaunch", 13))
        r = ((GraphFn)p)(exec, stream);
    else
        r = ((KernelFn)p)(f, id, 1, 1, 32, 1, 1, 0, stream, params, 0);
    printf("%u %s %s: %d\n", id, route, entry, r);
    total += r == 0;
}

static void *by_address(const char *name, int version, unsigned long long flags)
{
    void *p = 0;
    cuGetProcAddress(name, &p, version, flags);
    return p;
}

static void *by_address_v2(const char *name, int version, unsigned long long flags)
{
    void *p = 0;
    cuGetProcAddress_v2(name, &p, version, flags, 0); /* no status wanted */
    return p;
}

int main(void)
{
    static const struct { const char *name; void *linked; int version; } e[] = {
        { "cuLaunchKernel", (void *)cuLaunchKernel, 4000 },
        { "cuLaunchKernelEx", (void *)cuLaunchKernelEx, 11060 },
        { "cuLaunchCooperativeKernel", (void *)cuLaunchCooperativeKernel, 9000 },
        { "cuGraphLaunch", (void *)cuGraphLaunch, 10000 } };
    static const struct { const char *name; void *linked; } z[] = {
        { "cuLaunchKernel_ptsz", (void *)cuLaunchKernel_ptsz },
        { "cuLaunchKernelEx_ptsz", (void *)cuLaunchKernelEx_ptsz },
        { "cuLaunchCooperativeKernel_ptsz", (void *)cuLaunchCooperativeKernel_ptsz },
        { "cuGraphLaunch_ptsz", (void *)cuGraphLaunch_ptsz } };
    void *lib, *p;
    int status;
    CUgraph g;
    CUgraphNode n;
    void *params[] = { &length };

    gpu_start(0);
    f = load_kernel("spin_a");
    MUST(cuStreamCreate(&stream, CU_STREAM_NONBLOCKING));
    CUkernelNodeParams np = { .func = load_kernel("spin_c"), .gridX = 1, .gridY = 1, .gridZ = 1,
                              .blockX = 32, .blockY = 1, .blockZ = 1, .params = params };
    MUST(cuGraphCreate(&g, 0));
    MUST(cuGraphAddKernelNode_v2(&n, g, 0, 0, &np));
    MUST(cuGraphInstantiateWithFlags(&exec, g, 0));
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    for (unsigned i = 0; i < 4; i++) {
        use("linked", e[i].name, e[i].linked);
        use("linked", z[i].name, z[i].linked);
        use("dlsym", e[i].name, dlsym(lib, e[i].name));
        use("dlsym", z[i].name, dlsym(lib, z[i].name));
        use("address", e[i].name, by_address(e[i].name, e[i].version, 0));
        use("address", e[i].name, by_address(e[i].name, 12000, 0));
        use("address per-thread", e[i].name, by_address(e[i].name, 12000, 2));
        use("address_v2", e[i].name, by_address_v2(e[i].name, 12000, 0));
        use("address_v2 per-thread", e[i].name, by_address_v2(e[i].name, 12000, 2));
    }
    /* the address function found through itself */
    typedef CUresult (*AddrFn)(const char *, void **, int, unsigned long long, int *);
    AddrFn again = (AddrFn)by_address_v2("cuGetProcAddress", 12000, 0);
    p = 0;
    if (again)
        again("cuLaunchKernel", &p, 12000, 0, &status);
    use("address of address", "cuLaunchKernel", p);
    CU(cuStreamSynchronize(stream));
    p = (void *)1;
    int r1 = cuGetProcAddress("cuNoSuchCall", &p, 12000, 0);
    printf("unknown name: %d %s\n", r1, p ? "address" : "null");
    p = (void *)1, status = -1;
    r1 = cuGetProcAddress_v2("cuLaunchKernelEx", &p, 10000, 0, &status);
    printf("too old a version: %d %s status %d\n", r1, p ? "address" : "null", status);
    printf("successful launches: %d\n", total);
    return failures != 0;
}
