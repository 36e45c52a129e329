/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels find out once: which tiles there are, and which instructions the processor has beside those of the level.
 */
#ifndef NND_BEGIN_H
#define NND_BEGIN_H

/* Finds it out where nobody has; whoever calls kernels calls this before. Not done when a library is loaded: a program
 * holds the kernels of several levels, and uses those of one. */
void nnd_begin(void);

/* The parts of it, one for each file that is compiled once for each way (kernels/tile.c), and those of bytes. */
void nnd_begin_tiles_0(void);
void nnd_begin_tiles_1(void);
void nnd_begin_tiles_2(void);
void nnd_begin_tiles_3(void);
void nnd_begin_tiles_4(void);
void nnd_begin_int8_tiles(void);
void nnd_begin_int8_tables(void);
#ifdef NND_BF16
void nnd_begin_bf16_tiles(void);
#else
void nnd_begin_thirds(void);
#endif

#endif
