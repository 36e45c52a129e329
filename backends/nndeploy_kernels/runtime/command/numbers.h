/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of tensors, and numbers of JSON, as float64.
 */
#ifndef NND_COMMAND_NUMBERS_H
#define NND_COMMAND_NUMBERS_H

#include "runtime/json.h"

int64_t nnd_num_elements(const nnd_tensor *tensor);
int nnd_is_real(const nnd_tensor *tensor);
double nnd_number_at(const nnd_tensor *tensor, int64_t at);
int64_t nnd_integer_at(const nnd_tensor *tensor, int64_t at); /* of a tensor that is not real */

/* Returns 1 and the number, 0 where `at` is null or none. */
int nnd_json_number(const struct nnd_json *at, double *number);

#endif
