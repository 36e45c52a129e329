/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that a plan may name, and the words of a step of each, in their order: written here alone.
 *
 * c/model/words.h makes of them what the library reads, with its bounds; nndeploy_native/plan_words.py, which writes
 * plans, reads this file as text. A word is W(KIND, name, ...), one of a set C(constant of C, name in Python). A step
 * in Python has an attribute of that name, or says in `written()` what stands there; `in` and `out` are its `x` and
 * `output`.
 *
 *   INPUT, INPUT_ANY, INPUT_NUMBER     a tensor that the step reads: of float32; of any element but float16; of any
 *   OPTIONAL, OPTIONAL_ANY             the same; -1: none
 *   OUTPUT, OUTPUT_ANY, OUTPUT_NUMBER  the tensor that it writes, which it does not read
 *   TENSOR                             one of float32 that only a part of a fused step may have in memory
 *   WEIGHT, FLOATS, VECTOR             constant float32, which the model may have as float16; as it is; as one axis
 *   INT32S, CONSTANT                   constant int32; of any element. -1 where there is none, as of all constants
 *   WEIGHT_OR_BYTES                    a WEIGHT, or int8
 *   PROGRAM, PROGRAM_ANY               of float32, of any domain; -1: none
 *   RULE, RULES(count)                 sizes, also strides and offsets in elements: rules of the plan
 *   FLAG, CHOICE(set)                  0 or 1; the number of one of a set
 *   NUMBER, NUMBERS(count)             whole numbers from the first bound to the second
 *   FLOAT, DOUBLE                      the bits of a double, likewise, which is kept as one or the other
 *   PART(words)                        other words
 *   LIST(words, least, most)           their number, then so many of them
 *   REST(words, most, behind)          as many of them as there are words in the step, but for `behind` more
 *   PAIRS                              their number, then so many pairs of numbers, which are read where they lie
 */
#ifndef NND_PLAN_WORDS_H
#define NND_PLAN_WORDS_H

/* clang-format off */

/* X(operator, words) */
#define NND_EVERY_OP(X) \
  X(affine_grid, affine_grid) X(append, append) X(append_at, append_at) X(arange, arange) X(arg_max, arg) \
  X(arg_min, arg) X(attention, attention) X(bits_connected, bits_connected) X(channel_parts, channel_parts) \
  X(channels_last, pair) X(convolution, conv_record) X(cumulate, cumulate) X(double_product, double_product) \
  X(elementwise, elementwise) X(fully_connected, fully_connected) X(gather, picked) X(gather_elements, picked) X(gather_nd, picked) \
  X(gather_places, gather_places) X(grid_sample, grid_sample) X(gru, recurrent_layer) X(hardmax, along_axis) \
  X(instance_norm, instance_norm) X(int8_connected, int8_connected) X(int8_convolution, int8_convolution) \
  X(int8_line, int8_line) X(int8_mean, int8_mean) X(int8_pool, int8_pool) X(int8_quantise, int8_quantise) \
  X(int8_table, int8_table) X(int8_times, int8_times) \
  X(inverted_residual, three_convs) X(join, join) X(log_softmax, along_axis) X(lrn, lrn) X(lstm, recurrent_layer) \
  X(normalise, normalise) X(one_hot, one_hot) X(padded_at, padded_at) X(padded_copy, padded_copy) \
  X(padded_image, padded_image) X(pairwise_shares, pairwise_shares) X(planar_separable, two_convs) X(pool, pool) X(pool_places, pool_places) \
  X(product, product) X(reduce_l1, along_axis) X(reduce_l2, along_axis) X(reduce_log_sum, along_axis) \
  X(reduce_log_sum_exp, along_axis) X(reduce_max, along_axis) X(reduce_mean, along_axis) X(reduce_min, along_axis) \
  X(reduce_prod, along_axis) X(reduce_sum, along_axis) X(reduce_sum_square, along_axis) X(resize, resize) \
  X(resize_axis, resize_axis) X(reverse_sequence, reverse_sequence) X(rnn, recurrent_layer) X(roi_align, roi_align) \
  X(roi_max_pool, roi_max_pool) X(scatter_elements, scatter_elements) X(scatter_nd, scatter_nd) \
  X(separable, two_convs) X(sizes, sizes) X(softmax, along_axis) X(stem, three_convs) X(text_grams, text_grams) \
  X(tf_idf, tf_idf) X(to_blocked, pair) X(to_plain, pair) X(top_places, top_places) X(transposed, volume_conv) \
  X(trees, trees) X(triangle, triangle) X(view_at, view_at) X(view_copy, view_copy) X(volume_convolution, volume_conv)

