/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of tensors as float64 or int64.
 */
#ifndef NND_COMMAND_NUMBERS_H
#define NND_COMMAND_NUMBERS_H

#include "runtime/nndeploy.h"

int64_t nnd_num_elements(const nnd_tensor *tensor);
int nnd_is_real(const nnd_tensor *tensor);
double nnd_number_at(const nnd_tensor *tensor, int64_t at);   /* 0 of a text */
int64_t nnd_integer_at(const nnd_tensor *tensor, int64_t at); /* of a tensor that is not real */

/* Writes sizes as "[2,?,3]", of which those below 0 are open. */
#define NND_SHAPE_TEXT 200 /* of NND_MAX_RANK numbers */
void nnd_shape_text(int rank, const int64_t *shape, char text[NND_SHAPE_TEXT]);

#endif
