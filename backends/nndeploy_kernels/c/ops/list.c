/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of operators that a plan may name. Each says at the head of its file what its words are.
 */
#include "model/model.h"

#define NND_EVERY_OP(X)                                                                                                \
  X(convolution_)                                                                                                      \
  X(separable)                                                                                                         \
  X(stem) X(elementwise) X(to_blocked) X(to_plain) X(channels_last) X(view_copy) X(pool) X(resize) X(repeat)           \
      X(gather_places) X(gather_rows) X(padded_copy) X(inverted_residual) X(transposed) X(planar_separable) X(join)    \
          X(channel_parts) X(softmax) X(log_softmax) X(reduce_mean) X(reduce_sum) X(reduce_max) X(reduce_min)          \
              X(reduce_prod) X(reduce_l1) X(reduce_l2) X(reduce_log_sum) X(reduce_log_sum_exp) X(reduce_sum_square)    \
                  X(fully_connected) X(product) X(lstm)

#define NND_DECLARE(name) extern const struct nnd_op nnd_op_##name;
NND_EVERY_OP(NND_DECLARE)

#define NND_LISTED(name) &nnd_op_##name,
const struct nnd_op *const nnd_ops[] = {NND_EVERY_OP(NND_LISTED) NULL};
