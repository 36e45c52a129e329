/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution as the words of a step tell it, with its weights packed; fused steps hold several.
 */
#ifndef NND_CONV_RECORD_H
#define NND_CONV_RECORD_H

#include "model/words.h"

struct nnd_conv {
  int in, out, residual; /* tensors; residual -1: none */
  nnd_size in_channels, out_channels, groups;
  nnd_size kernel[2], stride[2], dilation[2], pad[2]; /* pads are rules */
  const struct nnd_weight_data *plain;
  const float *weights; /* as they are in the plan; where they are packed only until then */
  const void *packed;
  const float *bias, *numbers; /* whole vectors */
  struct nnd_end end;
};

enum nnd_packing { NND_PACK_PRODUCTS, NND_PACK_PLANAR, NND_PACK_DEPTHWISE };

NND_RECORD(conv_record)
NND_RECORD(depth)
NND_RECORD(volume_conv)
NND_RECORD(two_convs)
NND_RECORD(three_convs)

/* Takes what words say; `reads` and `writes` say whether the input and the output are the step's own. Returns 1, or 0
 * with a message. */
int nnd_open_conv(struct nnd_opener *o, const struct nnd_conv_record *words, struct nnd_conv *c, int reads, int writes);
int nnd_pack_conv(struct nnd_opener *o, struct nnd_conv *c, enum nnd_packing how);

/* Groups: for each output block the first of the `span` input channels, whole blocks, that hold all groups of any output
 * block. */
struct nnd_grouped {
  nnd_size span;
  nnd_size *begins; /* in blocks */
};

/* Packs weights of groups: [O / c] dense panels of one vector over `span` channels, zeros where another group is. */
int nnd_pack_grouped(struct nnd_opener *o, struct nnd_conv *c, struct nnd_grouped *g);
/* The channels that there are of those that a block reads: lanes behind the last one hold anything. */
nnd_size nnd_grouped_held(const struct nnd_grouped *g, nnd_size in_channels, nnd_size block);

int nnd_fits_depth(struct nnd_opener *o, const struct nnd_conv *c, const struct nnd_depth *depth);
/* The axes (depth, rows, columns) for these shapes; 0 with a message where they do not fit it. */
int nnd_volume_axes(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_depth *depth,
                    struct nnd_axis axes[3]);

int nnd_is_depthwise(const struct nnd_conv *c);
int nnd_is_pointwise(const struct nnd_maker *m, const struct nnd_conv *c);

/* The axes of a convolution for these shapes; 0 with a message where they do not fit it. */
int nnd_conv_axes(struct nnd_maker *m, const struct nnd_conv *c, struct nnd_axis *y, struct nnd_axis *x);

/* The output channel of a lane of packed weights, -1 where there is none: halves of a last vector are there twice. */
nnd_size nnd_output_of_lane(nnd_size outputs, nnd_size lane);

/* Numbers of channels (bias, slopes) as whole vectors, zeros beyond, and where there are none. */
const float *nnd_pack_channels(struct nnd_opener *o, const struct nnd_weight_data *values, nnd_size channels);

#endif
