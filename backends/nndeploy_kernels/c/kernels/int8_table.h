/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one byte as a table of all that they can be: a program is run once for each of the 256 bytes, and is not
 * computed again. Law: what is looked up is what the program gives, bit for bit.
 */
#ifndef NND_INT8_TABLE_H
#define NND_INT8_TABLE_H

#include "base/program.h"

#define NND_INT8_TABLE 256

/* Makes the table of a program of one operand, from bytes of element `from` to those of element `to`. */
void nnd_int8_make_table(const struct nnd_program *program, int from, int to, uint8_t *table);

/* Looks bytes up; `to` may be `from`. */
void nnd_int8_look_up(const uint8_t *table, const uint8_t *from, nnd_size count, uint8_t *to);

#endif
