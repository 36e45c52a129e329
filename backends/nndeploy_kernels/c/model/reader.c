/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a plan -> a model: every number is checked where it is read, and every value is written before it is read.
 */
#include <stdlib.h>

#include "kernels/begin.h"
#include "model/expected.h"
#include "model/plan.h"

struct nnd_reader {
  const int64_t *words;
  nnd_size count, at;
  struct nnd_message *message;
};

static int64_t nnd_next(struct nnd_reader *r, int64_t low, int64_t high, const char *what) {
  if (r->at >= r->count) return nnd_fail(r->message, "the plan ends before %s", what) + low;
  const int64_t word = r->words[r->at++];
  if (word < low || word > high)
    return nnd_fail(r->message, "the plan has %s %lld at word %lld", what, (long long)word, (long long)r->at - 1) + low;
  return word;
}

/* How many of something follow, and memory for them. */
static void *nnd_table_of(struct nnd_reader *r, struct nnd_model *model, nnd_size *count, nnd_size each,
                          const char *what) {
  *count = (nnd_size)nnd_next(r, 0, NND_MOST_COUNT, what);
  if (*count > r->count) { /* each takes at least a word */
    nnd_fail(r->message, "the plan is too short for %lld %s", (long long)*count, what);
    *count = 0;
  }
  void *memory = nnd_memory_take(&model->memory, nnd_max(1, *count) * each);
  if (!memory) {
    nnd_fail(r->message, "no memory for %lld %s", (long long)*count, what);
    *count = 0;
  }
  return memory;
}

static void nnd_read_rules(struct nnd_reader *r, struct nnd_model *model) {
  model->rules = nnd_table_of(r, model, &model->num_rules, sizeof *model->rules, "sizes");
  for (nnd_size i = 0; i < model->num_rules && !r->message->failed; i++) {
    struct nnd_size_rule *one = &model->rules[i];
    one->kind = (int)nnd_next(r, 0, NND_NUM_SIZE_KINDS - 1, "the kind of a size");
    if (one->kind == NND_SIZE_CONSTANT) {
      one->a = nnd_next(r, -NND_MOST_SIZE, NND_MOST_SIZE, "a size");
      nnd_next(r, 0, 0, "a second part of a size");
    } else if (one->kind == NND_SIZE_SYMBOL) {
      one->a = nnd_next(r, 0, model->num_symbols - 1, "the symbol");
      nnd_next(r, 0, 0, "a second part of a size");
    } else {
      one->a = nnd_next(r, 0, i - 1, "a part of a size");
      one->b = nnd_next(r, 0, i - 1, "a part of a size");
    }
  }
}

static void nnd_read_weights(struct nnd_reader *r, struct nnd_model *model, const char *weights, nnd_size num_bytes) {
  model->weights = nnd_table_of(r, model, &model->num_weights, sizeof *model->weights, "weights");
  for (nnd_size i = 0; i < model->num_weights && !r->message->failed; i++) {
    struct nnd_weight_data *one = &model->weights[i];
    one->element = (int)nnd_next(r, 0, NND_NUM_ELEMENTS - 1, "the element of a weight");
    const nnd_size offset = nnd_next(r, 0, num_bytes, "the place of a weight");
    one->rank = (int)nnd_next(r, 0, NND_MOST_RANK, "the rank of a weight");
    one->count = 1;
    for (int axis = 0; axis < one->rank; axis++) {
      one->sizes[axis] = nnd_next(r, 1, num_bytes, "the size of a weight");
      if (one->count > num_bytes / one->sizes[axis])
        nnd_fail(r->message, "weight %lld is too large", (long long)i);
      else
        one->count *= one->sizes[axis];
    }
    const nnd_size each = nnd_element_bytes[one->element];
    if (offset % each || one->count > (num_bytes - offset) / each)
      nnd_fail(r->message, "weight %lld does not lie inside the weights", (long long)i);
    one->data = weights + offset;
  }
}

