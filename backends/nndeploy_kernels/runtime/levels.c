/* SPDX-License-Identifier: Apache-2.0
 *
 * Which level this processor has: the flags of `levels.py`, asked of the processor, and of the system whether it keeps
 * the registers that they need.
 */
#include "runtime/kernels.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>

extern const struct nnd_kernels nndeploy_kernels_v2, nndeploy_kernels_v3, nndeploy_kernels_v4;
#ifdef NND_FLOAT32_LEVELS_ALONE
#define NND_V4_BF16 nndeploy_kernels_v4
#else
extern const struct nnd_kernels nndeploy_kernels_v4_bf16;
#define NND_V4_BF16 nndeploy_kernels_v4_bf16
#endif

#define NND_BIT(number) (1u << (number))
#define NND_HAS(word, bits) (((word) & (bits)) == (bits))

struct nnd_flags {
  unsigned leaf1c, leaf7b, leaf7_1a, extended_c;
  unsigned kept; /* registers that the system keeps: XCR0 */
};

/* Each question takes a virtual machine 7 us: leaves that every x86-64 processor has are not asked for first. */
static struct nnd_flags nnd_flags_here(void) {
  struct nnd_flags f = {0};
  unsigned a, b, c, d;
  __cpuid(1, a, b, c, d);
  f.leaf1c = c;
  __cpuid(0x80000001, a, b, c, d);
  f.extended_c = c;
  if (__get_cpuid_max(0, NULL) >= 7) {
    __cpuid_count(7, 0, a, b, c, d);
    f.leaf7b = b;
    if (a >= 1) {
      __cpuid_count(7, 1, a, b, c, d);
      f.leaf7_1a = a;
    }
  }
  if (f.leaf1c & NND_BIT(27)) { /* osxsave */
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    f.kept = low;
  }
  return f;
}

static int nnd_is_v2(const struct nnd_flags *f) { /* ssse3 cx16 sse4.1 sse4.2 popcnt; lahf */
  return NND_HAS(f->leaf1c, NND_BIT(9) | NND_BIT(13) | NND_BIT(19) | NND_BIT(20) | NND_BIT(23)) &&
         NND_HAS(f->extended_c, NND_BIT(0));
}

static int nnd_is_v3(const struct nnd_flags *f) { /* fma movbe avx f16c; bmi1 avx2 bmi2; lzcnt; SSE and AVX registers */
  return nnd_is_v2(f) && NND_HAS(f->leaf1c, NND_BIT(12) | NND_BIT(22) | NND_BIT(28) | NND_BIT(29)) &&
         NND_HAS(f->leaf7b, NND_BIT(3) | NND_BIT(5) | NND_BIT(8)) && NND_HAS(f->extended_c, NND_BIT(5)) &&
         NND_HAS(f->kept, 0x6u);
}

static int nnd_is_v4(const struct nnd_flags *f) { /* avx512 f dq cd bw vl; and their registers */
  return nnd_is_v3(f) && NND_HAS(f->leaf7b, NND_BIT(16) | NND_BIT(17) | NND_BIT(28) | NND_BIT(30) | NND_BIT(31)) &&
         NND_HAS(f->kept, 0xe6u);
}

const struct nnd_kernels *nnd_kernels_here(int is_bf16, const char **least) {
  const struct nnd_flags f = nnd_flags_here();
  *least = "x86-64-v2";
  if (nnd_is_v4(&f)) return is_bf16 && NND_HAS(f.leaf7_1a, NND_BIT(5)) ? &NND_V4_BF16 : &nndeploy_kernels_v4;
  if (nnd_is_v3(&f)) return &nndeploy_kernels_v3;
  return nnd_is_v2(&f) ? &nndeploy_kernels_v2 : NULL;
}
#elif defined(__wasm__)
extern const struct nnd_kernels nndeploy_kernels_wasm32;

const struct nnd_kernels *nnd_kernels_here(int is_bf16, const char **least) {
  (void)is_bf16;
  *least = "wasm32";
  return &nndeploy_kernels_wasm32;
}
#else
extern const struct nnd_kernels nndeploy_kernels_aarch64;

const struct nnd_kernels *nnd_kernels_here(int is_bf16, const char **least) {
  (void)is_bf16;
  *least = "aarch64";
  return &nndeploy_kernels_aarch64;
}
#endif
