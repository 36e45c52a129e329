/* SPDX-License-Identifier: Apache-2.0
 *
 * Image units called with Python's arrays as they are, (N, C, H, W) at any strides of the input.
 */
#ifndef NND_UNITS_IMAGES_H
#define NND_UNITS_IMAGES_H

#include "images_separable.h"
#include "python_call.h"

/* Why a call is refused; the numbers go on from nnd_placing's. */
enum nnd_image_refusal { NND_NOT_IMAGES = 16, NND_WRONG_OUT = 17, NND_OUT_PLANES = 18, NND_SHARES = 19 };

enum nnd_image_kind { NND_CONVOLUTION = 0, NND_DEPTHWISE_ALONE = 1, NND_SEPARABLE = 2, NND_MAXIMA = 3, NND_MEANS = 4 };

/* One of the three is there. */
struct nnd_images {
  struct nnd_image_form form;
  nnd_size out_channels;
  struct nnd_convolution *convolution;
  struct nnd_planar *planar;
  struct nnd_separable *separable;
};

struct nnd_image_array {
  struct nnd_image image;
  nnd_size size[4];
  uintptr_t low, high; /* the first byte, and the one behind the last */
};

/* Reads an array's buffer; returns 0 or why it is refused. */
NND_INLINE int nnd_image_of(const struct nnd_py_buffer *buffer, struct nnd_image_array *to) {
  if (!buffer->format || strcmp(buffer->format, "f")) return NND_NOT_FLOATS;
  if (buffer->rank != 4) return NND_NOT_IMAGES;
  nnd_size misaligned = (nnd_size)(intptr_t)buffer->data, below = 0, above = (nnd_size)sizeof(float);
  to->image.data = buffer->data;
  for (int axis = 0; axis < 4; axis++) {
    const nnd_size reach = buffer->strides[axis] * (buffer->sizes[axis] - 1);
    misaligned |= buffer->strides[axis];
    below += nnd_min(reach, 0);
    above += nnd_max(reach, 0);
    to->size[axis] = buffer->sizes[axis];
    nnd_bind_image(&to->image, axis, buffer->strides[axis] / (nnd_size)sizeof(float), 0);
  }
  to->low = (uintptr_t)buffer->data + (uintptr_t)below;
  to->high = (uintptr_t)buffer->data + (uintptr_t)above;
  return misaligned % (nnd_size)sizeof(float) ? NND_MISALIGNED : 0;
}

/* Whether the sizes of input and output fit the form and each other. */
NND_INLINE int nnd_check_images(const struct nnd_image_form *form, nnd_size out_channels,
                                const struct nnd_image_array *in, const struct nnd_image_array *out) {
  const struct nnd_axis y = nnd_image_axis(form, 0, in->size[2]), x = nnd_image_axis(form, 1, in->size[3]);
  if (in->size[1] != form->channels || !y.out_size || !x.out_size) return NND_NOT_IMAGES;
  if (out->size[0] != in->size[0] || out->size[1] != out_channels || out->size[2] != y.out_size ||
      out->size[3] != x.out_size)
    return NND_WRONG_OUT;
  const nnd_size *stride = out->image.stride;
  if ((x.out_size > 1 && stride[3] != 1) || (y.out_size > 1 && stride[2] != x.out_size)) return NND_OUT_PLANES;
  return in->size[0] && in->low < out->high && out->low < in->high ? NND_SHARES : 0;
}

static nnd_size nnd_images_run(struct nnd_images *op, const struct nnd_table *table, const struct nnd_image_array *in,
                               const struct nnd_image_array *out, float *scratch, nnd_size floats) {
  const struct nnd_image_shape shape = {in->size[0], in->size[2], in->size[3]};
  const struct nnd_image *from = &in->image, *to = &out->image;
  if (op->convolution) return nnd_convolution_run(op->convolution, table, &shape, from, to, scratch, floats);
  if (op->planar) return nnd_planar_run(op->planar, table, &shape, from, to, scratch, floats);
  return nnd_separable_run(op->separable, table, &shape, from, to, scratch, floats);
}

