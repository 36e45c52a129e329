/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.h"

#include "base/platform.h"
#include "base/vector.h"

enum { NND_NOT_BEGUN, NND_BEGINNING, NND_BEGUN };

void nnd_begin(void) {
  static atomic_int state = NND_NOT_BEGUN;
  int found = NND_NOT_BEGUN;
  if (atomic_load(&state) == NND_BEGUN) return;
  if (atomic_compare_exchange_strong(&state, &found, NND_BEGINNING)) {
    nnd_begin_tiles_0();
    nnd_begin_tiles_1();
    nnd_begin_tiles_2();
    nnd_begin_tiles_3();
    nnd_begin_tiles_4();
    nnd_begin_int8_tiles();
    nnd_begin_int8_tables();
#ifdef NND_BF16
    nnd_begin_bf16_tiles();
#elif NND_LANES == 16
    nnd_begin_thirds();
#endif
    atomic_store(&state, NND_BEGUN);
  }
  while (atomic_load(&state) != NND_BEGUN) nnd_pause(); /* another thread is at it */
}
