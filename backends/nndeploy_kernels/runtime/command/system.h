/* SPDX-License-Identifier: Apache-2.0
 *
 * All that the command asks of the system, beside what the runtime does (`runtime/inside.h`). Paths are UTF-8.
 */
#ifndef NND_COMMAND_SYSTEM_H
#define NND_COMMAND_SYSTEM_H

#include <stdint.h>
#include <stdio.h>

/* Makes the words of the command UTF-8, and the standard streams such that bytes pass as they are. */
void nnd_process_begin(int *count, char ***words);
/* Returns the file name of a path. */
const char *nnd_base_name(const char *path);

/* Opens a file to be read, or a new one to be written; null and `errno` where it cannot. */
FILE *nnd_file_open(const char *path);
FILE *nnd_file_create(const char *path);
/* Returns the bytes that a file has, 0 of a pipe, -1 of a folder. */
int64_t nnd_file_size(FILE *file);
/* Reads to the end of a line into memory of malloc, which grows; returns the bytes, -1 where there are no more. */
int64_t nnd_line_read(char **line, size_t *room, FILE *from);
/* Returns 1 where a folder or another file of this path is there, or 0 and `errno`. */
int nnd_folder_make(const char *path);

/* Maps the file of this program for as long as the process lives; returns null where it cannot. */
const uint8_t *nnd_program_map(int64_t *size);
/* Returns how many of its bytes are the program itself. */
int64_t nnd_program_end(const uint8_t *program, int64_t size);

int64_t nnd_nanoseconds(void);

#endif
