// SPDX-License-Identifier: Apache-2.0
//
// A libcuda.so.1 for machines without an NVIDIA driver, so that cuDNN can make plans there.
//
// cuDNN's runtime-compiled engines link the driver and, while they make a plan, load the code that they compiled and
// ask the kernels for attributes. Here every load succeeds with a handle that means nothing, attributes are 0 and the
// tensor-map encoders fill zeros. There is no device: cuInit says so, and whatever would run something fails.
//
// It is loaded only in the planner's child process. The functions are those that cuDNN 9.28
// links (nm) or looks up (it prints the names that it misses). Source: CUDA Driver API 13.0.

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#pragma GCC visibility push(default)  // all of it stands in for the driver's functions

#define SUCCESS 0
#define NO_DEVICE 100
#define NOT_SUPPORTED 801
#define TENSOR_MAP_BYTES 128
#define SOME_HANDLE ((void *)1)

typedef int result;

static result gives_handle(void **handle) {
  *handle = SOME_HANDLE;
  return SUCCESS;
}

static result gives_zero(int *value) {
  *value = 0;
  return SUCCESS;
}

static result gives_empty_map(void *map) {
  memset(map, 0, TENSOR_MAP_BYTES);
  return SUCCESS;
}

static result gives_name(const char **name) {
  *name = "no driver on this machine";
  return SUCCESS;
}

// The first parameter of each is where the answer goes; the others are of no interest.
result cuModuleLoadData(void **module) { return gives_handle(module); }
result cuModuleGetFunction(void **function) { return gives_handle(function); }
result cuLibraryLoadData(void **library) { return gives_handle(library); }
result cuLibraryGetKernel(void **kernel) { return gives_handle(kernel); }
result cuKernelGetFunction(void **function) { return gives_handle(function); }
result cuKernelGetAttribute(int *value) { return gives_zero(value); }
result cuFuncGetAttribute(int *value) { return gives_zero(value); }
result cuDeviceGetAttribute(int *value) { return gives_zero(value); }
result cuDeviceGetCount(int *count) { return gives_zero(count); }
result cuTensorMapEncodeTiled(void *map) { return gives_empty_map(map); }
result cuTensorMapEncodeIm2col(void *map) { return gives_empty_map(map); }
result cuGetErrorString(result error, const char **text) {
  (void)error;
  return gives_name(text);
}
result cuGetErrorName(result error, const char **text) {
  (void)error;
  return gives_name(text);
}

result cuDriverGetVersion(int *version) {
  *version = 13000;
  return SUCCESS;
}

result cuInit(unsigned flags) {
  (void)flags;
  return NO_DEVICE;
}
result cuModuleUnload(void) { return SUCCESS; }
result cuLibraryUnload(void) { return SUCCESS; }
result cuKernelSetAttribute(void) { return SUCCESS; }
result cuFuncSetAttribute(void) { return SUCCESS; }

result cuDeviceGet(void) { return NOT_SUPPORTED; }
result cuCtxGetCurrent(void) { return NOT_SUPPORTED; }
result cuCtxGetLimit(void) { return NOT_SUPPORTED; }
result cuCtxPopCurrent(void) { return NOT_SUPPORTED; }
result cuCtxPushCurrent(void) { return NOT_SUPPORTED; }
result cuStreamGetCtx(void) { return NOT_SUPPORTED; }
result cuLinkCreate(void) { return NOT_SUPPORTED; }
result cuLinkAddData(void) { return NOT_SUPPORTED; }
result cuLinkComplete(void) { return NOT_SUPPORTED; }
result cuLinkDestroy(void) { return NOT_SUPPORTED; }
result cuLaunchKernel(void) { return NOT_SUPPORTED; }
result cuLaunchKernelEx(void) { return NOT_SUPPORTED; }
result cuLaunchCooperativeKernel(void) { return NOT_SUPPORTED; }
result cuLibraryLoadFromFile(void) { return NOT_SUPPORTED; }
result cuOccupancyMaxPotentialClusterSize(void) { return NOT_SUPPORTED; }

// Runs `work` in a thread whose stack guard is the same in every process, and waits for it; 0 when that could be done.
//
// cuDNN writes structures into plans of which it set only a part; the rest is what lay on the stack before, guards
// too. A thread takes its guard from the one that starts it, so ours is changed for just the call that does. The
// guard protects against what a stranger sends; this process sees models of which an earlier stage made graphs.
// Source: glibc, THREAD_COPY_STACK_GUARD; x86-64 ABI supplement, the guard lies at %fs:0x28.
#define FIXED_GUARD 0x6e6e6465706c6f00u

static void *called(void *work) {
  ((void (*)(void))work)();
  return NULL;
}

int nnd_with_fixed_guard(void (*work)(void)) {
#ifdef __x86_64__
  pthread_t thread;
  uintptr_t own, fixed = FIXED_GUARD;
  __asm__ volatile("mov %%fs:0x28, %0" : "=r"(own));
  __asm__ volatile("mov %0, %%fs:0x28" : : "r"(fixed));
  int failed = pthread_create(&thread, NULL, called, (void *)work);
  __asm__ volatile("mov %0, %%fs:0x28" : : "r"(own));
  return failed ? failed : pthread_join(thread, NULL);
#else
  (void)work;
  return -1;
#endif
}