static void nnd_read_values(struct nnd_reader *r, struct nnd_model *model) {
  model->values = nnd_table_of(r, model, &model->num_values, sizeof *model->values, "values");
  for (nnd_size i = 0; i < model->num_values && !r->message->failed; i++) {
    struct nnd_value *one = &model->values[i];
    one->kind = (int)nnd_next(r, 0, NND_NUM_VALUE_KINDS - 1, "the kind of a value");
    const nnd_size most = one->kind == NND_VALUE_WEIGHT ? model->num_weights - 1 : NND_MOST_COUNT;
    one->number = nnd_next(r, 0, most, "the number of a value");
    if (one->kind == NND_VALUE_WEIGHT && !r->message->failed) model->weights[one->number].readers++;
    one->writer = one->last_reader = -1;
  }
}

static void nnd_read_tensors(struct nnd_reader *r, struct nnd_model *model) {
  model->tensors = nnd_table_of(r, model, &model->num_tensors, sizeof *model->tensors, "tensors");
  for (nnd_size i = 0; i < model->num_tensors && !r->message->failed; i++) {
    struct nnd_tensor *one = &model->tensors[i];
    one->value = nnd_next(r, -1, model->num_values - 1, "the value of a tensor");
    one->element = (int)nnd_next(r, 0, NND_NUM_ELEMENTS - 1, "the element of a tensor");
    one->is_blocked = (int)nnd_next(r, 0, 1, "the layout of a tensor");
    one->rank = (int)nnd_next(r, 0, NND_MOST_RANK, "the rank of a tensor");
    for (int axis = 0; axis < one->rank; axis++)
      one->sizes[axis] = nnd_next(r, 0, model->num_rules - 1, "the size of a tensor");
    if (one->is_blocked && (one->rank != 4 || one->element != NND_FLOAT32))
      nnd_fail(r->message, "tensor %lld is in blocks and no image", (long long)i);
  }
}

/* Inputs and outputs: each the value of that number, plain. */
static nnd_size *nnd_read_borders(struct nnd_reader *r, struct nnd_model *model, nnd_size *count, int kind) {
  nnd_size *borders = nnd_table_of(r, model, count, sizeof *borders, "inputs or outputs");
  for (nnd_size i = 0; i < *count && !r->message->failed; i++) {
    borders[i] = nnd_next(r, 0, model->num_tensors - 1, "an input or output");
    if (r->message->failed) break;
    const struct nnd_tensor *tensor = &model->tensors[borders[i]];
    const struct nnd_value *value = tensor->value < 0 ? NULL : &model->values[tensor->value];
    if (!value || value->kind != kind || value->number != i || tensor->is_blocked)
      nnd_fail(r->message, "input or output %lld is another value", (long long)i);
  }
  return borders;
}

/* Every input and output value has its border. */
static void nnd_check_values(struct nnd_reader *r, const struct nnd_model *model) {
  for (nnd_size i = 0; i < model->num_values && !r->message->failed; i++) {
    const struct nnd_value *one = &model->values[i];
    const nnd_size count = one->kind == NND_VALUE_INPUT ? model->num_inputs : model->num_outputs;
    const nnd_size *borders = one->kind == NND_VALUE_INPUT ? model->inputs : model->outputs;
    if (one->kind != NND_VALUE_INPUT && one->kind != NND_VALUE_OUTPUT) continue;
    if (one->number >= count || model->tensors[borders[one->number]].value != i)
      nnd_fail(r->message, "value %lld is an input or output that there is not", (long long)i);
  }
}

#define NND_NUM_SOURCES_OF(name, function, sources) sources,
static const int nnd_num_float_sources[] = {NND_OPERATORS(NND_NUM_SOURCES_OF)},
                 nnd_num_whole_sources[] = {NND_WHOLE_OPERATORS(NND_NUM_SOURCES_OF)},
                 nnd_num_double_sources[] = {NND_DOUBLE_OPERATORS(NND_NUM_SOURCES_OF)};
/* By domain. */
static const int *const nnd_num_sources[NND_NUM_DOMAINS] = {nnd_num_float_sources, nnd_num_whole_sources,
                                                            nnd_num_double_sources};
static const int nnd_num_operators[NND_NUM_DOMAINS] = {NND_NUM_OPERATORS, NND_NUM_WHOLE_OPERATORS,
                                                       NND_NUM_DOUBLE_OPERATORS};

