/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 whose device is the host, so that the real bindings can be driven without a GPU.
 * Its one kernel, "scale", multiplies n floats: parameters (float *values, float factor, int n).
 * Streams run at once, but for captured ones, whose launches wait for the graph.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int status;
enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600 };

static uintptr_t current;
static int capturing, max_shared;
static struct {
  float *values;
  float factor;
  int n;
} recorded;

status cuInit(unsigned flags) { return getenv("NO_DEVICE") ? 100 : flags ? INVALID : OK; }
status cuDriverGetVersion(int *version) {
  *version = 13000;
  return OK;
}
status cuDeviceGetCount(int *count) {
  *count = 1;
  return OK;
}
status cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return OK;
}
status cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, size, "Fake %d", device);
  return OK;
}
status cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = 1000000;
  return OK;
}
status cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 115 ? 1 : attribute == 16 ? 132 : 0;
  return OK;
}
status cuDevicePrimaryCtxRetain(uintptr_t *context, int device) {
  *context = 77;
  return OK;
}
status cuCtxSetCurrent(uintptr_t context) {
  current = context;
  return OK;
}
status cuCtxGetCurrent(uintptr_t *context) {
  *context = current;
  return OK;
}
status cuDeviceGetDefaultMemPool(uintptr_t *pool, int device) {
  *pool = 5;
  return OK;
}
status cuMemPoolSetAttribute(uintptr_t pool, int attribute, void *value) {
  return attribute == 4 && *(uint64_t *)value == UINT64_MAX ? OK : INVALID;
}
status cuStreamCreate(uintptr_t *stream, unsigned flags) {
  *stream = 8;
  return flags == 1 ? OK : INVALID;
}
status cuStreamDestroy_v2(uintptr_t stream) { return stream ? OK : INVALID; }
status cuStreamSynchronize(uintptr_t stream) { return stream ? OK : INVALID; }
status cuMemAllocAsync(uintptr_t *pointer, size_t bytes, uintptr_t stream) {
  if (!current) return NO_CONTEXT;
  if (bytes > 1000000) return OUT_OF_MEMORY;
  return (*pointer = (uintptr_t)malloc(bytes)) ? OK : OUT_OF_MEMORY;
}
status cuMemFreeAsync(uintptr_t pointer, uintptr_t stream) {
  free((void *)pointer);
  return OK;
}
status cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  *pointer = malloc(bytes);
  return OK;
}
status cuMemFreeHost(void *pointer) {
  free(pointer);
  return OK;
}
status cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t n, uintptr_t stream) {
  memcpy((void *)to, from, n);
  return OK;
}
status cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t n, uintptr_t stream) {
  memcpy(to, (void *)from, n);
  return OK;
}
status cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t n, uintptr_t stream) {
  memcpy((void *)to, (void *)from, n);
  return OK;
}
status cuEventCreate(uintptr_t *event, unsigned flags) {
  *event = 9;
  return flags == 2 ? OK : INVALID;
}
status cuEventRecord(uintptr_t event, uintptr_t stream) { return OK; }
status cuEventQuery(uintptr_t event) {
  static int asked;
  return asked++ ? OK : NOT_READY;
}
status cuEventSynchronize(uintptr_t event) { return OK; }
status cuEventDestroy_v2(uintptr_t event) { return OK; }
status cuModuleLoadData(uintptr_t *module, const void *image) {
  *module = 4;
  return memcmp(image, "CUBIN", 5) ? 200 : OK;
}
status cuModuleUnload(uintptr_t module) { return OK; }
status cuModuleGetFunction(uintptr_t *function, uintptr_t module, const char *name) {
  *function = 6;
  return strcmp(name, "scale") ? NOT_FOUND : OK;
}
status cuFuncSetAttribute(uintptr_t function, int attribute, int value) {
  max_shared = value;
  return attribute == 8 ? OK : INVALID;
}
static void scale(float *values, float factor, int n) {
  for (int i = 0; i < n; i++) values[i] *= factor;
}
status cuLaunchKernel(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, uintptr_t stream, void **params, void **extra) {
  float *values = *(float **)params[0];
  float factor = *(float *)params[1];
  int n = *(int *)params[2];
  if (extra || gx != 2 || gy != 3 || gz != 4 || bx != 32 || by != 1 || bz != 1 || (int)shared != max_shared)
    return INVALID;
  if (capturing) {
    recorded.values = values;
    recorded.factor = factor;
    recorded.n = n;
    return OK;
  }
  scale(values, factor, n);
  return OK;
}
status cuStreamBeginCapture_v2(uintptr_t stream, int mode) {
  capturing = 1;
  return mode == 1 ? OK : INVALID;
}
status cuStreamEndCapture(uintptr_t stream, uintptr_t *graph) {
  capturing = 0;
  *graph = 3;
  return OK;
}
status cuGraphInstantiateWithFlags(uintptr_t *exec, uintptr_t graph, unsigned long long flags) {
  *exec = 2;
  return OK;
}
status cuGraphDestroy(uintptr_t graph) { return OK; }
status cuGraphLaunch(uintptr_t exec, uintptr_t stream) {
  scale(recorded.values, recorded.factor, recorded.n);
  return OK;
}
status cuGraphExecDestroy(uintptr_t exec) { return OK; }
status cuGetErrorString(int error, const char **words) {
  *words = error == 2 ? "out of memory" : "said no";
  return OK;
}

status cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, void *found) {
  char versioned[128];
  for (int v = 3; v > 1; v--) {
    snprintf(versioned, sizeof versioned, "%s_v%d", name, v);
    if ((*address = dlsym(RTLD_DEFAULT, versioned))) return OK;
  }
  if (!strcmp(name, "cuGraphInstantiate")) name = "cuGraphInstantiateWithFlags";
  *address = dlsym(RTLD_DEFAULT, name);
  return *address ? OK : NOT_FOUND;
}