/* Bounds of several operators; those of one stand in its file. */
#define NND_MOST_STEP 65536 /* strides, dilations, kernels of bytes */
#define NND_MOST_FACTOR 1048576.0 /* of bytes */
#define NND_POOLED_AXES 3

/* A program over each sum (0), the residual (1), which lies as the output does, and a number of the channel or column
 * (2); none: the sum itself. */
#define NND_WORDS_epilogue(W) W(PROGRAM, program) W(VECTOR, channel) W(OPTIONAL, residual)

/* ---- Convolutions: conv_record.c, convolution.c, transposed.c, volume.c, separable.c, stem.c and others. */

#define NND_WORDS_conv_window(W) \
  W(NUMBERS, strides, 2, 1, NND_MOST_STEP) W(NUMBERS, dilations, 2, 1, NND_MOST_STEP) \
  W(RULES, pads, 2) /* before the first row and column */

#define NND_WORDS_conv_record(W) \
  W(TENSOR, in) W(TENSOR, out) W(WEIGHT, weights) /* (O, I / groups, kernel rows, kernel columns) */ \
  W(VECTOR, bias) /* (O) */ \
  W(PART, epilogue, epilogue) W(PART, window, conv_window) W(NUMBER, groups, 1, NND_MOST_BYTES)

/* The first axis of volumes, whose images lie below each other and whose weights are (O, I / groups, depth * rows,
 * columns). */
#define NND_WORDS_depth(W) \
  W(NUMBER, kernel, 1, NND_MOST_BYTES) W(NUMBER, stride, 1, NND_MOST_STEP) W(NUMBER, dilation, 1, NND_MOST_STEP) \
  W(RULE, pad) W(RULE, size) W(RULE, out_size)

#define NND_WORDS_volume_conv(W) W(PART, conv, conv_record) W(PART, depth, depth)

/* Each of what the one before gives. */
#define NND_WORDS_two_convs(W) W(PART, first, conv_record) W(PART, second, conv_record)

#define NND_WORDS_three_convs(W) W(PART, wide, conv_record) W(PART, first, conv_record) W(PART, second, conv_record)

/* ---- Products: matrix.c, bits.c, attention.c. Strides may be 0 along batch axes of what is read alone. */

#define NND_WORDS_product_sizes(W) \
  W(RULE, rows) W(RULE, inner) W(RULE, columns) W(RULE, inner_of_b) /* the same as inner */ \
  W(RULE, a_offset) W(RULE, a_row) /* from row to row */ \
  W(RULE, a_step) /* from k to k */

#define NND_WORDS_product_axis(W) W(RULE, size) W(RULE, a) W(RULE, b) W(RULE, out)

#define NND_WORDS_product_out(W) \
  W(RULE, row) /* from row to row */ \
  W(LIST, axes, product_axis, 0, NND_MOST_BATCH_AXES) W(OUTPUT, out)

#define NND_WORDS_product_b(W) \
  W(RULE, offset) W(RULE, step) /* from k to k */ \
  W(RULE, column) /* from column to column */

#define NND_WORDS_product(W) \
  W(INPUT, a) W(INPUT, b) W(VECTOR, bias) /* (columns) */ \
  W(PART, epilogue, epilogue) W(PART, sizes, product_sizes) W(PART, of_b, product_b) W(PART, of_out, product_out)

#define NND_WORDS_fully_connected(W) \
  W(INPUT, a) W(WEIGHT, weights) /* (..., inner, columns) */ \
  W(FLAG, is_transposed) /* (..., columns, inner) */ \
  W(VECTOR, bias) W(PART, epilogue, epilogue) W(PART, sizes, product_sizes) W(PART, of_out, product_out)

#define NND_WORDS_of_blocks(W) \
  W(CONSTANT, numbers) /* float32, or zero points as the weights are; none: all the same */ \
  W(NUMBER, block_step, 0, NND_MOST_OF_BITS) W(NUMBER, column_step, 0, NND_MOST_OF_BITS)

