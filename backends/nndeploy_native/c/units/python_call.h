/* SPDX-License-Identifier: Apache-2.0
 *
 * Row units as a function of Python, called with its arrays as they are: their addresses, sizes and strides are read
 * here by the buffer protocol. That is several times faster than ctypes and asking for them in Python. Functions and
 * structures are those of Python's stable interface (3.11 and later); the caller hands the functions over, nothing is
 * linked.
 */
#ifndef NND_UNITS_PYTHON_CALL_H
#define NND_UNITS_PYTHON_CALL_H

#include "rows.h"

#define NND_BUFFER_FORMAT_AND_STRIDES 0x1c /* PyBUF_FORMAT | PyBUF_STRIDES */
#define NND_FAST_CALL 0x80                /* METH_FASTCALL */
#define NND_ALONE_FLOATS 16384 /* calls of fewer keep the interpreter's lock: they end before another thread would run */

struct nnd_py_buffer {
  void *data, *object;
  nnd_size bytes, item_bytes;
  int readonly, rank;
  char *format;
  nnd_size *sizes, *strides, *suboffsets;
  void *internal;
};

struct nnd_python {
  int (*get_buffer)(void *object, struct nnd_py_buffer *to, int flags);
  void (*release_buffer)(struct nnd_py_buffer *buffer);
  void *(*save_thread)(void);
  void (*restore_thread)(void *state);
  void *(*pointer_of)(void *number);
  void *(*number_of)(long value);
};

/* What a function is bound to: its `self` is the address of this, as a number. */
struct nnd_bound_rows {
  const struct nnd_rows *rows;
  float epsilon;
};

/* PyMethodDef */
struct nnd_method {
  const char *name;
  void *(*function)(void *self, void *const *argument, nnd_size count);
  int flags;
  const char *doc;
};

static struct nnd_python nnd_python; /* of the one interpreter; set before the first call */

/* Writes one tensor as nnd_read_places reads it; returns an nnd_placing. */
NND_INLINE int nnd_tensor_of(const struct nnd_py_buffer *buffer, int is_output, int64_t **to) {
  if (!buffer->format || strcmp(buffer->format, "f")) return NND_NOT_FLOATS;
  if (is_output && buffer->readonly) return NND_READ_ONLY;
  if (buffer->rank > NND_PLACE_RANK) return NND_TOO_MANY_AXES;
  int64_t *at = *to;
  *at++ = (int64_t)(intptr_t)buffer->data;
  *at++ = buffer->rank;
  for (int axis = 0; axis < buffer->rank; axis++) *at++ = buffer->sizes[axis];
  for (int axis = 0; axis < buffer->rank; axis++) *at++ = buffer->strides[axis];
  *to = at;
  return NND_PLACED;
}

/* Objects: the output and the operands; called with the interpreter's lock held. Returns an nnd_placing, or -1 with an
 * exception set. */
static int nnd_rows_call(const struct nnd_bound_rows *bound, const struct nnd_table *table, void *const *object,
                         int count) {
  const struct nnd_python *python = &nnd_python;
  struct nnd_py_buffer buffer[NND_PLACES];
  int64_t tensors[NND_PLACES * (2 + 2 * NND_PLACE_RANK)], *to = tensors;
  int held = 0, error = 0;
  nnd_size floats = 0;
  for (; held < count && !error; held++) {
    if (python->get_buffer(object[held], &buffer[held], NND_BUFFER_FORMAT_AND_STRIDES)) {
      error = -1;
      break;
    }
    error = nnd_tensor_of(&buffer[held], held == 0, &to);
    floats = nnd_max(floats, buffer[held].bytes / (nnd_size)sizeof(float));
  }
  if (!error) {
    void *state = floats > NND_ALONE_FLOATS ? python->save_thread() : 0;
    error = nnd_rows_run(bound->rows, table, tensors, count, bound->epsilon);
    if (state) python->restore_thread(state);
  }
  for (int i = 0; i < held; i++) python->release_buffer(&buffer[i]);
  return error;
}

/* Arguments: the address of a table, 0 for that of the first shape; the output; 1 to 16 operands. Returns the number of
 * an nnd_placing, or null with an exception set. */
static void *nnd_rows_function(void *self, void *const *argument, nnd_size count) {
  const struct nnd_bound_rows *bound = nnd_python.pointer_of(self);
  const int error = nnd_rows_call(bound, nnd_python.pointer_of(argument[0]), argument + 1, (int)count - 1);
  return error < 0 ? 0 : nnd_python.number_of(error);
}

static const struct nnd_method nnd_rows_method = {"rows", nnd_rows_function, NND_FAST_CALL, 0};

#endif
