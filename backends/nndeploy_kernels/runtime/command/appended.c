/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/appended.h"

#include <string.h>

#include "runtime/command/system.h"

#define NND_MARK_BYTES ((int64_t)sizeof NND_MARK - 1)
#define NND_TAIL (NND_MARK_BYTES + 8)

static int64_t nnd_size_at(const uint8_t *at) {
  uint64_t size = 0;
  for (int i = 0; i < 8; i++) size |= (uint64_t)at[i] << 8 * i;
  return (int64_t)size;
}

/* Whether `size` bytes before `whole` of a file begin at a page of it, behind its first one. */
static int nnd_is_behind(int64_t size, int64_t whole) { return size > 0 && size < whole && (whole - size) % 4096 == 0; }

enum nnd_behind nnd_appended_here(struct nnd_appended *appended) {
  int64_t file_size = 0;
  const uint8_t *program = nnd_program_map(&file_size);
  if (!program) return NND_NOTHING_BEHIND;
  const uint8_t *mark = program + file_size - NND_MARK_BYTES;
  const int has_decisions = file_size > NND_TAIL + 8 && !memcmp(mark, NND_MARK_OF_DECISIONS, NND_MARK_BYTES);
  if (has_decisions || (file_size > NND_TAIL && !memcmp(mark, NND_MARK, NND_MARK_BYTES))) {
    const int64_t size = nnd_size_at(mark - 8), text = has_decisions ? nnd_size_at(mark - 16) : 0;
    const int64_t left = file_size - NND_TAIL - 8 * has_decisions; /* of the file before the sizes */
    const char *decisions = has_decisions && text > 0 && text < left ? (const char *)program + left - text : NULL;
    if (has_decisions ? decisions && !program[left - 1] && nnd_is_behind(size, left - text)
                      : nnd_is_behind(size, left)) {
      *appended = (struct nnd_appended){program + left - text - size, size, decisions};
      return NND_BUNDLE_BEHIND;
    }
  }
  return file_size > nnd_program_end(program, file_size) ? NND_CUT_BEHIND : NND_NOTHING_BEHIND;
}
