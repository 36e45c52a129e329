/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs against their reference, by the rules of `nndeploy/comparison`: a tolerance; where that fails the limits of
 * engines that are right, or results as sets of rows.
 */
#ifndef NND_COMMAND_COMPARE_H
#define NND_COMMAND_COMPARE_H

#include "runtime/nndeploy.h"

struct nnd_tolerance {
  double rtol, atol, span;
};

/* `rows_axis` is -1 where results are no sets. */
struct nnd_limits {
  double max_abs, rms, slice_rms, off, unmatched;
  int64_t rows_axis;
};

/* A figure that has no meaning is negative, a cosine that has none below -1. */
struct nnd_comparison {
  int is_right;
  double max_abs, max_rel, cosine;
  char note[200];
  const char *rule;
};

/* An output of a golden: what came, what was wanted, and what is known of it; `limits` may be null, and `note` says why
 * the two cannot be compared, else it is null. */
struct nnd_judged {
  const char *name, *note;
  nnd_tensor got, want;
  int has_tolerance; /* else it must be equal */
  struct nnd_tolerance tolerance;
  const struct nnd_limits *limits;
  struct nnd_comparison found;
};

/* Compares the outputs of one golden. Returns 0 and the error where there is no memory for sets of rows. */
int nnd_judge(struct nnd_judged *outputs, int count, nnd_error *error);

#endif
