/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/int8_window.h"

int nnd_open_int8_window(struct nnd_opener *o, struct nnd_int8_window *w, const struct nnd_int8_convolution *words,
                         struct nnd_int8_record *r) {
  w->groups = words->groups;
  for (int i = 0; i < 2; i++) {
    w->stride[i] = words->window.strides[i], w->dilation[i] = words->window.dilations[i];
    w->pad[i] = words->window.pads[i];
  }
  const struct nnd_weight_data *weights = r->weights;
  if (weights->rank != 4 || weights->count < 1 || weights->sizes[0] % w->groups)
    return nnd_fail(o->message, "a convolution of bytes without weights that fit it");
  w->kernel[0] = weights->sizes[1], w->kernel[1] = weights->sizes[2], w->channels = weights->sizes[3];
  r->columns = weights->sizes[0], r->inner = w->kernel[0] * w->kernel[1] * w->channels;
  return 1;
}

int nnd_make_int8_window(struct nnd_maker *m, const struct nnd_int8_window *w, const struct nnd_int8_record *r,
                         struct nnd_int8_image *image) {
  const struct nnd_shape *in = nnd_shape_of(m, r->a), *out = nnd_shape_of(m, r->out);
  if (in->rank != 4 || out->rank != 4 || in->is_blocked || in->sizes[0] != out->sizes[0] || in->sizes[3] % w->groups ||
      in->sizes[3] / w->groups != w->channels || out->sizes[3] != r->columns)
    return nnd_fail(m->message, "the images of a convolution of bytes do not fit its weights");
  struct nnd_axis *axes[2] = {&image->y, &image->x};
  for (int i = 0; i < 2; i++) {
    const nnd_size pad = nnd_size_of(m, w->pad[i]);
    *axes[i] = (struct nnd_axis){in->sizes[1 + i], out->sizes[1 + i], w->kernel[i], w->stride[i], w->dilation[i], pad};
    if (pad < 0 || pad > NND_MOST_STEP)
      return nnd_fail(m->message, "a convolution of bytes has %lld pixels before it", (long long)pad);
  }
  image->images = in->sizes[0], image->channels = in->sizes[3];
  image->pixels = out->sizes[0] * out->sizes[1] * out->sizes[2];
  return nnd_give_int8(m, r, image->pixels);
}