/* A source that is an operand, a constant that there is, or a result that an earlier instruction has made. */
static int nnd_read_source(struct nnd_reader *r, const struct nnd_program *p, uint32_t made, nnd_size num_constants) {
  const int source = (int)nnd_next(r, 0, NND_SOURCES - 1, "the source of an instruction");
  const int is_operand = source < p->num_operands;
  const int is_result = source >= NND_FIRST_RESULT && source < NND_FIRST_CONSTANT && made >> source & 1;
  const int is_constant = source >= NND_FIRST_CONSTANT && source - NND_FIRST_CONSTANT < num_constants;
  if (!is_operand && !is_result && !is_constant) nnd_fail(r->message, "an instruction reads what was not made");
  return source;
}

/* Reads a constant of a program: the bits of a float or double, or a whole number. */
static void nnd_read_constant(struct nnd_reader *r, struct nnd_program *p, nnd_size number) {
  if (p->domain == NND_OF_INT64) {
    p->whole[number] = nnd_next(r, INT64_MIN, INT64_MAX, "a constant") - (vl){0};
    return;
  }
  if (p->domain == NND_OF_FLOAT64) {
    const int64_t word = nnd_next(r, INT64_MIN, INT64_MAX, "a constant");
    double constant;
    memcpy(&constant, &word, sizeof word);
    p->doubles[number] = constant - (vd){0};
    return;
  }
  const uint32_t bits = (uint32_t)nnd_next(r, 0, UINT32_MAX, "a constant");
  float constant;
  memcpy(&constant, &bits, sizeof bits);
  p->constants[number] = nnd_splat(constant);
}

static void nnd_read_one_program(struct nnd_reader *r, struct nnd_program *p) {
  p->domain = (int)nnd_next(r, 0, NND_NUM_DOMAINS - 1, "the domain of a program");
  const int *num_sources = nnd_num_sources[p->domain];
  p->num_operands = (int)nnd_next(r, 0, NND_OPERANDS, "the operands of a program");
  const nnd_size num_constants = nnd_next(r, 0, NND_CONSTANTS, "the constants of a program");
  for (nnd_size i = 0; i < num_constants; i++) nnd_read_constant(r, p, i);
  p->num_instructions = (int)nnd_next(r, 0, NND_INSTRUCTIONS, "the instructions of a program");
  uint32_t made = 0;
  for (int i = 0; i < p->num_instructions; i++) {
    struct nnd_instruction *one = &p->instructions[i];
    one->operator_ = (uint8_t)nnd_next(r, 0, nnd_num_operators[p->domain] - 1, "an operator");
    one->to = (uint8_t)nnd_next(r, NND_FIRST_RESULT, NND_FIRST_CONSTANT - 1, "the result of an instruction");
    for (int k = 0; k < 3; k++) {
      if (k < num_sources[one->operator_])
        one->source[k] = (uint8_t)nnd_read_source(r, p, made, num_constants);
      else
        one->source[k] = (uint8_t)nnd_next(r, 0, 0, "a source that is not read");
    }
    made |= (uint32_t)1 << one->to;
  }
  p->outcome = nnd_read_source(r, p, made, num_constants);
}

static void nnd_read_programs(struct nnd_reader *r, struct nnd_model *model) {
  model->programs = nnd_table_of(r, model, &model->num_programs, sizeof *model->programs, "programs");
  model->ends = nnd_memory_take(&model->memory, nnd_max(1, model->num_programs) * (nnd_size)sizeof *model->ends);
  if (!model->ends) nnd_fail(r->message, "no memory for programs");
  for (nnd_size i = 0; i < model->num_programs && !r->message->failed; i++) {
    nnd_read_one_program(r, &model->programs[i]);
    if (model->programs[i].domain == NND_OF_FLOAT32) model->ends[i] = nnd_end_of_program(&model->programs[i]);
  }
}

static const char **nnd_read_texts(struct nnd_reader *r, struct nnd_model *model, nnd_size *count) {
  const char **texts = nnd_table_of(r, model, count, sizeof *texts, "texts");
  for (nnd_size i = 0; i < *count && !r->message->failed; i++) {
    const nnd_size num_bytes = nnd_next(r, 0, 4096, "the length of a text");
    const nnd_size num_words = nnd_ceil_div(num_bytes, 8);
    if (num_words > r->count - r->at) {
      nnd_fail(r->message, "the plan ends within a text");
      break;
    }
    char *text = nnd_memory_take(&model->memory, num_bytes + 1);
    if (!text)
      nnd_fail(r->message, "no memory for a text");
    else
      memcpy(text, r->words + r->at, (size_t)num_bytes);
    texts[i] = text;
    r->at += num_words;
  }
  return texts;
}

