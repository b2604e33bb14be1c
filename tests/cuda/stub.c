/* A driver of no GPU: memory is the host's, kernels are counted and do nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int devices = 1, version = 12040, launches, opened;
static size_t total = 1 << 30, held, blocks;
static unsigned grid, block;
static size_t packed;
static char failing[64];
static int code;

typedef struct { void *at; size_t size; } Block;
static Block known[1 << 16];

void stub_set(int d, int v, size_t t) { devices = d; version = v; total = t; code = 0; launches = 0; }
void stub_fail(const char *name, int with) { strncpy(failing, name, 63); code = with; }
int stub_launches(void) { return launches; }
size_t stub_held(void) { return held; }
size_t stub_blocks(void) { return blocks; }
void stub_last(unsigned *g, unsigned *b, size_t *p) { *g = grid; *b = block; *p = packed; }

#define CALL(name) if (code && !strcmp(failing, name)) return code
int cuInit(unsigned f) { CALL("cuInit"); return devices ? 0 : 100; }
int cuDriverGetVersion(int *v) { *v = version; return 0; }
int cuDeviceGetCount(int *n) { *n = devices; return 0; }
int cuDeviceGet(int *d, int k) { *d = k; return k < devices ? 0 : 101; }
int cuDeviceGetName(char *to, int n, int d) { snprintf(to, n, "stub %d", d); return 0; }
int cuDeviceGetAttribute(int *to, int which, int d) {
    *to = which == 75 ? 9 : which == 76 ? 0 : 132; return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = &devices; opened++; return 0; }
int cuCtxSetCurrent(void *c) { return 0; }
int cuStreamCreate(void **s, unsigned f) { *s = &launches; return 0; }
int cuStreamSynchronize(void *s) { CALL("cuStreamSynchronize"); return 0; }
int cuStreamQuery(void *s) { return 0; }
int cuModuleLoadData(void **m, const char *image) {
    CALL("cuModuleLoadData"); *m = (void *)image;
    return strncmp(image, "\177ELF", 4) && strncmp(image, "//", 2) ? 200 : 0;
}
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = m; return name[0] == 'k' ? 0 : 500; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
    CALL("cuLaunchKernel");
    if (!gx || !bx || bx > 1024) return 1;
    launches++; grid = gx; block = bx; packed = *(size_t *)extra[3];
    return 0;
}
int cuMemAllocAsync(void **p, size_t n, void *s) {
    CALL("cuMemAllocAsync");
    if (held + n > total) return 2;
    for (int k = 0; k < 1 << 16; k++) if (!known[k].at) {
        known[k].at = *p = aligned_alloc(256, (n + 255) / 256 * 256); known[k].size = n;
        held += n; blocks++;
        return 0;
    }
    return 2;
}
int cuMemFreeAsync(void *p, void *s) {
    for (int k = 0; k < 1 << 16; k++) if (known[k].at == p) {
        held -= known[k].size; blocks--; known[k].at = 0; free(p); return 0;
    }
    return 1;
}
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, void *s) { memcpy(to, from, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, void *s) {
    CALL("cuMemcpyDtoHAsync_v2"); memcpy(to, from, n); return 0;
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, void *s) { memcpy(to, from, n); return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = total - held; *t = total; return 0; }
int cuDeviceGetDefaultMemPool(void **p, int d) { *p = &held; return 0; }
int cuMemPoolSetAttribute(void *p, int which, uint64_t *v) { return 0; }
int cuGetErrorString(int e, const char **to) { *to = e == 2 ? "out of memory" : "an error"; return 0; }
