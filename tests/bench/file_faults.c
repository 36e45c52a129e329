// SPDX-License-Identifier: Apache-2.0
// Stands between a process and the C library: its N-th call that changes or opens a file of one folder fails, or is its
// last; and every call that changed one is written to a log. Preloaded by bench_crash_points.py; nothing else uses it.
//
// What counts: open for any purpose, write, pwrite, fsync, ftruncate, fchmod, close, rename, link, unlink, mkdir, rmdir,
// of files and folders below the watched one. A copy of a descriptor (dup) is not followed; nobody writes through one.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE, KILL, FAIL, TEAR, SHORT };

#define MAX_DESCRIPTORS 4096

static char folder[PATH_MAX];
static size_t folder_length;  // 0: nothing is watched
static char watched[MAX_DESCRIPTORS];
static long calls, met, fault_at;
static int fault, fault_errno, stays;  // `stays`: every later call that may fail for this reason does
static int log_descriptor = -1;

// ---- what the process asks for

void nnd_watch(const char *path, int fault_, int errno_, long at, int stays_, int log_) {
  memset(watched, 0, sizeof watched);
  snprintf(folder, sizeof folder, "%s", path);
  calls = met = 0;
  fault = fault_, fault_errno = errno_, fault_at = at, stays = stays_, log_descriptor = log_;
  folder_length = strlen(folder);
}

void nnd_unwatch(void) { folder_length = 0; }

long nnd_calls(void) { return __atomic_load_n(&calls, __ATOMIC_SEQ_CST); }
long nnd_met(void) { return __atomic_load_n(&met, __ATOMIC_SEQ_CST); }

// ---- paths

static int is_inside(const char *path) {
  return folder_length && !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

// Writes the whole path of a name in a folder, which need not exist; returns whether it is below the watched folder.
static int inside(int at, const char *name, char *whole) {
  if (!folder_length || !name) return 0;
  char base[PATH_MAX];
  if (name[0] == '/') {
    snprintf(whole, PATH_MAX, "%s", name);
    return is_inside(whole);
  }
  if (at == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) return 0;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
  }
  if (snprintf(whole, PATH_MAX, "%s/%s", base, name) >= PATH_MAX) return 0;
  return is_inside(whole);
}

static int is_watched(int descriptor) {
  return folder_length && descriptor >= 0 && descriptor < MAX_DESCRIPTORS && watched[descriptor];
}

// ---- the fault

// Counts a call; returns what is to happen to it. Does not return where the process is to die before it.
static int next(int can_be_torn) {
  if ((fault == TEAR || fault == SHORT) && !can_be_torn) return NONE;  // of these faults, calls that write are counted
  long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (!fault || number < fault_at || (number > fault_at && !stays)) return NONE;
  if (fault == KILL) kill(getpid(), SIGKILL), pause();
  __atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST);
  if (fault == FAIL) errno = fault_errno;
  return fault;
}

#define FAILS (next(0) == FAIL)

// ---- the log: op, inode, other number, number of bytes, path, second path or bytes

static void note(char op, uint64_t inode, int64_t number, const char *path, const void *more, uint64_t num_more) {
  if (log_descriptor < 0) return;
  uint32_t path_length = (uint32_t)strlen(path);
  static char buffer[1 << 22];
  size_t length = 0;
  if (29 + path_length + num_more > sizeof buffer) abort();
#define PUT(value, size) memcpy(buffer + length, value, size), length += size
  PUT(&op, 1), PUT(&inode, 8), PUT(&number, 8), PUT(&path_length, 4), PUT(&num_more, 8);
  PUT(path, path_length), PUT(more, num_more);
#undef PUT
  if (syscall(SYS_write, log_descriptor, buffer, length) != (long)length) abort();
}

static uint64_t inode_of(int descriptor) {
  struct stat found;
  return fstat(descriptor, &found) ? 0 : found.st_ino;
}

static uint64_t inode_at(const char *path) {
  struct stat found;
  return lstat(path, &found) ? 0 : found.st_ino;
}

// ---- opening and closing

static int opened(int at, const char *name, int flags, mode_t mode) {
  char whole[PATH_MAX];
  if (!inside(at, name, whole)) return (int)syscall(SYS_openat, at, name, flags, mode);
  if (FAILS) return -1;
  int was_there = inode_at(whole) != 0;
  int descriptor = (int)syscall(SYS_openat, at, name, flags, mode);
  if (descriptor < 0 || descriptor >= MAX_DESCRIPTORS) return descriptor;
  watched[descriptor] = 1;
  if (!was_there && flags & O_CREAT) note('c', inode_of(descriptor), 0, whole, "", 0);
  if (was_there) note('o', inode_of(descriptor), 0, whole, "", 0);
  if (was_there && flags & O_TRUNC) note('t', inode_of(descriptor), 0, whole, "", 0);
  return descriptor;
}