/* Weights of 4 or 8 bits in blocks along k, or of float16 (kernels/bits.h). */
#define NND_WORDS_bit_weights(W) \
  W(CONSTANT, numbers) /* uint8, or float16 */ \
  W(NUMBER, bits, 4, 16) W(FLAG, is_signed) W(NUMBER, inner, 1, NND_MOST_OF_BITS) \
  W(NUMBER, columns, 1, NND_MOST_OF_BITS) W(NUMBER, block, 1, NND_MOST_OF_BITS) \
  W(NUMBERS, steps, 2, 1, NND_MOST_OF_BITS) /* from k to k, from column to column */ \
  W(PART, scales, of_blocks) W(PART, zeros, of_blocks) W(NUMBER, zero, 0, 255) /* of all where there are no zeros */ \
  W(FLAG, rounds_rows) /* rows may be rounded to bytes, block by block: of 4 bits alone */

#define NND_WORDS_bits_connected(W) \
  W(INPUT, a) W(PART, bits, bit_weights) W(VECTOR, bias) W(PART, epilogue, epilogue) W(PART, sizes, product_sizes) \
  W(PART, of_out, product_out)

#define NND_WORDS_attention_axis(W) W(RULE, size) W(RULE, q) W(RULE, k) W(RULE, v) W(RULE, out)

#define NND_WORDS_any_operand(W) W(INPUT_NUMBER, in)

/* Softmax along the rows of a program over q by k, times v. Keys and values may be float16. */
#define NND_WORDS_attention(W) \
  W(INPUT, q) W(INPUT_NUMBER, k) W(INPUT_NUMBER, v) W(PROGRAM, program) /* of each score, and the other operands */ \
  W(FLAG, is_guarded) /* a row that is NaN gives zeros */ \
  W(LIST, others, any_operand, 0, NND_OPERANDS - 1) /* broadcast to (batch axes, rows, keys) */ \
  W(RULE, rows) W(RULE, inner) W(RULE, keys) W(RULE, columns) W(RULE, inner_of_k) /* the same as inner */ \
  W(RULE, keys_of_v) /* the same as keys */ \
  W(RULE, q_offset) W(RULE, q_row) W(RULE, q_step) /* along inner, as k_step */ \
  W(RULE, k_offset) W(RULE, k_step) W(RULE, k_key) /* from key to key, as v_key */ \
  W(RULE, v_offset) W(RULE, v_key) W(RULE, v_column) W(RULE, out_row) \
  W(LIST, axes, attention_axis, 0, NND_MOST_BATCH_AXES) W(OUTPUT, out)

/* ---- Bytes: int8_*.c. */

/* (a - zero) by (weights - zeros) plus the whole bias, times the factors, plus the bias; then the epilogue, of whose
 * byte the table looks up another one. */
#define NND_WORDS_int8_sums(W) \
  W(INPUT_ANY, a) /* uint8 or int8, as zero, of one element */ \
  W(OPTIONAL_ANY, zero) W(CONSTANT, weights) /* uint8 or int8, as zeros, one or one a column */ \
  W(CONSTANT, zeros) W(INT32S, whole_bias) /* one or one a column, as factors and bias */ \
  W(FLOATS, factors) W(OPTIONAL, factor) W(FLOATS, bias) W(PART, epilogue, epilogue) \
  W(NUMBER, output_zero, -128, 255) W(PROGRAM, table) /* of one byte */ \
  W(OUTPUT_ANY, out) /* float32, uint8 or int8; int32 without factors and all that follows */

#define NND_WORDS_int8_connected(W) \
  W(FLAG, is_transposed) /* weights (columns, inner), else (inner, columns) */ \
  W(PART, sums, int8_sums)

/* Images (N, H, W, C), weights (O, kernel rows, kernel columns, C / groups); outside of the image is the zero point. */
#define NND_WORDS_int8_convolution(W) \
  W(PART, window, conv_window) W(NUMBER, groups, 1, NND_MOST_BYTES) W(PART, sums, int8_sums)

#define NND_WORDS_int8_term(W) W(NUMBER, zero, -128, 255) W(FLOAT, factor, -NND_MOST_FACTOR, NND_MOST_FACTOR)

/* The sum of (operand - zero) * factor and what is added along the last axis, rounded, plus zero, within bounds. */
#define NND_WORDS_int8_line(W) \
  W(INPUT_ANY, first) W(OPTIONAL_ANY, second) W(PART, of_first, int8_term) W(PART, of_second, int8_term) \
  W(FLOATS, added) W(NUMBER, least, -128, 255) W(NUMBER, most, -128, 255) W(NUMBER, zero, -128, 255) \
  W(OUTPUT_ANY, out)

