/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels ask Linux about an ARM processor: each of Apple's that runs macOS has dot products of
 * bytes, not each has those of matrices.
 */
#ifndef NND_MACOS_AUXV_H
#define NND_MACOS_AUXV_H

#define AT_HWCAP 16
#define AT_HWCAP2 26

static inline unsigned long getauxval(unsigned long what) { return what == AT_HWCAP ? 1ul << 20 : 0; }

#endif