static const struct nnd_op *nnd_op_named(const char *name) {
  for (int i = 0; nnd_ops[i]; i++)
    if (!strcmp(nnd_ops[i]->name, name)) return nnd_ops[i];
  return NULL;
}

/* The output is a value that nobody has written; the step has read none of it, for what it reads was there before. */
static void nnd_set_writer(struct nnd_opener *o) {
  const int number = (int)(o->step - o->model->steps);
  const nnd_size at = o->output < 0 ? -1 : o->model->tensors[o->output].value;
  struct nnd_value *value = at < 0 ? NULL : &o->model->values[at];
  if (!value || (value->kind != NND_VALUE_ARENA && value->kind != NND_VALUE_OUTPUT) || value->writer >= 0) {
    nnd_fail(o->message, "step %d writes nothing, or what it must not", number);
    return;
  }
  o->step->writes = o->output;
  value->writer = value->last_reader = number;
}

static void nnd_read_steps(struct nnd_reader *r, struct nnd_model *model, const char **texts, nnd_size num_texts) {
  model->steps = nnd_table_of(r, model, &model->num_steps, sizeof *model->steps, "steps");
  for (nnd_size i = 0; i < model->num_steps && !r->message->failed; i++) {
    struct nnd_step *step = &model->steps[i];
    const nnd_size name = nnd_next(r, 0, num_texts - 1, "an operator's name"),
                   label = nnd_next(r, 0, num_texts - 1, "a label");
    step->num_words = nnd_next(r, 0, NND_MOST_COUNT, "the words of a step");
    if (r->message->failed) return;
    if (step->num_words > r->count - r->at) {
      nnd_fail(r->message, "the plan ends within step %lld", (long long)i);
      return;
    }
    step->label = texts[label];
    step->words = r->words + r->at;
    step->writes = -1;
    r->at += step->num_words;
    step->op = nnd_op_named(texts[name]);
    if (!step->op) {
      nnd_fail(r->message, "another library is needed: step %lld is %.60s, which this one does not know", (long long)i,
               texts[name]);
      return;
    }
    struct nnd_opener opener = {model, step, 0, -1, r->message};
    if (!step->op->open(&opener) && !r->message->failed) nnd_fail(r->message, "step %lld cannot be done", (long long)i);
    if (!r->message->failed && opener.at != step->num_words)
      nnd_fail(r->message, "step %lld (%.60s) has %lld words, not %lld", (long long)i, step->op->name,
               (long long)step->num_words, (long long)opener.at);
    if (!r->message->failed) nnd_set_writer(&opener);
  }
}

static void nnd_check_outputs(struct nnd_reader *r, const struct nnd_model *model) {
  for (nnd_size i = 0; i < model->num_outputs && !r->message->failed; i++)
    if (model->values[model->tensors[model->outputs[i]].value].writer < 0)
      nnd_fail(r->message, "no step writes output %lld", (long long)i);
}

static void nnd_read_plan(struct nnd_reader *r, struct nnd_model *model, const void *weights, nnd_size weights_bytes) {
  if (nnd_next(r, INT64_MIN, INT64_MAX, "its first word") != NND_PLAN_MAGIC) {
    nnd_fail(r->message, "this is no plan");
    return;
  }
  const int64_t version = nnd_next(r, INT64_MIN, INT64_MAX, "its version");
  if (version != NND_PLAN_VERSION) {
    nnd_fail(r->message, "another library is needed: the plan is of version %lld, this one reads %d",
             (long long)version, NND_PLAN_VERSION);
    return;
  }
  nnd_next(r, r->count, r->count, "a length of");
  nnd_size num_texts = 0;
  model->num_symbols = nnd_next(r, 0, 1024, "a number of symbols of");
  nnd_read_rules(r, model);
  if (!r->message->failed) nnd_read_weights(r, model, weights, weights_bytes);
  if (!r->message->failed) nnd_read_values(r, model);
  if (!r->message->failed) nnd_read_tensors(r, model);
  if (!r->message->failed) model->inputs = nnd_read_borders(r, model, &model->num_inputs, NND_VALUE_INPUT);
  if (!r->message->failed) model->outputs = nnd_read_borders(r, model, &model->num_outputs, NND_VALUE_OUTPUT);
  if (!r->message->failed) nnd_check_values(r, model);
  if (!r->message->failed) nnd_read_programs(r, model);
  if (r->message->failed) return;
  const char **texts = nnd_read_texts(r, model, &num_texts);
  if (!r->message->failed) nnd_read_steps(r, model, texts, num_texts);
  if (!r->message->failed) nnd_check_outputs(r, model);
  if (!r->message->failed && r->at != r->count) nnd_fail(r->message, "the plan goes on behind its end");
}