/* Images (N, ..., C) of bytes by numbers (N or 1, ..., C): (x - zero) * factor * by, rounded, plus out_zero. */
#define NND_WORDS_int8_times(W) \
  W(INPUT_ANY, in) W(INPUT, by) W(NUMBER, zero, -128, 255) W(FLOAT, factor, -NND_MOST_FACTOR, NND_MOST_FACTOR) \
  W(NUMBER, out_zero, -128, 255) W(OUTPUT_ANY, out)

#define NND_WORDS_int8_table(W) W(INPUT_ANY, in) W(OUTPUT_ANY, out) W(PROGRAM, program) /* of one operand */

#define NND_WORDS_byte_window(W) \
  W(NUMBERS, strides, 2, 1, NND_MOST_STEP) W(NUMBERS, dilations, 2, 1, NND_MOST_STEP) \
  W(NUMBERS, kernel, 2, 1, NND_MOST_STEP) W(RULES, pads, 2)

/* The largest byte of each window of images (N, H, W, C). */
#define NND_WORDS_int8_pool(W) W(INPUT_ANY, in) W(OUTPUT_ANY, out) W(PART, window, byte_window)

/* The mean of (x - zero) * scale of each channel of images (N, ..., C), of float32. */
#define NND_WORDS_int8_mean(W) \
  W(INPUT_ANY, in) W(OUTPUT, out) W(NUMBER, zero, -128, 255) W(FLOAT, scale, -NND_MOST_FACTOR, NND_MOST_FACTOR)

/* (outer, channels, inner) of float32 as bytes (outer, inner, channels). */
#define NND_WORDS_int8_quantise(W) \
  W(INPUT_ANY, in) W(FLOAT, scale, NND_LEAST_SCALE, 1 / NND_LEAST_SCALE) W(NUMBER, zero, -128, 255) W(RULE, outer) \
  W(NUMBER, channels, 1, NND_MOST_TURNED) W(RULE, inner) W(OUTPUT_ANY, out)

/* ---- Elementwise, numbers of sizes: elementwise.c, numbers.c. */

/* Operands are broadcast to the output; a constant is one whose value is a weight. */
#define NND_WORDS_elementwise(W) \
  W(OUTPUT_NUMBER, out) W(PROGRAM_ANY, program) W(LIST, operands, any_operand, 0, NND_OPERANDS)

#define NND_WORDS_size(W) W(RULE, size)

#define NND_WORDS_sizes(W) \
  W(OUTPUT_ANY, out) /* int64 */ \
  W(LIST, sizes, size, 1, NND_MOST_RANK)

/* out[i] = start + i * step */
#define NND_WORDS_arange(W) W(INPUT_ANY, start) W(INPUT_ANY, step) W(OUTPUT_ANY, out)

/* ---- Along the middle of three axes of plain tensors: softmax.c, reduce.c, arg.c, normalise.c and others. */

#define NND_WORDS_along_axis(W) W(INPUT_ANY, in) W(OUTPUT_ANY, out) W(RULE, outer) W(RULE, size) W(RULE, inner)

#define NND_WORDS_arg(W) W(PART, along, along_axis) W(FLAG, is_last) /* of equal ones the last counts */

#define NND_WORDS_top_places(W) W(PART, along, along_axis) W(FLAG, is_smallest)

#define NND_WORDS_cumulate(W) W(PART, along, along_axis) W(FLAG, is_exclusive) W(FLAG, is_reverse)

/* x / (bias + alpha / window * the sum of squares of neighbours) ^ beta */
#define NND_WORDS_lrn(W) \
  W(PART, along, along_axis) W(NUMBER, window, 1, NND_MOST_NEIGHBOURS) \
  W(FLOAT, alpha, -NND_MOST_NUMBER, NND_MOST_NUMBER) W(FLOAT, beta, -NND_MOST_NUMBER, NND_MOST_NUMBER) \
  W(FLOAT, bias, -NND_MOST_NUMBER, NND_MOST_NUMBER)

/* (x - mean) / sqrt(variance + epsilon); x / sqrt(mean of squares + epsilon); / sqrt(sum of squares); / sum of sizes */
#define NND_CHOICES_norm(C) C(NND_STANDARD, standard) C(NND_RMS, rms) C(NND_L2, l2) C(NND_L1, l1)

