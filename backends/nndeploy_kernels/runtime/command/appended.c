/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/appended.h"

#include <string.h>

#include "runtime/command/system.h"

#define NND_TAIL ((int64_t)sizeof NND_MARK - 1 + 8)

enum nnd_behind nnd_appended_here(struct nnd_appended *appended) {
  int64_t file_size = 0;
  uint64_t size = 0;
  const uint8_t *program = nnd_program_map(&file_size);
  if (!program) return NND_NOTHING_BEHIND;
  const uint8_t *tail = program + file_size - NND_TAIL;
  if (file_size > NND_TAIL && !memcmp(tail + 8, NND_MARK, sizeof NND_MARK - 1))
    for (int i = 0; i < 8; i++) size |= (uint64_t)tail[i] << 8 * i;
  const uint64_t whole = (uint64_t)file_size - NND_TAIL;
  if (size > 0 && size < whole && (whole - size) % 4096 == 0) {
    *appended = (struct nnd_appended){tail - size, (int64_t)size};
    return NND_BUNDLE_BEHIND;
  }
  return file_size > nnd_program_end(program, file_size) ? NND_CUT_BEHIND : NND_NOTHING_BEHIND;
}
