/* SPDX-License-Identifier: Apache-2.0
 *
 * --info: what the program takes and gives. With --json the fields of `nndeploy inspect`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/command.h"
#include "runtime/command/numbers.h"
#include "runtime/program.h"

static void nnd_print_end(const char *side, const nnd_info *info, const nnd_tensor *keys) {
  char shape[NND_SHAPE_TEXT];
  if (keys) {
    printf("%s %s: sequence(map(%s,float32[]))\n", side, info->name, nnd_dtype_name(keys->dtype));
    return;
  }
  nnd_shape_text(info->rank, info->shape, shape);
  printf("%s %s: %s%s\n", side, info->name, nnd_dtype_name(info->dtype), shape);
}

static void nnd_print_info(const nnd_program *program) {
  printf("%s, kernels for %s\n", nnd_model_name(program), nnd_level(program));
  for (int i = 0; i < nnd_num_inputs(program); i++) nnd_print_end("input", nnd_input(program, i), NULL);
  const nnd_image_info *image = nnd_image(program);
  if (image)
    printf("image %s: %lld x %lld pixels, %d labels\n", image->input, (long long)image->width, (long long)image->height,
           image->num_labels);
  for (int i = 0; i < nnd_num_outputs(program); i++)
    nnd_print_end("output", nnd_output(program, i), nnd_output_keys(program, i));
}

static void nnd_answer_choice(struct nnd_answer *answer, const struct nnd_session *session) {
  nnd_answer_open(answer, NULL, '{');
  nnd_answer_bytes(answer, "submodel", session->id.data, (size_t)session->id.size);
  nnd_answer_bytes(answer, "variant", session->variant.data, (size_t)session->variant.size);
  nnd_answer_text(answer, "backend", "native");
  nnd_answer_text(answer, "device", "cpu");
  nnd_answer_word(answer, "isolated", "false");
  nnd_answer_word(answer, "passed_over", "[]");
  nnd_answer_close(answer, '}');
}

void nnd_answer_chain(struct nnd_answer *answer) {
  nnd_answer_open(answer, "chain", '{');
  nnd_answer_text(answer, "id", "portable");
  nnd_answer_text(answer, "gpu", "");
  nnd_answer_word(answer, "places", "{}");
  nnd_answer_word(answer, "ranges", "{}");
  nnd_answer_word(answer, "passed_over", "[]");
  nnd_answer_close(answer, '}');
}

void nnd_answer_choices(struct nnd_work *work) {
  struct nnd_answer *answer = &work->answer;
  nnd_answer_open(answer, "choices", '[');
  for (int i = 0; i < work->program->num_sessions; i++) nnd_answer_choice(answer, &work->program->sessions[i]);
  nnd_answer_close(answer, ']');
}

static const char *nnd_kind_of_file(const struct nnd_text *file) {
  static const char *const weights[] = {"weights.bin", "model.bin", "constants.bin", "constants.safetensors"};
  for (int i = 0; i < 4; i++)
    if (nnd_is_text(file, weights[i])) return "weights";
  return "plans";
}

/* Returns what a member is for: "weights", "plans", "samples" or "others". */
static const char *nnd_kind_of(const struct nnd_json *manifest, const struct nnd_text *member) {
  const struct nnd_json *constants = nnd_json_of_kind(nnd_json_member(manifest, "constants"), NND_STRING);
  NND_EACH(submodel, nnd_json_member(manifest, "submodels")) {
    NND_EACH(variant, nnd_json_member(submodel, "variants")) {
      NND_EACH(file, nnd_json_member(variant, "files")) {
        if (file->kind == NND_STRING && nnd_is_same_text(&file->text, member)) return nnd_kind_of_file(&file->key);
      }
    }
  }
  NND_EACH(golden, nnd_json_member(manifest, "goldens")) {
    NND_EACH(side, golden) {
      if (side->kind == NND_STRING && nnd_is_same_text(&side->text, member)) return "samples";
    }
  }
  NND_EACH(held, nnd_json_member(manifest, "defaults")) {
    if (held->kind == NND_STRING && nnd_is_same_text(&held->text, member)) return "weights";
  }
  return constants && nnd_is_same_text(&constants->text, member) ? "weights" : "others";
}

static int64_t nnd_size_of(const struct nnd_json *member) {
  int64_t size = 0;
  nnd_json_integer(nnd_json_member(member, "size_bytes"), 0, INT64_MAX, &size);
  return size;
}

/* The largest member comes first. */
static int nnd_by_size(const void *a, const void *b) {
  const struct nnd_json *one = *(const struct nnd_json *const *)a, *other = *(const struct nnd_json *const *)b;
  const int64_t x = nnd_size_of(one), y = nnd_size_of(other);
  return x != y ? (x < y) - (x > y) : strcmp(one->key.data, other->key.data);
}

static void nnd_answer_content(struct nnd_answer *answer, const struct nnd_json *manifest,
                               const struct nnd_json *member) {
  const struct nnd_json *compressed = nnd_json_member(nnd_json_member(manifest, "compressed"), member->key.data);
  nnd_answer_open(answer, NULL, '{');
  nnd_answer_text(answer, "member", member->key.data);
  nnd_answer_text(answer, "what", nnd_kind_of(manifest, &member->key));
  nnd_answer_integer(answer, "size_bytes", nnd_size_of(member));
  nnd_answer_integer(answer, "real_bytes", nnd_size_of(compressed ? compressed : member));
  nnd_answer_open(answer, "bases", '[');
  NND_EACH(base, nnd_json_member(compressed, "bases")) {
    if (base->kind == NND_STRING) nnd_answer_text(answer, NULL, base->text.data);
  }
  nnd_answer_close(answer, ']');
  nnd_answer_text(answer, "note", "");
  nnd_answer_close(answer, '}');
}

static void nnd_answer_contents(struct nnd_answer *answer, const struct nnd_json *manifest) {
  const struct nnd_json *list = nnd_json_of_kind(nnd_json_member(manifest, "members"), NND_OBJECT);
  const struct nnd_json **members = calloc((size_t)(list ? list->count : 0) + 1, sizeof *members);
  size_t count = 0;
  answer->is_lost |= !members;
  NND_EACH(member, members ? list : NULL) { members[count++] = member; }
  if (count) qsort(members, count, sizeof *members, nnd_by_size);
  nnd_answer_open(answer, "contents", '[');
  for (size_t i = 0; i < count; i++) nnd_answer_content(answer, manifest, members[i]);
  nnd_answer_close(answer, ']');
  free(members);
}

void nnd_show_info(struct nnd_work *work) {
  const struct nnd_bundle *bundle = &work->program->bundle;
  struct nnd_answer *answer = &work->answer;
  if (!work->said->is_json) {
    nnd_print_info(work->program);
    return;
  }
  nnd_answer_text(answer, "bundle", work->path);
  nnd_answer_integer(answer, "size_bytes", bundle->container.source.size);
  nnd_answer_document(answer, "manifest", bundle->manifest_text.data, (size_t)bundle->manifest_text.size);
  nnd_answer_contents(answer, bundle->manifest);
  nnd_answer_open(answer, "here", '{');
  nnd_answer_chain(answer);
  nnd_answer_choices(work);
  nnd_answer_text(answer, "level", nnd_level(work->program));
  nnd_answer_close(answer, '}');
}