/* Element k of row r takes number r % groups * parts + k / (size / parts) of scale and bias. */
#define NND_WORDS_normalise(W) \
  W(OPTIONAL, scale) W(OPTIONAL, bias) W(PART, along, along_axis) W(CHOICE, norm, norm) \
  W(FLOAT, epsilon, -1e30, 1e30) W(RULE, groups) W(RULE, parts)

#define NND_WORDS_instance_norm(W) \
  W(INPUT, in) /* in blocks, as the output */ \
  W(INPUT, scale) /* (channels), as bias */ \
  W(INPUT, bias) W(FLOAT, epsilon, -1e30, 1e30) W(PART, epilogue, epilogue) W(OUTPUT, out)

/* ---- Images in blocks: pool.c, pool_places.c, resize.c, resize_axis.c, grid_sample.c, roi.c. `depth`: images below
 * each other in each. */

#define NND_WORDS_pool_window(W) \
  W(NUMBERS, strides, 2, 1, NND_MOST_STEP) W(NUMBERS, dilations, 2, 1, NND_MOST_STEP) W(RULES, kernel, 2) \
  W(RULES, pads, 2)

#define NND_CHOICES_pooling(C) C(NND_POOL_MAX, max) C(NND_POOL_MEAN, mean) C(NND_POOL_SUM, sum)

#define NND_WORDS_pool(W) \
  W(INPUT, in) W(OUTPUT, out) W(CHOICE, kind, pooling) W(FLAG, includes_padding) /* in what a mean is divided by */ \
  W(RULE, depth) W(PART, window, pool_window) \
  W(RULES, end_pads, 2) /* how far a window that counts its padding may reach */

#define NND_WORDS_places_axis(W) \
  W(NUMBER, stride, 1, NND_MOST_STEP) W(NUMBER, dilation, 1, NND_MOST_STEP) W(RULE, kernel) W(RULE, pad)

#define NND_WORDS_pool_places(W) \
  W(INPUT, in) /* plain */ \
  W(OUTPUT_ANY, out) /* int64: numbers of elements of the whole input */ \
  W(FLAG, is_column_major) /* the first axis of an image goes fastest */ \
  W(REST, axes, places_axis, NND_POOLED_AXES, 0) /* each behind the second */

#define NND_CHOICES_resize_kind(C) C(NND_NEAREST, nearest) C(NND_LINEAR, linear) C(NND_CUBIC, cubic)

#define NND_CHOICES_resize_coordinates(C) \
  C(NND_HALF_PIXEL, half_pixel) C(NND_HALF_PIXEL_SYMMETRIC, half_pixel_symmetric) \
  C(NND_PYTORCH_HALF_PIXEL, pytorch_half_pixel) C(NND_ALIGN_CORNERS, align_corners) C(NND_ASYMMETRIC, asymmetric) \
  C(NND_CROP_AND_RESIZE, tf_crop_and_resize)

#define NND_CHOICES_resize_nearest(C) \
  C(NND_PREFER_FLOOR, round_prefer_floor) C(NND_PREFER_CEIL, round_prefer_ceil) C(NND_FLOOR, floor) \
  C(NND_CEIL, ceil)

#define NND_WORDS_resize_mode(W) \
  W(CHOICE, kind, resize_kind) W(CHOICE, coordinates, resize_coordinates) W(CHOICE, nearest, resize_nearest) \
  W(FLAG, excludes_outside) W(FLAG, antialias) \
  W(DOUBLE, cubic, -NND_MOST_NUMBER, NND_MOST_NUMBER) /* the coefficient */ \
  W(FLOAT, beyond, -__builtin_inf(), __builtin_inf()) /* what stands outside of the image */

#define NND_WORDS_resize_rule(W) \
  W(DOUBLE, scale, 0, NND_MOST_NUMBER) /* 0: the ratio of the sizes */ \
  W(DOUBLE, begin, -NND_MOST_NUMBER, NND_MOST_NUMBER) /* of what is resized, as end: parts of the axis */ \
  W(DOUBLE, end, -NND_MOST_NUMBER, NND_MOST_NUMBER)

#define NND_WORDS_resize(W) \
  W(INPUT, in) W(OUTPUT, out) W(RULE, depth) W(PART, mode, resize_mode) W(PART, rows, resize_rule) \
  W(PART, columns, resize_rule)

#define NND_WORDS_resize_axis(W) \
  W(INPUT, in) /* plain */ \
  W(OUTPUT, out) W(NUMBER, axis, 0, NND_MOST_RANK - 1) W(PART, mode, resize_mode) W(PART, rule, resize_rule)

