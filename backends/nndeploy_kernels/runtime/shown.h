/* SPDX-License-Identifier: Apache-2.0
 *
 * What a field holds, as messages show it: the first letters of what Python prints of the value.
 */
#ifndef NND_RUNTIME_SHOWN_H
#define NND_RUNTIME_SHOWN_H

#include "runtime/json.h"

#define NND_SHOWN 84 /* of 80 letters, with what is behind them */

/* Writes at most `most` letters of a value or a text. */
const char *nnd_shown(const struct nnd_json *value, int most, char shown[NND_SHOWN]);
const char *nnd_shown_text(const struct nnd_text *text, int most, char shown[NND_SHOWN]);

#endif