struct nnd_model *nnd_model_open(const void *plan, int64_t plan_bytes, const void *weights, int64_t weights_bytes,
                                 const struct nnd_options *options, char *text, int64_t text_bytes) {
  struct nnd_message message = {text, text_bytes, 0};
  struct nnd_model *model = calloc(1, sizeof *model);
  nnd_begin();
  if (!model || plan_bytes < 0 || plan_bytes % 8 || plan_bytes > NND_MOST_COUNT * 64) {
    nnd_fail(&message, model ? "a plan of %lld bytes" : "no memory for a plan of %lld bytes", (long long)plan_bytes);
    free(model);
    return NULL;
  }
  model->options = *options;
  if (!options->image) nnd_memory_expect(&model->packed, weights_bytes);
  model->words = nnd_memory_take(&model->memory, plan_bytes); /* a copy: what was checked must not change */
  if (!model->words)
    nnd_fail(&message, "no memory for a plan of %lld bytes", (long long)plan_bytes);
  else
    memcpy(model->words, plan, (size_t)plan_bytes);
  struct nnd_reader reader = {model->words, plan_bytes / 8, 0, &message};
  if (!message.failed) nnd_read_plan(&reader, model, weights, weights_bytes);
  model->options.ways = NULL, model->options.num_ways = 0; /* which are the caller's */
  if (!message.failed) {
    nnd_pack_all(model);
    return model;
  }
  nnd_model_close(model);
  return NULL;
}

void nnd_model_close(struct nnd_model *model) {
  if (!model) return;
  nnd_memory_free(&model->packed);
  nnd_memory_free(&model->memory);
  free(model);
}

int64_t nnd_model_num_steps(const struct nnd_model *model) { return model->num_steps; }
int64_t nnd_model_num_inputs(const struct nnd_model *model) { return model->num_inputs; }
int64_t nnd_model_num_outputs(const struct nnd_model *model) { return model->num_outputs; }
int64_t nnd_model_packed_bytes(const struct nnd_model *model) { return model->packed.total; }
int64_t nnd_model_image_bytes(const struct nnd_model *model) { return model->image_used; }

int64_t nnd_word(struct nnd_opener *o, int64_t low, int64_t high) {
  const struct nnd_step *step = o->step;
  const long long number = (long long)(step - o->model->steps);
  if (o->at >= step->num_words)
    return nnd_fail(o->message, "step %lld (%.60s) ends too early", number, step->op->name) + low;
  const int64_t word = step->words[o->at++];
  if (word < low || word > high)
    return nnd_fail(o->message, "step %lld (%.60s) has %lld as word %lld", number, step->op->name, (long long)word,
                    (long long)o->at - 1) +
           low;
  return word;
}

double nnd_double_word(struct nnd_opener *o, double low, double high) {
  const int64_t word = nnd_word(o, INT64_MIN, INT64_MAX);
  double number;
  memcpy(&number, &word, sizeof number);
  if (number >= low && number <= high) return number;
  nnd_fail(o->message, "step %lld (%.60s) has a number out of range as word %lld",
           (long long)(o->step - o->model->steps), o->step->op->name, (long long)o->at - 1);
  return low;
}

int nnd_seen_tensor(struct nnd_opener *o) {
  const int tensor = (int)nnd_word(o, 0, o->model->num_tensors - 1);
  if (o->step->num_named < NND_MOST_NAMED)
    o->step->named[o->step->num_named++] = tensor;
  else
    nnd_fail(o->message, "step %lld names too many tensors", (long long)(o->step - o->model->steps));
  return tensor;
}