#define NND_CHOICES_sample_kind(C) \
  C(NND_SAMPLE_LINEAR, linear) C(NND_SAMPLE_NEAREST, nearest) C(NND_SAMPLE_CUBIC, cubic)
#define NND_CHOICES_sample_padding(C) \
  C(NND_PAD_ZEROS, zeros) C(NND_PAD_BORDER, border) C(NND_PAD_REFLECTION, reflection)

#define NND_WORDS_grid_sample(W) \
  W(INPUT, in) W(INPUT, grid) /* plain (N, pixels..., axes), the last axis first */ \
  W(OUTPUT, out) W(NUMBER, axes, 2, 3) W(CHOICE, kind, sample_kind) W(CHOICE, padding, sample_padding) \
  W(FLAG, is_aligned) /* -1 and 1 are the middles of the corner pixels, not their edges */ \
  W(RULE, depth)

#define NND_WORDS_affine_grid(W) \
  W(INPUT, matrices) /* plain (N, axes, axes + 1) */ \
  W(OUTPUT, out) /* plain (N, sizes..., axes) */ \
  W(NUMBER, axes, 2, 3) W(FLAG, is_aligned)

#define NND_WORDS_roi_align(W) \
  W(INPUT, in) W(INPUT, rois) /* plain (R, 4) */ \
  W(INPUT_ANY, images) /* (R), int32 or int64 */ \
  W(OUTPUT, out) W(FLAG, is_max) /* of a bin, else the mean */ \
  W(NUMBER, samples, 0, NND_MOST_SAMPLES) /* along a side of a bin; 0: as many as it has pixels */ \
  W(DOUBLE, scale, -NND_FARTHEST, NND_FARTHEST) W(DOUBLE, offset, -NND_FARTHEST, NND_FARTHEST) \
  W(FLAG, is_least_one) /* a region is a pixel large at least */

#define NND_WORDS_roi_max_pool(W) \
  W(INPUT, in) W(INPUT, rois) /* plain (R, 5), the image first */ \
  W(OUTPUT, out) W(DOUBLE, scale, -NND_FARTHEST, NND_FARTHEST)

/* ---- Movement: movement.c, append.c, view.c, pad.c, gather.c. */

#define NND_WORDS_pair(W) W(INPUT, in) W(OUTPUT, out)

#define NND_WORDS_joined(W) W(INPUT_ANY, in)

/* Tensors one after the other: each (outer, its size). */
#define NND_WORDS_join(W) W(OUTPUT_ANY, out) W(RULE, outer) W(LIST, xs, joined, 1, NND_MOST_PARTS)

#define NND_WORDS_channel_part(W) W(INPUT, in)

#define NND_WORDS_channel_parts(W) \
  W(OUTPUT, out) W(LIST, xs, channel_part, 1, NND_MOST_PARTS) \
  W(PAIRS, channels) /* (number of the tensor, channel) of each channel of the output */

#define NND_WORDS_append(W) \
  W(OUTPUT_NUMBER, out) W(INPUT_NUMBER, past) W(INPUT_NUMBER, new) /* what stands behind it */ \
  W(NUMBER, axis, 0, NND_MOST_RANK - 1)

/* What is new begins at places, one for each element of the first axis; zeros come behind it, up to `length`. */
#define NND_WORDS_append_at(W) \
  NND_WORDS_append(W) W(INPUT_ANY, places) /* int32 or int64 */ \
  W(RULE, length)

#define NND_WORDS_strided_axis(W) W(RULE, size) W(RULE, step)

/* Element (i, j, ...) is number offset + i * step + j * step + ... of the input. */
#define NND_WORDS_view_copy(W) \
  W(INPUT_NUMBER, in) W(OUTPUT_NUMBER, out) W(RULE, offset) W(LIST, axes, strided_axis, 0, NND_VIEW_AXES)

/* It begins `stride` elements further on for each that the number counts, from the end of `size` where it is negative;
 * what is not from low to high is the nearer of both. */
#define NND_WORDS_view_move(W) \
  W(NUMBER, number, 0, NND_MOST_RANK - 1) W(RULE, size) W(RULE, stride) W(RULE, low) W(RULE, high)

#define NND_WORDS_view_at(W) \
  W(INPUT_ANY, in) W(INPUT_ANY, numbers) /* int32 or int64 */ \
  W(OUTPUT_ANY, out) W(RULE, offset) W(LIST, axes, strided_axis, 0, NND_VIEW_AXES) \
  W(LIST, moves, view_move, 0, NND_MOST_RANK)