/* Objects: the output and the input; called with the interpreter's lock held. `table` null: the operator's own. Returns
 * 0; the floats of scratch that it needs where `floats` is less; or less than 0: - nnd_placing or - nnd_image_refusal,
 * and -1 where an exception is set. Nothing is written where it is not 0. */
static nnd_size nnd_images_call(struct nnd_images *op, const struct nnd_table *table, const struct nnd_python *python,
                                void *const *object, float *scratch, nnd_size floats) {
  struct nnd_py_buffer buffer[2];
  struct nnd_image_array array[2];
  nnd_size result = 0, elements = 0;
  int held = 0, refusal = 0;
  for (; held < 2 && !refusal; held++) {
    if (python->get_buffer(object[held], &buffer[held], NND_BUFFER_FORMAT_AND_STRIDES)) {
      result = -1;
      break;
    }
    refusal = buffer[held].readonly && held == 0 ? NND_READ_ONLY : nnd_image_of(&buffer[held], &array[held]);
    elements = nnd_max(elements, buffer[held].bytes / (nnd_size)sizeof(float));
  }
  if (!result && !refusal) refusal = nnd_check_images(&op->form, op->out_channels, &array[1], &array[0]);
  if (refusal) result = -refusal;
  if (!result && array[1].size[0]) {
    void *state = elements > NND_ALONE_FLOATS ? python->save_thread() : 0;
    result = nnd_images_run(op, table, &array[1], &array[0], scratch, floats);
    if (state) python->restore_thread(state);
  }
  for (int i = 0; i < held; i++) python->release_buffer(&buffer[i]);
  return result;
}

static void nnd_images_close(struct nnd_images *op) {
  if (!op) return;
  nnd_convolution_close(op->convolution);
  nnd_planar_close(op->planar);
  nnd_separable_close(op->separable);
  free(op);
}

/* Weights and biases are copied; `point` is of a separable pair, `counts_padding` of means. */
static struct nnd_images *nnd_images_open(int kind, const struct nnd_image_form *form, const float *weights,
                                          const float *bias, const struct nnd_pointwise_part *point, int counts_padding,
                                          const struct nnd_image_costs *costs) {
  struct nnd_images *op = calloc(1, sizeof *op);
  if (!op) return 0;
  op->form = *form;
  op->out_channels = kind == NND_SEPARABLE ? point->out_channels : form->out_channels;
  if (kind == NND_CONVOLUTION) op->convolution = nnd_convolution_open(form, weights, bias, costs);
  else if (kind == NND_SEPARABLE) op->separable = nnd_separable_open(form, weights, bias, point, costs);
  else {
    const int unit = kind == NND_MAXIMA ? NND_POOL_MAX : kind == NND_MEANS ? NND_POOL_MEAN : NND_DEPTHWISE;
    op->planar = nnd_planar_open(form, unit, counts_padding, weights, bias);
  }
  if (op->convolution || op->planar || op->separable) return op;
  nnd_images_close(op);
  return 0;
}

/* Writes the table that an operator has for a length of axis 0 (vectors of positions, of a window's pixels, or rows of
 * a window); `rows` of a window of a separable pair; with `columns` the length is the pixels of a row or window;
 * `in_place` of a convolution. */
static void nnd_images_table(struct nnd_images *op, nnd_size length, nnd_size rows, int columns, int in_place,
                             int quick, struct nnd_table *to) {
  if (op->convolution) {
    if (quick) nnd_compose_convolution(op->convolution, length, columns, in_place, 1, to);
    else nnd_convolution_table(op->convolution, length, columns, in_place, to);
  } else if (op->planar) {
    if (quick) nnd_compose_planar(op->planar, length, 1, to);
    else nnd_planar_table(op->planar, length, to);
  } else if (quick) nnd_compose_separable(op->separable, rows, length, columns, 1, to);
  else nnd_separable_table(op->separable, rows, length, columns, to);
}

#endif
