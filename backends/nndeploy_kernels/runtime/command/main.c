/* SPDX-License-Identifier: Apache-2.0
 *
 * nndeploy-run: a bundle from the shell, without Python. With a bundle behind the program itself, that one is run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/command/appended.h"
#include "runtime/command/npy.h"

#define NND_USAGE 2
#define NND_MOST_INPUTS 256

static const char nnd_help[] =
    "Usage: %s%s [OPTIONS]\n\n"
    "  Run a bundle of nndeploy on its inputs.\n\n"
    "  -i, --input WHAT   FILE.npy, - for standard input, or NAME=@FILE.npy (repeatable).\n"
    "  -o, --output DIR   Write each output to DIR/NAME.npy. Default: print a summary.\n"
    "  --threads N        Threads of a call. Default: as many as processors.\n"
    "  --bench SECONDS    Run the inputs again and again, and print the median time of a call.\n"
    "  --info             Print inputs, outputs and the level of the kernels, and run nothing.\n"
    "  --help             Show this message.\n";

struct nnd_arguments {
  const char *bundle, *inputs[NND_MOST_INPUTS], *output;
  int num_inputs, threads, is_info;
  double bench_seconds;
};

static int nnd_usage(nnd_error *error, const char *what, const char *which) {
  error->code = NND_USAGE;
  snprintf(error->text, sizeof error->text, "%s%s (hint: see --help)", what, which);
  return 0;
}

/* Reads the words of the command; returns 1, or 0 and the error. */
static int nnd_read_arguments(int count, char **words, struct nnd_arguments *said, nnd_error *error) {
  for (int i = 0; i < count; i++) {
    const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
    char *behind = !strncmp(word, "--", 2) ? strchr(word, '=') : NULL;
    if (behind) { /* --option=value */
      *behind = 0;
      value = behind + 1;
    }
    const int is_input = !strcmp(word, "-i") || !strcmp(word, "--input");
    const int is_output = !strcmp(word, "-o") || !strcmp(word, "--output");
    const int is_threads = !strcmp(word, "--threads"), is_bench = !strcmp(word, "--bench");
    if (!strcmp(word, "--info")) {
      said->is_info = 1;
    } else if (is_input || is_output || is_threads || is_bench) {
      char *end = "";
      if (!value) return nnd_usage(error, "a value is missing behind ", word);
      i += !behind;
      if (is_input && said->num_inputs == NND_MOST_INPUTS) return nnd_usage(error, "too many inputs", "");
      if (is_input) said->inputs[said->num_inputs++] = value;
      if (is_output) said->output = value;
      if (is_threads) said->threads = (int)strtol(value, &end, 10);
      if (is_bench) said->bench_seconds = strtod(value, &end);
      if (*end || (is_threads && said->threads < 1) || (is_bench && !(said->bench_seconds > 0)))
        return nnd_usage(error, "not a number above 0: ", value);
    } else if (*word == '-' || said->bundle) {
      return nnd_usage(error, "an unknown argument: ", word);
    } else {
      said->bundle = word;
    }
  }
  return 1;
}

static void nnd_print_end(const char *side, const nnd_info *info) {
  printf("%s %s: %s[", side, info->name, nnd_dtype_name(info->dtype));
  for (int i = 0; i < info->rank; i++)
    if (info->shape[i] < 0)
      printf(i ? ",?" : "?");
    else
      printf(i ? ",%lld" : "%lld", (long long)info->shape[i]);
  printf("]\n");
}

static void nnd_print_info(const nnd_program *program) {
  printf("%s, kernels for %s\n", nnd_model_name(program), nnd_level(program));
  for (int i = 0; i < nnd_num_inputs(program); i++) nnd_print_end("input", nnd_input(program, i));
  for (int i = 0; i < nnd_num_outputs(program); i++) nnd_print_end("output", nnd_output(program, i));
}

static int nnd_input_named(const nnd_program *program, const char *name, long size) {
  for (int i = 0; i < nnd_num_inputs(program); i++) {
    const char *known = nnd_input(program, i)->name;
    if ((long)strlen(known) == size && !strncmp(known, name, (size_t)size)) return 1;
  }
  return 0;
}

/* Reads NAME=@FILE or FILE into a call. */
static int nnd_give(const nnd_program *program, nnd_call *call, const char *what, struct nnd_array *array,
                    nnd_error *error) {
  const char *mark = strstr(what, "=@");
  char name[300];
  if (!mark && nnd_num_inputs(program) != 1)
    return nnd_usage(error, "there are several inputs: NAME=@FILE says which is ", what);
  if (!mark && strchr(what, '=') && nnd_input_named(program, what, strchr(what, '=') - what))
    return nnd_usage(error, "a file is NAME=@FILE, not ", what);
  if (mark && mark - what >= (long)sizeof name) return nnd_usage(error, "no input has this name: ", what);
  snprintf(name, sizeof name, "%.*s", mark ? (int)(mark - what) : (int)sizeof name - 1,
           mark ? what : nnd_input(program, 0)->name);
  return nnd_npy_read(mark ? mark + 2 : what, array, error) && nnd_set_input(call, name, &array->tensor, error);
}