#define MODE(flags)                                                                                                    \
  mode_t mode = 0;                                                                                                     \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                             \
    va_list list;                                                                                                      \
    va_start(list, flags);                                                                                             \
    mode = va_arg(list, mode_t);                                                                                       \
    va_end(list);                                                                                                      \
  }
#ifndef __O_TMPFILE
#define __O_TMPFILE 0
#endif

int open(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int openat(int at, const char *name, int flags, ...) { MODE(flags) return opened(at, name, flags, mode); }
int openat64(int at, const char *name, int flags, ...) { MODE(flags) return opened(at, name, flags, mode); }

int close(int descriptor) {
  if (!is_watched(descriptor)) return (int)syscall(SYS_close, descriptor);
  int fails = FAILS;
  int error = errno;
  watched[descriptor] = 0;
  int result = (int)syscall(SYS_close, descriptor);  // a close that fails has closed
  return fails ? (errno = error, -1) : result;
}

// ---- content

static ssize_t written(int descriptor, const void *bytes, size_t count, off_t at, int is_positioned) {
  int what = is_watched(descriptor) ? next(1) : NONE;
  if (what == FAIL) return -1;
  if (what == TEAR || what == SHORT) count = (count + 1) / 2;
  off_t where = is_positioned ? at : lseek(descriptor, 0, SEEK_CUR);
  ssize_t done = is_positioned ? syscall(SYS_pwrite64, descriptor, bytes, count, at)
                               : syscall(SYS_write, descriptor, bytes, count);
  if (done > 0 && is_watched(descriptor)) note('w', inode_of(descriptor), where, "", bytes, (uint64_t)done);
  if (what == TEAR) kill(getpid(), SIGKILL), pause();
  return done;
}

ssize_t write(int descriptor, const void *bytes, size_t count) { return written(descriptor, bytes, count, 0, 0); }
ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t at) {
  return written(descriptor, bytes, count, at, 1);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t at) {
  return written(descriptor, bytes, count, at, 1);
}

static int synced(int descriptor, long number) {
  if (is_watched(descriptor)) {
    if (FAILS) return -1;
    note('s', inode_of(descriptor), 0, "", "", 0);
  }
  return (int)syscall(number, descriptor);
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

int ftruncate(int descriptor, off_t length) {
  if (is_watched(descriptor)) {
    if (FAILS) return -1;
    note('t', inode_of(descriptor), length, "", "", 0);
  }
  return (int)syscall(SYS_ftruncate, descriptor, length);
}
int ftruncate64(int descriptor, off_t length) { return ftruncate(descriptor, length); }

int fchmod(int descriptor, mode_t mode) {
  if (is_watched(descriptor) && FAILS) return -1;
  return (int)syscall(SYS_fchmod, descriptor, mode);
}

// ---- names

int renameat(int from, const char *name, int to, const char *other) {
  char whole[PATH_MAX], target[PATH_MAX];
  int is_ours = inside(from, name, whole);
  if (inside(to, other, target) | is_ours && FAILS) return -1;
  uint64_t inode = is_ours ? inode_at(whole) : 0;
  int result = (int)syscall(SYS_renameat2, from, name, to, other, 0);
  if (!result && is_ours) note('r', inode, 0, whole, target, strlen(target));
  return result;
}
int rename(const char *name, const char *other) { return renameat(AT_FDCWD, name, AT_FDCWD, other); }

int linkat(int from, const char *name, int to, const char *other, int flags) {
  char whole[PATH_MAX], target[PATH_MAX];
  int is_ours = inside(from, name, whole);
  if (inside(to, other, target) | is_ours && FAILS) return -1;
  int result = (int)syscall(SYS_linkat, from, name, to, other, flags);
  if (!result && is_ours) note('l', inode_at(whole), 0, whole, target, strlen(target));
  return result;
}
int link(const char *name, const char *other) { return linkat(AT_FDCWD, name, AT_FDCWD, other, 0); }

int unlinkat(int at, const char *name, int flags) {
  char whole[PATH_MAX];
  int is_ours = inside(at, name, whole);
  if (is_ours && FAILS) return -1;
  int result = (int)syscall(SYS_unlinkat, at, name, flags);
  if (!result && is_ours) note('u', 0, 0, whole, "", 0);
  return result;
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int at, const char *name, mode_t mode) {
  char whole[PATH_MAX];
  int is_ours = inside(at, name, whole);
  if (is_ours && FAILS) return -1;
  int result = (int)syscall(SYS_mkdirat, at, name, mode);
  if (!result && is_ours) note('d', inode_at(whole), 0, whole, "", 0);
  return result;
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
