// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* G-12, O-03, S-09: kernels with names that are alike, empty, absent, very long or full of
 * odd characters.
 * Only with the stand-in (its module text allows any name). usage: kernel_names [COUNT]
 * Launches each kernel COUNT times (default 50) and prints how many kernels there are. */
#include "gpuapp.h"

static char *text, *list[64];
static int n;

static void add(const char *escaped, const char *plain)
{
    list[n++] = strdup(plain);
    text = realloc(text, strlen(text) + strlen(escaped) + 2);
    strcat(strcat(text, escaped), "\n");
}

static char *long_name(size_t length)
{
    /* _Z4hugeI1AIiiii...EEvT_ : well formed and long */
    char *s = malloc(length + 64);
    strcpy(s, "_Z4hugeI1AI");
    memset(s + strlen("_Z4hugeI1AI"), 'i', length);
    strcpy(s + strlen("_Z4hugeI1AI") + length, "EEvT_");
    return s;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 50;
    CUmodule m;
    CUstream s;
    text = strdup("STANDIN\n");
    /* equal short names, different full names */
    add("_Z6KernelI4TileILi128ELi64EEEvT_", "_Z6KernelI4TileILi128ELi64EEEvT_");
    add("_Z6KernelI4TileILi64ELi128EEEvT_", "_Z6KernelI4TileILi64ELi128EEEvT_");
    /* differ at the very end only */
    add("triton_poi_fused_add_mul_relu_17", "triton_poi_fused_add_mul_relu_17");
    add("triton_poi_fused_add_mul_relu_18", "triton_poi_fused_add_mul_relu_18");
    /* C and C++ names of one source name */
    add("scale", "scale");
    add("_Z5scalePff", "_Z5scalePff");
    /* odd characters */
    add("semi;colon 12", "semi;colon 12");
    add("line%0Abreak", "line\nbreak");
    add("say%20%22hi%22 \\ end", "say \"hi\" \\ end");
    add("</script>", "</script>");
    add("%1B[31mred", "\x1b[31mred");
    add("", "");
    add("%NULL", "%NULL");
    char *a = long_name(4096), *b = long_name(65536);
    add(a, a);
    add(b, b);
    gpu_start(0);
    MUST(cuModuleLoadData(&m, text));
    MUST(cuStreamCreate(&s, 0));
    for (int k = 0; k < n; k++) {
        CUfunction f;
        MUST(cuModuleGetFunction(&f, m, list[k]));
        for (int i = 0; i < count; i++)
            CU(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, 0, 0));
        CU(cuStreamSynchronize(s));
    }
    printf("%d kernels, %d launches each, %d failures\n", n, count, failures);
    return failures != 0;
}
