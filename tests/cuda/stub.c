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
static int most;  /* of them were ever in use */

void stub_set(int d, int v, size_t t) { devices = d; version = v; total = t; code = 0; launches = 0; }
void stub_fail(const char *name, int with) { strncpy(failing, name, 63); code = with; }
int stub_launches(void) { return launches; }
size_t stub_held(void) { return held; }
size_t stub_blocks(void) { return blocks; }
void stub_last(unsigned *g, unsigned *b, size_t *p) { *g = grid; *b = block; *p = packed; }

/* What a kernel does: a function of Python, told the kernel's name, its grid and its arguments. */
typedef int (*Run)(const char *, unsigned, unsigned, const char *, size_t);
static Run run;
void stub_run(Run with) { run = with; }
typedef struct { char name[64]; } Function;

/* Graphs: chains of kernels. */
typedef struct { void *function; unsigned gx, gy, gz, bx, by, bz, shared; void *params; void **extra;
                 void *kernel, *context; } Params;
typedef struct { int count; Params *nodes; } Graph;
static int graphs, patched, replays, waits;
int stub_graphs(void) { return graphs; }
int stub_patched(void) { return patched; }
int stub_replays(void) { return replays; }
int stub_waits(void) { return waits; }

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
static int lost;
void stub_lose(int code) { lost = code; }  /* another library takes the thread's context */
int cuCtxSetCurrent(void *c) { lost = 0; return 0; }
int cuStreamCreate(void **s, unsigned f) { *s = &launches; return 0; }
/* Copies from the host may come as late as they may: when something after them is done. */
typedef struct { void *to; const void *from; size_t n; } Copy;
static Copy copies[1 << 10];
static int pending, late;
void stub_late(int yes) { late = yes; }
static void catch_up(void) {
    for (int k = 0; k < pending; k++) memcpy(copies[k].to, copies[k].from, copies[k].n);
    pending = 0;
}
static int syncs;
int stub_syncs(void) { return syncs; }
int cuStreamSynchronize(void *s) { CALL("cuStreamSynchronize"); syncs++; catch_up(); return 0; }
int cuStreamQuery(void *s) { return 0; }
int cuEventQuery(void *e) { return pending ? 600 : 0; }
int cuEventSynchronize(void *e) { CALL("cuEventSynchronize"); catch_up(); return 0; }
static size_t locked;
size_t stub_locked(void) { return locked; }
int cuMemHostAlloc(void **p, size_t n, unsigned f) {
    CALL("cuMemHostAlloc"); *p = malloc(n); locked++; return 0;
}
int cuMemFreeHost(void *p) { free(p); locked--; return 0; }
int cuModuleLoadData(void **m, const char *image) {
    CALL("cuModuleLoadData"); *m = (void *)image;
    if (!strncmp(image, "\177ELF", 4)) CALL("machine code");
    return strncmp(image, "\177ELF", 4) && strncmp(image, "//", 2) ? 200 : 0;
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
    Function *made = calloc(1, sizeof(Function)); strncpy(made->name, name, 63); *f = made;
    return name[0] == 'k' ? 0 : 500;
}
static int threads = 1024;
void stub_threads(int n) { threads = n; }
int cuFuncGetAttribute(int *to, int which, void *f) { *to = threads; return 0; }
static int call(void *f, unsigned gx, unsigned bx, void **extra) {
    if (!gx || gx > 0x7fffffff || !bx || bx > 1024) return 1;
    /* CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END */
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return 1;
    if (*(size_t *)extra[3] > 32764) return 1;
    catch_up(); launches++; grid = gx; block = bx; packed = *(size_t *)extra[3];
    return run ? run(((Function *)f)->name, gx, bx, extra[1], packed) : 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
    CALL("cuLaunchKernel");
    if (lost) return lost;
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || params) return 1;
    if (stream != &launches) return 400;
    return call(f, gx, bx, extra);
}
/* Shards of several devices allocate at once: who is called has let go of Python's lock. */
static int taken;
static void lock(void) { while (__sync_lock_test_and_set(&taken, 1)) ; }
static void unlock(void) { __sync_lock_release(&taken); }
static int allocated(void **p, size_t n) {
    if (held + n > total) return 2;
    for (int k = 0; k < 1 << 16; k++) if (!known[k].at) {
        known[k].at = *p = aligned_alloc(256, (n + 255) / 256 * 256); known[k].size = n;
        held += n; blocks++; if (k >= most) most = k + 1;
        return 0;
    }
    return 2;
}
static int freed(void *p) {
    for (int k = 0; k < most; k++) if (known[k].at == p) {
        held -= known[k].size; blocks--; known[k].at = 0; free(p); return 0;
    }
    return 1;
}
/* How many bytes from an address on are of an array that lives. */
size_t stub_room(char *p) {
    size_t room = 0;
    lock();
    for (int k = 0; k < most && !room; k++) {
        char *at = known[k].at;
        if (at && p >= at && p < at + known[k].size) room = at + known[k].size - p;
    }
    unlock();
    return room;
}
int cuMemAllocAsync(void **p, size_t n, void *s) {
    CALL("cuMemAllocAsync");
    if (lost) return lost;
    lock(); int found = allocated(p, n); unlock();
    return found;
}
int cuMemFreeAsync(void *p, void *s) { catch_up(); lock(); int found = freed(p); unlock(); return found; }
int cuMemsetD8Async(void *to, unsigned char x, size_t n, void *s) { memset(to, x, n); return 0; }
int cuMemsetD16Async(uint16_t *to, unsigned short x, size_t n, void *s) { while (n--) *to++ = x; return 0; }
int cuMemsetD32Async(uint32_t *to, unsigned x, size_t n, void *s) { while (n--) *to++ = x; return 0; }
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, void *s) {
    if (pending == 1 << 10) catch_up();
    copies[pending++] = (Copy){to, from, n};
    if (!late) catch_up();
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, void *s) {
    CALL("cuMemcpyDtoHAsync_v2"); catch_up(); memcpy(to, from, n); return 0;
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, void *s) { catch_up(); memcpy(to, from, n); return 0; }
static int peers;
int stub_peers(void) { return peers; }
int cuMemcpyPeerAsync(void *to, void *tc, const void *from, void *fc, size_t n, void *s) {
    catch_up(); peers++; memcpy(to, from, n); return 0;
}
int cuDeviceCanAccessPeer(int *can, int a, int b) { *can = a != b; return 0; }
int cuMemPoolSetAccess(void *pool, const int *who, size_t n) { return who[0] == 1 && who[2] == 3 ? 0 : 1; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = total - held; *t = total; return 0; }
int cuDeviceGetDefaultMemPool(void **p, int d) { *p = &held; return 0; }
int cuMemPoolSetAttribute(void *p, int which, uint64_t *v) { return 0; }
int cuGetErrorString(int e, const char **to) { *to = e == 2 ? "out of memory" : "an error"; return 0; }
int cuStreamWaitEvent(void *s, void *e, unsigned f) { waits++; return 0; }
int cuEventCreate(void **e, unsigned f) { *e = &waits; return 0; }
int cuEventRecord(void *e, void *s) { return 0; }
int cuEventDestroy_v2(void *e) { return 0; }
int cuPointerGetAttribute(int *to, int which, void *p) { *to = 0; return 0; }
int cuGraphCreate(void **g, unsigned f) { CALL("cuGraphCreate"); *g = calloc(1, sizeof(Graph)); graphs++; return 0; }
static void keep(Params *to, const Params *p) {  /* the driver copies arguments at once */
    size_t n = *(size_t *)p->extra[3];
    *to = *p; to->extra = malloc(5 * sizeof(void *)); memcpy(to->extra, p->extra, 5 * sizeof(void *));
    to->extra[1] = malloc(n); memcpy(to->extra[1], p->extra[1], n);
    to->extra[3] = malloc(sizeof n); *(size_t *)to->extra[3] = n;
}
int cuGraphAddKernelNode_v2(void **node, Graph *g, void **after, size_t n, const Params *p) {
    g->nodes = realloc(g->nodes, (g->count + 1) * sizeof(Params));
    keep(&g->nodes[g->count], p);
    *node = (void *)(intptr_t)(++g->count);
    return 0;
}
int cuGraphInstantiateWithFlags(void **ready, Graph *g, uint64_t f) { *ready = g; return 0; }
int cuGraphExecKernelNodeSetParams_v2(Graph *g, void *node, const Params *p) {
    keep(&g->nodes[(intptr_t)node - 1], p); patched++; return 0;
}
int cuGraphLaunch(Graph *g, void *s) {
    replays++;
    for (int k = 0; k < g->count; k++) {
        Params *p = &g->nodes[k];
        int code = call(p->function, p->gx, p->bx, p->extra);
        if (code) return code;
    }
    return 0;
}
int cuGraphExecDestroy(void *g) { graphs--; return 0; }
int cuGraphDestroy(void *g) { return 0; }
