/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan that was read, and what a table holds.
 *
 * Everything here lies in private memory: of the bytes of a plan nothing is read twice. Numbers of a plan are checked
 * where they are read (reader.c), what depends on the shapes of inputs where a table is made (table.c, ops/).
 */
#ifndef NND_MODEL_H
#define NND_MODEL_H

#include "base/elements.h"
#include "base/step.h"
#include "nndeploy_kernels.h"

#define NND_MOST_RANK 8
#define NND_MOST_READS 16
#define NND_MOST_NAMED 28
#define NND_MOST_OPERANDS 20
#define NND_MOST_BYTES ((nnd_size)1 << (sizeof(void *) == 8 ? 40 : 31)) /* of what memory can hold */
#define NND_ALIGNMENT 64

/* Memory that is given back at once. */
struct nnd_memory {
  struct nnd_region *regions;
  nnd_size total;
};

/* Returns zeroed memory that begins at a cache line, null where there is none. */
void *nnd_memory_take(struct nnd_memory *memory, nnd_size num_bytes);
void nnd_memory_free(struct nnd_memory *memory);

/* Where one line about what went wrong goes; only the first is kept. */
struct nnd_message {
  char *text;
  nnd_size num_bytes;
  int failed;
};

/* Keeps a message; returns 0. */
int nnd_fail(struct nnd_message *message, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum nnd_size_kind {
  NND_SIZE_CONSTANT,
  NND_SIZE_SYMBOL,
  NND_SIZE_ADD,
  NND_SIZE_MULTIPLY,
  NND_SIZE_DIVIDE,
  NND_SIZE_MIN,
  NND_SIZE_MAX,
  NND_NUM_SIZE_KINDS
};

/* A size: of numbers of earlier sizes `a` and `b`; of a constant or a symbol `a` is the number itself. */
struct nnd_size_rule {
  int kind;
  nnd_size a, b;
};

enum nnd_value_kind { NND_VALUE_ARENA, NND_VALUE_INPUT, NND_VALUE_OUTPUT, NND_VALUE_WEIGHT, NND_NUM_VALUE_KINDS };

/* `number` of an input, output or weight. `writer` and `last_reader`: steps, -1 where there is none. */
struct nnd_value {
  int kind, writer, last_reader;
  nnd_size number;
};

/* A value as a step sees it: sizes are numbers of size rules. Blocked: (N, C, H, W) in channel blocks. */
struct nnd_tensor {
  nnd_size value;
  int element, is_blocked, rank;
  nnd_size sizes[NND_MOST_RANK];
};

/* `widened`: the float32 that one of float16 was made when it was first read as such, in memory of the model. */
struct nnd_weight_data {
  int element, rank, readers, is_own;
  struct nnd_weight_data *widened;
  nnd_size sizes[NND_MOST_RANK], count;
  const void *data;
};

extern const nnd_size nnd_element_bytes[NND_NUM_ELEMENTS];

struct nnd_op;

/* `own` is what the operator made of its words when it was opened; `takes_empty`: it is made although a value that it
 * names has no elements. */
struct nnd_step {
  const struct nnd_op *op;
  const char *label;
  const int64_t *words;
  nnd_size num_words;
  int num_reads, reads[NND_MOST_READS], writes, num_named, named[NND_MOST_NAMED]; /* tensors */
  int takes_empty;
  void *own;
};

struct nnd_model {
  struct nnd_memory memory, packed;
  struct nnd_options options;
  int64_t *words;
  nnd_size num_symbols, num_rules, num_values, num_tensors, num_inputs, num_outputs, num_weights, num_programs,
      num_steps;
  struct nnd_size_rule *rules;
  struct nnd_value *values;
  struct nnd_tensor *tensors;
  nnd_size *inputs, *outputs; /* tensors */
  struct nnd_weight_data *weights;
  struct nnd_program *programs;
  struct nnd_end *ends; /* of each program, without numbers and residuals that a step has */
  struct nnd_step *steps;
  struct nnd_pending *pending, *last_pending; /* while a plan is read */
  nnd_size image_used;                        /* -1: it is too small */
};

/* Where an operand lies: `base` 0: `offset` is an address; 1: in the arena; 2 ...: inputs, then outputs. */
struct nnd_operand {
  nnd_size base, offset;
};

/* A step for the shapes of a table. `chunks`: into how many each worker's share is cut; `is_small`: one worker does all
 * of it, because sharing it would take longer. */
struct nnd_instance {
  void (*run)(const void *fields, void *const *at, struct nnd_part part);
  const void *fields;
  int num_operands, chunks, is_small;
  nnd_size scratch_bytes, kept_bytes; /* as nnd_table_step_bytes() tells them */
  struct nnd_operand operands[NND_MOST_OPERANDS];
  char shown[96];
};

/* The sizes of a tensor for the shapes of a table. */
struct nnd_shape {
  int rank, is_blocked, element;
  nnd_size sizes[NND_MOST_RANK], count, num_bytes;
};

struct nnd_table {
  const struct nnd_model *model;
  struct nnd_memory memory;
  struct nnd_shape *shapes;  /* of the model's tensors */
  nnd_size *sizes, *offsets; /* of the model's rules; of its values in the arena */
  nnd_size arena_bytes, scratch_bytes;
  struct nnd_instance *instances;
  int all_small; /* all steps are */
};

/* Returns the end that a program is: one of those that are compiled into the kernels where it is one. */
struct nnd_end nnd_end_of_program(const struct nnd_program *program);

/* A step while it is opened. */
struct nnd_opener {
  struct nnd_model *model;
  struct nnd_step *step;
  nnd_size at; /* the next word */
  int output;  /* the tensor that the step writes, -1 until its word was read */
  struct nnd_message *message;
};

/* A step while its instance is made. */
struct nnd_maker {
  struct nnd_table *table;
  const struct nnd_step *step;
  const struct nnd_choice *choice; /* never null */
  struct nnd_instance *instance;
  nnd_size scratch_bytes;
  struct nnd_message *message;
};

/* Makes the parts `first` to `last` of what packing comes to; no part needs another. */
typedef void (*nnd_packer)(const void *fields, nnd_size first, nnd_size last);

/* Both return 1, or 0 with a message. A step that writes no element is not made. */
struct nnd_op {
  const char *name;
  int (*open)(struct nnd_opener *o);
  int (*make)(struct nnd_maker *m);
};

extern const struct nnd_op *const nnd_ops[];

/* What operators ask for while they are opened; each keeps a message and returns what does no harm where it is not
 * there. */
int64_t nnd_word(struct nnd_opener *o, int64_t low, int64_t high);     /* the next word, between two bounds */
double nnd_double_word(struct nnd_opener *o, double low, double high); /* the same as a double */
int nnd_read_tensor(struct nnd_opener *o);                             /* a tensor of float32 that the step reads */
int nnd_read_optional_tensor(struct nnd_opener *o);                    /* the same; -1 where the word is -1 */
int nnd_read_any_tensor(struct nnd_opener *o);                         /* one of any element but float16 */
int nnd_read_any_optional_tensor(struct nnd_opener *o);
int nnd_read_number_tensor(struct nnd_opener *o);  /* of any element, also float16 */
int nnd_write_number_tensor(struct nnd_opener *o); /* the same that it writes, and does not read */
int nnd_write_tensor(struct nnd_opener *o);        /* the tensor of float32 that it writes */
int nnd_write_any_tensor(struct nnd_opener *o);    /* the same of any element */
int nnd_seen_tensor(struct nnd_opener *o);         /* one that has no memory, or is told elsewhere */
void nnd_reads(struct nnd_opener *o, int tensor);  /* one of float32 that was seen is read, */
void nnd_writes(struct nnd_opener *o, int tensor); /* or written */
/* float32, or made of float16; null where the word is -1 */
const struct nnd_weight_data *nnd_read_weight(struct nnd_opener *o);
const struct nnd_weight_data *nnd_read_any_weight(struct nnd_opener *o); /* of any type */
/* One of any type as one of float32, as above; as what it must be. */
const struct nnd_weight_data *nnd_float_weight(struct nnd_opener *o, const struct nnd_weight_data *weight);
const struct nnd_weight_data *nnd_constant_of(struct nnd_opener *o, const struct nnd_weight_data *weight, int element);
int nnd_rest_of_words(struct nnd_opener *o, int each, int most, int behind); /* how many of `each` words there are */
nnd_size nnd_read_pairs(struct nnd_opener *o, const int64_t **pairs);        /* at least one; of numbers of any size */
const struct nnd_program *nnd_read_program(struct nnd_opener *o);            /* of float32; null where the word is -1 */
const struct nnd_program *nnd_read_any_program(struct nnd_opener *o);        /* the same of any domain */
nnd_size nnd_read_rule(struct nnd_opener *o);
void *nnd_own(struct nnd_opener *o, nnd_size num_bytes);
void *nnd_packed(struct nnd_opener *o, nnd_size num_bytes);
/* The same for what nnd_pack() makes of a weight, which lies in the caller's image where the weight is large. */
void *nnd_packed_of(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_size num_bytes);
/* Packs a weight into memory of nnd_packed_of(), and no other: a small one at once, others by several threads when the
 * whole plan was read, or not at all where the image has them. Where this is the only reader the weight is gone then.
 * `fields` are copied. `part_bytes`: how much each part reads of the weight, one behind the other; 0 where they do not
 * read it so. */
void nnd_pack(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_packer pack, const void *fields,
              nnd_size fields_bytes, nnd_size parts, nnd_size part_bytes);
void nnd_reads_again(const struct nnd_weight_data *weight); /* a step packs it twice */
void nnd_pack_all(struct nnd_model *model);
struct nnd_end nnd_end_of(const struct nnd_opener *o, const struct nnd_program *program, int has_residual,
                          int has_number);

/* What they ask for while an instance is made. */
const struct nnd_shape *nnd_shape_of(const struct nnd_maker *m, int tensor);
nnd_size nnd_size_of(const struct nnd_maker *m, nnd_size rule);
void nnd_give_tensor(struct nnd_maker *m, int tensor); /* -1: a null pointer */
void nnd_give(struct nnd_maker *m, const void *address);
void *nnd_fields(struct nnd_maker *m, nnd_size num_bytes);
/* Tells about how many operations a step comes to: `each` multiply-adds, or what takes as long, of `count`. A step
 * of which nothing is told is never small. */
void nnd_tell_operations(struct nnd_maker *m, nnd_size count, nnd_size each);

#endif
