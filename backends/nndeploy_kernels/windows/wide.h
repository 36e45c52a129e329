/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows takes names of files as UTF-16.
 */
#ifndef NND_WINDOWS_WIDE_H
#define NND_WINDOWS_WIDE_H

#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <errno.h>
#include <stdlib.h>
#include <windows.h>

/* Returns a path of UTF-8 with its memory, or null and `errno`. */
static inline wchar_t *nnd_wide(const char *path) {
  const int room = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
  wchar_t *wide = room ? malloc((size_t)room * sizeof *wide) : NULL;
  errno = room ? ENOMEM : ENOENT;
  if (wide) MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, room);
  return wide;
}

#endif
