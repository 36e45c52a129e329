/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine can do at most: multiply-adds in registers, with the instructions of this level, and reading memory of
 * some size again and again. Each is the best of several rounds: a round is delayed by others, never hurried.
 */
#include "base/threads.h"
#include "kernels/begin.h"
#include "kernels/int8_ways.h"
#include "model/model.h"

#define NND_PROBE_ROUNDS 9
#define NND_PROBE_NS 500000 /* that a round takes at least */
#define NND_PROBE_MOST ((nnd_size)1 << 40)

struct nnd_probed {
  void (*work)(const struct nnd_probed *probed, nnd_size times, const char *from, nnd_size num_bytes);
  const char *memory;
  nnd_size num_bytes, times;
};

/* As many sums as the tile of products has: enough for the processor never to wait for one. */
static void nnd_probe_floats(const struct nnd_probed *probed, nnd_size times, const char *from, nnd_size num_bytes) {
  (void)probed, (void)from, (void)num_bytes;
  vf sums[NND_ACCUMULATORS], x = nnd_splat(0.5f), w = nnd_splat(0.25f);
  NND_UNROLL
  for (int i = 0; i < NND_ACCUMULATORS; i++) sums[i] = nnd_splat((float)i);
  for (nnd_size n = 0; n < times; n++) {
    NND_UNROLL
    for (int i = 0; i < NND_ACCUMULATORS; i++) sums[i] = sums[i] * w + x; /* and not sums + w * x, which is known */
  }
  NND_UNROLL
  for (int i = 1; i < NND_ACCUMULATORS; i++) sums[0] += sums[i];
  volatile float kept = sums[0][0];
  (void)kept;
}

/* A multiply-add of vectors of bytes: NND_PROBE_FOUR with the instructions of four at once, NND_PROBE_FEW without. */
#ifdef NND_PAIRS
#define NND_PROBE_FEW(sums, x, w) ((sums) + NND_PAIRS((nnd_vs)(x), (nnd_vs)(w)))
#define NND_PROBE_FEW_OPERATIONS 4
#else
#define NND_PROBE_FEW(sums, x, w) ((sums) * (w) + (x))
#define NND_PROBE_FEW_OPERATIONS 2
#endif

#define NND_PROBE_BYTES(name, target, MULTIPLY)                                                                        \
  target static void name(const struct nnd_probed *probed, nnd_size times, const char *from, nnd_size num_bytes) {     \
    (void)probed, (void)from, (void)num_bytes;                                                                         \
    nnd_vu sums[NND_ACCUMULATORS], x = {1, 2}, w = {3, 4};                                                             \
    NND_UNROLL                                                                                                         \
    for (int i = 0; i < NND_ACCUMULATORS; i++) sums[i] = x + (uint32_t)i;                                              \
    for (nnd_size n = 0; n < times; n++) {                                                                             \
      NND_UNROLL                                                                                                       \
      for (int i = 0; i < NND_ACCUMULATORS; i++) {                                                                     \
        NND_OPAQUE(x); /* or the products would be those of the time before */                                         \
        sums[i] = MULTIPLY(sums[i], x, w);                                                                             \
      }                                                                                                                \
    }                                                                                                                  \
    NND_UNROLL                                                                                                         \
    for (int i = 1; i < NND_ACCUMULATORS; i++) sums[0] ^= sums[i];                                                     \
    volatile uint32_t kept = sums[0][0];                                                                               \
    (void)kept;                                                                                                        \
  }

NND_PROBE_BYTES(nnd_probe_few, , NND_PROBE_FEW)
#ifdef NND_FAST_FOUR
NND_PROBE_BYTES(nnd_probe_four, NND_FAST_TARGET, NND_FAST_FOUR)
#endif
#ifdef NND_MATRIX_TARGET
NND_PROBE_BYTES(nnd_probe_matrix, NND_MATRIX_TARGET, NND_MATRIX_SIGNED)
#endif

static void nnd_probe_tiles(const struct nnd_probed *probed, nnd_size times, const char *from, nnd_size num_bytes) {
  (void)probed, (void)from, (void)num_bytes;
  nnd_int8_multiply_tiles(times);
}

