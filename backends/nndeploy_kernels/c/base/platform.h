/* SPDX-License-Identifier: Apache-2.0
 *
 * All that the kernels ask of the system: pages, threads, the time, and to sleep until a word changes.
 *
 *   nnd_lines_take, nnd_lines_free   memory that begins at a cache line
 *   nnd_pages_take, nnd_pages_free   memory whose bytes are zero, at whole pages, huge ones where that can be, where
 *                                    nnd_has_pages
 *   nnd_pages_give_back              the whole pages inside of a range, which nobody reads again
 *   nnd_thread_start                 whether a thread began; nnd_thread_join waits for its end
 *   nnd_word_wait, nnd_word_wake     as a futex of Linux
 *   nnd_now_ns                       processor time of this thread, or the clock; 0 where there is neither
 *   nnd_pause                        a moment of a loop that waits
 */
#ifndef NND_PLATFORM_H
#define NND_PLATFORM_H

#include <stdatomic.h>
#include <stdlib.h>

#include "base/vector.h"

#define NND_HUGE_PAGE ((nnd_size)2 << 20)
#define NND_LINE_BYTES 64

#if defined(__wasm__)
#include "base/platform_wasm.h"
#elif defined(_WIN32)
#include "base/platform_windows.h"
#elif defined(__APPLE__)
#include "base/platform_macos.h"
#else
#include "base/platform_linux.h"
#endif

#endif