/* Around 1 2 3: any number; 1 1 1 2 3 3 3; 3 2 1 2 3 2 1; 2 3 1 2 3 1 2. */
#define NND_CHOICES_pad_mode(C) \
  C(NND_PAD_VALUE, constant) C(NND_PAD_EDGE, edge) C(NND_PAD_REFLECT, reflect) C(NND_PAD_WRAP, wrap)

/* `size` of the output, of which `count` from `begin` on are elements, `step` apart in the input. */
#define NND_WORDS_pad_axis(W) W(RULE, size) W(RULE, begin) W(RULE, count) W(RULE, step)

#define NND_WORDS_padded_copy(W) \
  W(INPUT_ANY, in) W(INPUT_ANY, value) /* of one element, as in the others */ \
  W(OUTPUT_ANY, out) W(CHOICE, mode, pad_mode) W(RULE, offset) W(LIST, axes, pad_axis, 0, NND_MOST_RANK)

#define NND_WORDS_pad_axis_at(W) \
  W(RULE, size) W(RULE, count) W(RULE, step) \
  W(NUMBER, which, -1, 2 * NND_MOST_RANK - 1) /* of the numbers says what comes before; -1: nothing does */

#define NND_WORDS_padded_at(W) \
  W(INPUT_ANY, in) W(INPUT_ANY, value) \
  W(INPUT_ANY, numbers) /* int32 or int64: where one is negative, so many elements are left out */ \
  W(OUTPUT_ANY, out) W(CHOICE, mode, pad_mode) W(RULE, offset) W(LIST, axes, pad_axis_at, 0, NND_MOST_RANK)

#define NND_WORDS_pad_side(W) \
  W(RULE, begin) /* what comes before them */ \
  W(RULE, first) W(RULE, count)

#define NND_WORDS_padded_image(W) \
  W(INPUT_ANY, in) /* in blocks */ \
  W(INPUT_ANY, value) W(OUTPUT_ANY, out) W(CHOICE, mode, pad_mode) W(PART, rows, pad_side) \
  W(PART, columns, pad_side)

#define NND_WORDS_gather_places(W) \
  W(INPUT_ANY, in) W(OUTPUT_ANY, out) \
  W(INT32S, places) /* of each element of the output, in the order of ONNX; -1: a zero */

/* ---- Places that are data: indices.c, scatter.c, one_hot.c, reverse_sequence.c, triangle.c. */

#define NND_WORDS_picked(W) \
  W(INPUT_NUMBER, data) W(INPUT_ANY, numbers) /* int32 or int64, as in all that follow */ \
  W(OUTPUT_NUMBER, out) W(NUMBER, axis, 0, NND_MOST_RANK - 1) /* of gather_nd its batch axes */

/* What becomes of an element that an update meets. */
#define NND_CHOICES_reduction(C) C(NND_PUT, none) C(NND_ADD, add) C(NND_MUL, mul) C(NND_MAX, max) C(NND_MIN, min)

#define NND_WORDS_scatter_nd(W) \
  W(INPUT_ANY, data) W(INPUT_ANY, numbers) W(INPUT_ANY, updates) W(OUTPUT_ANY, out) W(CHOICE, reduction, reduction)

#define NND_WORDS_scatter_elements(W) NND_WORDS_scatter_nd(W) W(NUMBER, axis, 0, NND_MOST_RANK - 1)

#define NND_WORDS_one_hot(W) \
  W(INPUT_ANY, numbers) W(INPUT_ANY, values) /* off, on */ \
  W(OUTPUT_ANY, out) W(NUMBER, axis, 0, NND_MOST_RANK - 1)

#define NND_WORDS_reverse_sequence(W) W(INPUT_ANY, in) W(INPUT_ANY, lengths) W(OUTPUT_ANY, out) W(FLAG, is_time_first)

#define NND_WORDS_triangle(W) W(INPUT_ANY, in) W(INPUT_ANY, diagonal) W(OUTPUT_ANY, out) W(FLAG, is_upper)

/* ---- n-grams: grams.h, tf_idf.c, text_grams.c. */

/* A tree of them: what each ends with, what it goes on from (-1: nothing), where it counts (-1: nowhere) and, where not
 * one, by how much. */