/* Passes a tensor of float32 that a step reads or writes: kernels that count in floats would go beyond others. */
static int nnd_floats(struct nnd_opener *o, int tensor) {
  if (!o->message->failed && o->model->tensors[tensor].element != NND_FLOAT32)
    nnd_fail(o->message, "step %lld (%.60s) takes float32 alone", (long long)(o->step - o->model->steps),
             o->step->op->name);
  return tensor;
}

int nnd_read_tensor(struct nnd_opener *o) { return nnd_floats(o, nnd_read_any_tensor(o)); }
int nnd_write_tensor(struct nnd_opener *o) { return nnd_floats(o, nnd_write_any_tensor(o)); }

/* Passes what operators know that take any element: float16 is for those that convert what they read and write. */
static int nnd_known(struct nnd_opener *o, int tensor) {
  if (!o->message->failed && o->model->tensors[tensor].element == NND_FLOAT16)
    nnd_fail(o->message, "step %lld (%.60s) does not take float16", (long long)(o->step - o->model->steps),
             o->step->op->name);
  return tensor;
}

int nnd_read_any_tensor(struct nnd_opener *o) { return nnd_known(o, nnd_read_number_tensor(o)); }
int nnd_write_any_tensor(struct nnd_opener *o) { return nnd_known(o, nnd_write_number_tensor(o)); }

/* Keeps that the step reads a tensor. */
static int nnd_is_read(struct nnd_opener *o, int tensor) {
  struct nnd_step *step = o->step;
  const int number = (int)(step - o->model->steps);
  if (o->message->failed) return tensor;
  const nnd_size at = o->model->tensors[tensor].value;
  struct nnd_value *value = at < 0 ? NULL : &o->model->values[at];
  const int is_there =
      value && (value->kind == NND_VALUE_INPUT || value->kind == NND_VALUE_WEIGHT || value->writer >= 0);
  if (!is_there)
    nnd_fail(o->message, "step %d reads a value that is not there yet", number);
  else if (step->num_reads >= NND_MOST_READS)
    nnd_fail(o->message, "step %d reads too much", number);
  else {
    step->reads[step->num_reads++] = tensor;
    value->last_reader = number;
  }
  return tensor;
}

/* Keeps that the step writes a tensor, and no other. */
static int nnd_is_written(struct nnd_opener *o, int tensor) {
  if (o->output >= 0) nnd_fail(o->message, "step %lld writes twice", (long long)(o->step - o->model->steps));
  return o->output = tensor;
}

int nnd_read_number_tensor(struct nnd_opener *o) { return nnd_is_read(o, nnd_seen_tensor(o)); }
int nnd_write_number_tensor(struct nnd_opener *o) { return nnd_is_written(o, nnd_seen_tensor(o)); }
void nnd_reads(struct nnd_opener *o, int tensor) { nnd_floats(o, nnd_is_read(o, tensor)); }
void nnd_writes(struct nnd_opener *o, int tensor) { nnd_floats(o, nnd_is_written(o, tensor)); }

int nnd_read_any_optional_tensor(struct nnd_opener *o) {
  if (o->at < o->step->num_words && o->step->words[o->at] >= 0) return nnd_read_any_tensor(o);
  return (int)nnd_word(o, -1, -1);
}

int nnd_read_optional_tensor(struct nnd_opener *o) {
  const int tensor = nnd_read_any_optional_tensor(o);
  return tensor < 0 ? tensor : nnd_floats(o, tensor);
}

/* Returns a weight of float16 as one of float32. */
static const struct nnd_weight_data *nnd_widened(struct nnd_opener *o, struct nnd_weight_data *weight) {
  if (!weight->widened) {
    struct nnd_memory *memory = &o->model->memory;
    const nnd_size whole = nnd_blocks(weight->count) * NND_LANES;
    struct nnd_weight_data *made = nnd_memory_take(memory, sizeof *made);
    float *data = nnd_memory_take(memory, whole * (nnd_size)sizeof *data);
    if (!made || !data) {
      nnd_fail(o->message, "no memory for weights of float16");
      return NULL;
    }
    nnd_floats_of(NND_FLOAT16, weight->data, weight->count, (vf *)data);
    *made = *weight;
    made->element = NND_FLOAT32, made->data = data, made->is_own = 1, made->readers = 0;
    weight->widened = made;
  }
  weight->widened->readers++;
  return weight->widened;
}