static double nnd_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int nnd_by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int nnd_bench(nnd_call *call, double seconds, nnd_error *error) {
  const size_t most = 1 << 20;
  double *times = malloc(most * sizeof *times);
  size_t count = 0;
  if (!times) return nnd_fail(error, NND_NO_MEMORY, "--bench", "no memory");
  const double end = nnd_seconds() + seconds;
  for (double now = nnd_seconds(); now < end && count < most; count++) {
    if (!nnd_run(call, error)) break;
    const double after = nnd_seconds();
    times[count] = after - now;
    now = after;
  }
  if (count) {
    qsort(times, count, sizeof *times, nnd_by_size);
    printf("%zu calls, median %.4f ms\n", count, times[count / 2] * 1e3);
  }
  free(times);
  return count > 0;
}

static int nnd_write_output(const char *folder, const char *name, const nnd_tensor *value, nnd_error *error) {
  char path[4096], plain[256];
  size_t used = 0;
  for (const char *c = name; *c && used + 1 < sizeof plain; c++)
    plain[used++] = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' ||
                            *c == '-' || *c == '_'
                        ? *c
                        : '_';
  plain[used] = 0;
  if (mkdir(folder, 0777) && errno != EEXIST) return nnd_fail(error, NND_CANNOT_CREATE, folder, strerror(errno));
  if (snprintf(path, sizeof path, "%s/%s.npy", folder, plain) >= (int)sizeof path)
    return nnd_fail(error, NND_IO, folder, "the path is too long");
  return nnd_npy_write(path, value, error);
}

static void nnd_print_output(const char *name, const nnd_tensor *value) {
  printf("%s: %s[", name, nnd_dtype_name(value->dtype));
  int64_t count = 1;
  for (int i = 0; i < value->rank; i++) {
    printf(i ? ",%lld" : "%lld", (long long)value->shape[i]);
    count *= value->shape[i];
  }
  printf("]");
  for (int64_t i = 0; i < count && i < 16; i++) {
    if (value->dtype == NND_FLOAT32) printf(" %.6g", (double)((const float *)value->data)[i]);
    if (value->dtype == NND_INT32) printf(" %d", ((const int32_t *)value->data)[i]);
    if (value->dtype == NND_INT64) printf(" %lld", (long long)((const int64_t *)value->data)[i]);
    if (value->dtype == NND_BOOL || value->dtype == NND_UINT8) printf(" %d", ((const uint8_t *)value->data)[i]);
    if (value->dtype == NND_INT8) printf(" %d", ((const int8_t *)value->data)[i]);
  }
  printf(count > 16 ? " ...\n" : "\n");
}

static int nnd_give_outputs(const nnd_program *program, const nnd_call *call, const char *folder, nnd_error *error) {
  for (int i = 0; i < nnd_num_outputs(program); i++) {
    const char *name = nnd_output(program, i)->name;
    nnd_tensor value;
    if (!nnd_get_output(call, name, &value, error)) return 0;
    if (folder && !nnd_write_output(folder, name, &value, error)) return 0;
    if (!folder) nnd_print_output(name, &value);
  }
  return 1;
}

static int nnd_work(nnd_program *program, const struct nnd_arguments *said, nnd_error *error) {
  if (said->is_info) return nnd_print_info(program), 1;
  struct nnd_array *arrays = calloc((size_t)said->num_inputs + 1, sizeof *arrays);
  nnd_call *call = arrays ? nnd_call_new(program, error) : NULL;
  int is_right = call != NULL;
  if (said->num_inputs > nnd_num_inputs(program))
    is_right = nnd_usage(error, "more values than inputs: ", said->inputs[said->num_inputs - 1]);
  for (int i = 0; is_right && i < said->num_inputs; i++)
    is_right = nnd_give(program, call, said->inputs[i], &arrays[i], error);
  is_right = is_right && nnd_run(call, error) && nnd_give_outputs(program, call, said->output, error) &&
             (said->bench_seconds == 0 || nnd_bench(call, said->bench_seconds, error));
  nnd_call_free(call);
  for (int i = 0; arrays && i < said->num_inputs; i++) free(arrays[i].data);
  free(arrays);
  return is_right;
}

int main(int count, char **words) {
  struct nnd_arguments said = {0};
  nnd_error error = {0, ""};
  struct nnd_appended appended;
  const enum nnd_behind behind = nnd_appended_here(&appended);
  const int is_whole = behind == NND_BUNDLE_BEHIND;
  const char *name = strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0];
  if (count == 2 && (!strcmp(words[1], "--help") || !strcmp(words[1], "-h")))
    return printf(nnd_help, name, is_whole ? "" : " BUNDLE"), 0;
  int is_right = nnd_read_arguments(count - 1, words + 1, &said, &error);
  if (is_right && behind == NND_CUT_BEHIND)
    is_right = nnd_fail(&error, NND_BAD_DATA, name, "the program was cut short (hint: copy it again)");
  if (is_right && is_whole == (said.bundle != NULL))
    is_right =
        nnd_usage(&error, is_whole ? "an unknown argument: " : "no bundle is named", is_whole ? said.bundle : "");
  nnd_program *program = NULL;
  if (is_right) {
    const nnd_options options = {said.threads};
    program = is_whole ? nnd_open_memory(appended.bundle, appended.size, &options, &error)
                       : nnd_open(said.bundle, &options, &error);
  }
  if (program)
    is_right = nnd_work(program, &said, &error);
  else
    is_right = 0;
  nnd_close(program);
  if (is_right && (fflush(stdout) || ferror(stdout)))
    is_right = nnd_fail(&error, NND_IO, "standard output", "it is gone");
  if (is_right) return 0;
  fprintf(stderr, "%s: error: %s\n", name, error.text);
  return error.code;
}
