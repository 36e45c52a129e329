/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of operators that a plan may name. Each says at the head of its file what its words are.
 */
#include "model/model.h"

/* One a line, in the order of the alphabet. */
/* clang-format off */
#define NND_EVERY_OP(X) \
  X(affine_grid) \
  X(append) \
  X(append_at) \
  X(arange) \
  X(arg_max) \
  X(arg_min) \
  X(attention) \
  X(bits_connected) \
  X(channel_parts) \
  X(channels_last) \
  X(convolution_) \
  X(cumulate) \
  X(elementwise) \
  X(fully_connected) \
  X(gather) \
  X(gather_elements) \
  X(gather_nd) \
  X(gather_places) \
  X(grid_sample) \
  X(gru) \
  X(hardmax) \
  X(instance_norm) \
  X(int8_connected) \
  X(int8_convolution) \
  X(int8_line) \
  X(int8_pool) \
  X(int8_quantise) \
  X(int8_table) \
  X(inverted_residual) \
  X(join) \
  X(log_softmax) \
  X(lrn) \
  X(lstm) \
  X(normalise) \
  X(one_hot) \
  X(padded_at) \
  X(padded_copy) \
  X(padded_image) \
  X(planar_separable) \
  X(pool) \
  X(pool_places) \
  X(product) \
  X(reduce_l1) \
  X(reduce_l2) \
  X(reduce_log_sum) \
  X(reduce_log_sum_exp) \
  X(reduce_max) \
  X(reduce_mean) \
  X(reduce_min) \
  X(reduce_prod) \
  X(reduce_sum) \
  X(reduce_sum_square) \
  X(resize) \
  X(resize_axis) \
  X(reverse_sequence) \
  X(rnn) \
  X(roi_align) \
  X(roi_max_pool) \
  X(scatter_elements) \
  X(scatter_nd) \
  X(separable) \
  X(sizes) \
  X(softmax) \
  X(stem) \
  X(to_blocked) \
  X(to_plain) \
  X(top_places) \
  X(transposed) \
  X(trees) \
  X(triangle) \
  X(view_at) \
  X(view_copy) \
  X(volume_convolution)
/* clang-format on */

#define NND_DECLARE(name) extern const struct nnd_op nnd_op_##name;
NND_EVERY_OP(NND_DECLARE)

#define NND_LISTED(name) &nnd_op_##name,
const struct nnd_op *const nnd_ops[] = {NND_EVERY_OP(NND_LISTED) NULL};