const struct nnd_weight_data *nnd_constant_of(struct nnd_opener *o, const struct nnd_weight_data *weight, int element) {
  static const char *const names[NND_NUM_ELEMENTS] = {"float32", "int32", "int64",   "bool",
                                                      "uint8",   "int8",  "float16", "float64"};
  if (!weight || weight->element == element) return weight;
  nnd_fail(o->message, "step %lld takes weights of %s", (long long)(o->step - o->model->steps), names[element]);
  return NULL;
}

const struct nnd_weight_data *nnd_float_weight(struct nnd_opener *o, const struct nnd_weight_data *weight) {
  if (weight && weight->element == NND_FLOAT16) return nnd_widened(o, &o->model->weights[weight - o->model->weights]);
  return nnd_constant_of(o, weight, NND_FLOAT32);
}

const struct nnd_weight_data *nnd_read_any_weight(struct nnd_opener *o) {
  const int64_t number = nnd_word(o, -1, o->model->num_weights - 1);
  if (number < 0) return NULL;
  o->model->weights[number].readers++;
  return &o->model->weights[number];
}

const struct nnd_weight_data *nnd_read_weight(struct nnd_opener *o) {
  return nnd_float_weight(o, nnd_read_any_weight(o));
}

const struct nnd_program *nnd_read_program(struct nnd_opener *o) {
  const struct nnd_program *program = nnd_read_any_program(o);
  if (program && program->domain != NND_OF_FLOAT32)
    nnd_fail(o->message, "step %lld (%.60s) ends in a program of other numbers", (long long)(o->step - o->model->steps),
             o->step->op->name);
  return program;
}

const struct nnd_program *nnd_read_any_program(struct nnd_opener *o) {
  const int64_t number = nnd_word(o, -1, o->model->num_programs - 1);
  return number < 0 ? NULL : &o->model->programs[number];
}

nnd_size nnd_read_rule(struct nnd_opener *o) { return nnd_word(o, 0, o->model->num_rules - 1); }

int nnd_rest_of_words(struct nnd_opener *o, int each, int most, int behind) {
  const nnd_size count = (o->step->num_words - o->at - behind) / each;
  if (!o->message->failed && (count < 0 || count > most))
    nnd_fail(o->message, "step %lld (%.60s) has %lld words", (long long)(o->step - o->model->steps), o->step->op->name,
             (long long)o->step->num_words);
  return o->message->failed ? 0 : (int)count;
}

nnd_size nnd_read_pairs(struct nnd_opener *o, const int64_t **pairs) {
  const nnd_size count = nnd_word(o, 1, NND_MOST_COUNT);
  if (!o->message->failed && count > (o->step->num_words - o->at) / 2)
    nnd_fail(o->message, "step %lld (%.60s) ends too early", (long long)(o->step - o->model->steps), o->step->op->name);
  if (o->message->failed) return 0;
  *pairs = o->step->words + o->at;
  o->at += 2 * count;
  return count;
}

static void *nnd_taken(struct nnd_opener *o, struct nnd_memory *memory, nnd_size num_bytes) {
  void *taken = nnd_memory_take(memory, num_bytes);
  if (!taken) nnd_fail(o->message, "no memory for %lld bytes", (long long)num_bytes);
  return taken;
}

void *nnd_own(struct nnd_opener *o, nnd_size num_bytes) {
  return o->step->own = nnd_taken(o, &o->model->memory, num_bytes);
}

void *nnd_packed(struct nnd_opener *o, nnd_size num_bytes) { return nnd_taken(o, &o->model->packed, num_bytes); }

struct nnd_end nnd_end_of(const struct nnd_opener *o, const struct nnd_program *program, int has_residual,
                          int has_number) {
  struct nnd_end end = {.kind = NND_END_PLAIN};
  if (program) end = o->model->ends[program - o->model->programs];
  end.residual = has_residual, end.number = has_number;
  if (end.adds && !has_residual) nnd_fail(o->message, "an end adds no residual");
  return end;
}