static void nnd_probe_reads(const struct nnd_probed *probed, nnd_size times, const char *from, nnd_size num_bytes) {
  (void)probed;
  enum { READS = 8 };
  vi found[READS] = {0};
  const nnd_size step = READS * (nnd_size)sizeof(vi);
  for (nnd_size n = 0; n < times; n++)
    for (nnd_size at = 0; at + step <= num_bytes; at += step) {
      NND_UNROLL
      for (int i = 0; i < READS; i++) found[i] ^= *(const volatile vi *)(from + at + i * (nnd_size)sizeof(vi));
    }
  for (int i = 1; i < READS; i++) found[0] ^= found[i];
  volatile int32_t kept = found[0][0];
  (void)kept;
}

/* Each worker has a part of the memory of its own. */
static void nnd_probe_task(const void *context, struct nnd_pool *pool, int worker) {
  const struct nnd_probed *probed = context;
  const nnd_size each = probed->num_bytes / (pool ? pool->workers : 1) / NND_LINE_BYTES * NND_LINE_BYTES;
  probed->work(probed, probed->times, probed->memory + worker * each, each);
}

static int64_t nnd_probe_ns(struct nnd_probed *probed, struct nnd_pool *pool) {
  const int64_t began = nnd_now_ns(!pool);
  if (pool)
    nnd_pool_run(pool, nnd_probe_task, probed);
  else
    nnd_probe_task(probed, NULL, 0);
  return nnd_now_ns(!pool) - began;
}

/* Returns how often a second the work is done by each worker, 0 where there is no clock. */
static double nnd_probe_rate(struct nnd_probed *probed, struct nnd_pool *pool) {
  int64_t ns = nnd_probe_ns(probed, pool);
  for (probed->times = 1; ns < NND_PROBE_NS; probed->times *= 2) {
    if (probed->times >= NND_PROBE_MOST) return 0.0;
    ns = nnd_probe_ns(probed, pool);
  }
  double best = 0.0;
  for (int round = 0; round < NND_PROBE_ROUNDS; round++) {
    ns = nnd_probe_ns(probed, pool);
    const double rate = 1e9 * (double)probed->times / (double)nnd_max(1, ns);
    if (rate > best) best = rate;
  }
  return best;
}

static double nnd_probe_reading(int64_t num_bytes, struct nnd_pool *pool) {
  struct nnd_pages pages;
  if (num_bytes < 1 || num_bytes > NND_PROBE_MOST || !nnd_pages_take(&pages, num_bytes)) return 0.0;
  memset(pages.data, 1, (size_t)num_bytes);
  struct nnd_probed probed = {nnd_probe_reads, pages.data, num_bytes, 1};
  const double rate = nnd_probe_rate(&probed, pool);
  nnd_pages_free(&pages);
  return rate * (double)num_bytes;
}

double nnd_probe(int what, int64_t num_bytes, int workers) {
  nnd_begin();
  struct nnd_pool *pool = nnd_pool_start(workers, 1);
  if (workers > 1 && !pool) return 0.0;
  const double vectors = (double)(NND_LANES * NND_ACCUMULATORS * workers);
  double rate = 0.0;
  if (what == NND_PROBE_READING) {
    rate = nnd_probe_reading(num_bytes, pool);
  } else if (what == NND_PROBE_FLOAT32) {
    struct nnd_probed probed = {nnd_probe_floats, NULL, 0, 1};
    rate = vectors * 2 * nnd_probe_rate(&probed, pool);
  } else if (what == NND_PROBE_INT8) {
    struct nnd_probed probed = {nnd_probe_few, NULL, 0, 1};
    int operations = NND_PROBE_FEW_OPERATIONS;
#ifdef NND_FAST_FOUR
    if (nnd_int8_is_quick(0)) probed.work = nnd_probe_four, operations = 8;
#endif
#ifdef NND_MATRIX_TARGET
    if (nnd_int8_kernels_here(0)->depth > NND_INT8_DEPTH) probed.work = nnd_probe_matrix, operations = 16;
#endif
    const double of_tiles = nnd_int8_multiply_tiles(0);
    if (of_tiles > 0.0) probed.work = nnd_probe_tiles;
    rate = (of_tiles > 0.0 ? workers * of_tiles : vectors * operations) * nnd_probe_rate(&probed, pool);
  }
  if (pool) nnd_pool_stop(pool);
  return rate;
}