#define NND_WORDS_grams(W) \
  W(CONSTANT, keys) /* int64 */ \
  W(INT32S, parents) W(INT32S, columns) W(FLOATS, weights) W(FLAG, is_once) W(NUMBER, skips, 0, INT32_MAX) \
  W(NUMBER, width, 1, INT32_MAX)

#define NND_WORDS_tf_idf(W) \
  W(INPUT_ANY, in) /* (length) or (rows, length) of int32 or int64 */ \
  W(OUTPUT, out) /* (width) or (rows, width) */ \
  W(PART, grams, grams)

#define NND_CHOICES_letter_case(C) C(NND_AS_IS, NONE) C(NND_LOWER, LOWER) C(NND_UPPER, UPPER)

#define NND_WORDS_tokens(W) \
  W(CONSTANT, words) /* uint8: one behind the other */ \
  W(INT32S, word_ends) W(CONSTANT, set) /* uint8 (256): the bytes of which one is in a token */ \
  W(CHOICE, letter_case, letter_case) W(FLAG, is_run) /* else each character is a token */ \
  W(NUMBER, least, 1, INT32_MAX)

#define NND_WORDS_text_grams(W) \
  W(INPUT_ANY, in) /* uint8: texts, one behind the other */ \
  W(INPUT_ANY, ends) /* (texts) of int64 */ \
  W(OUTPUT, out) /* (texts, width) */ \
  W(PART, tokens, tokens) W(PART, grams, grams)

/* ---- Recurrent layers, trees: recurrent.c, trees.c. */

#define NND_WORDS_activation(W) W(PROGRAM, program)

/* (directions, batch, hidden) each; none: zeros */
#define NND_WORDS_states(W) W(OPTIONAL, h) W(OPTIONAL, c)

/* Of float64: (rows, inner) by (inner, columns). */
#define NND_WORDS_double_product(W) \
  W(INPUT_ANY, a) W(INPUT_ANY, b) W(OUTPUT_ANY, out) W(RULE, rows) W(RULE, inner) W(RULE, columns)

#define NND_WORDS_recurrent_layer(W) \
  W(INPUT, gates) /* (steps, batch, directions, gates, hidden) */ \
  W(WEIGHT, scales) /* (directions, gates * hidden) of weights that are int8: of an lstm alone; behind them as many */ \
  /* zero points where they are not zero */ \
  W(WEIGHT_OR_BYTES, weights) /* (directions, gates * hidden, hidden) */ \
  W(PART, first, states) W(OPTIONAL_ANY, lengths) /* (batch) of int32; none: all steps */ \
  W(FLOATS, peepholes) /* (directions, 3 * hidden) */ \
  W(FLOATS, reset_bias) /* (directions, hidden) */ \
  W(FLAG, is_reverse) W(FLAG, is_joined) W(FLAG, resets_after) \
  W(REST, activations, activation, 6, 1) /* f, g and h of each direction, as many as the layer has; none: the usual */ \
  W(OUTPUT, out) /* (steps, batch, directions, hidden), or more steps: the last h, and of an lstm the last c */

#define NND_CHOICES_tree_aggregate(C) C(NND_TREES_SUM, sum) C(NND_TREES_MIN, min) C(NND_TREES_MAX, max)

/* A node (feature, child, relations): an element that has one of the relations to the threshold takes the node behind
 * `child`, any other one `child`; a leaf has relations -1, and its numbers begin at `child`. */
#define NND_WORDS_tree_tables(W) \
  W(INT32S, trees) /* (trees, 3): first node, first column, number of columns */ \
  W(FLOATS, thresholds) /* (nodes) */ \
  W(INT32S, nodes) /* (nodes, 3) */ \
  W(FLOATS, leaves)

#define NND_WORDS_trees(W) \
  W(INPUT, in) /* (rows, features) */ \
  W(OUTPUT, out) /* (rows, columns) */ \
  W(CHOICE, aggregate, tree_aggregate) W(NUMBER, divisor, 1, NND_MOST_NODES) W(NUMBER, columns, 1, INT32_MAX) \
  W(PART, tables, tree_tables) W(FLOATS, base) /* (columns) */

/* Slopes and offsets of the logistic function of each pair of classes. */
#define NND_WORDS_pairwise_shares(W) \
  W(INPUT, in) /* (rows, pairs) */ \
  W(OUTPUT, out) /* (rows, classes) */ \
  W(NUMBER, classes, 2, NND_MOST_CLASSES) W(FLOATS, slopes) W(FLOATS, offsets)

/* clang-format on */

#endif
