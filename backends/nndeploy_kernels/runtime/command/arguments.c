/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/command.h"

const char nnd_help[] =
    "Usage: %s%s [OPTIONS]\n\n"
    "  Run a bundle of nndeploy on its inputs.\n\n"
    "  -i, --input WHAT   FILE.npy, FILE.jsonl, PHOTO.ppm, FILE.raw (bytes alone), - for standard input,\n"
    "                     NAME=@FILE or NAME=JSON (repeatable).\n"
    "  -o, --output WHERE Folder for NAME.npy of each output, or FILE.jsonl, or - for JSON lines. Default: print a\n"
    "                     summary.\n"
    "  --threads N        Threads of a call. Default: as many as processors.\n"
    "  --decisions FILE   Do steps as `nndeploy tune --decisions FILE` found to be faster on this machine.\n"
    "  --bench SECONDS    Run the inputs again and again, and print the median time of a call.\n"
    "  --verify           Check every byte, and run the inputs whose results the bundle holds. Exit code 1 if a "
    "result\n"
    "                     is out of tolerance, or there is none.\n"
    "  --rtol X, --atol X Relative and absolute tolerance for floats with --verify, instead of the bundle's own.\n"
    "  --verify-key FILE  Refuse the bundle, before it is used, unless this public key has signed it.\n"
    "  --info             Print inputs, outputs and the level of the kernels, and run nothing.\n"
    "  -v, --verbose      Say which decisions count here.\n"
    "  --json             Print the answer as JSON on standard output.\n"
    "  --help             Show this message.\n";

int nnd_usage(nnd_error *error, const char *what, const char *which) {
  error->code = NND_USAGE;
  snprintf(error->text, sizeof error->text, "%s%s (hint: see --help)", what, which);
  return 0;
}

int nnd_fail(nnd_error *error, int code, const char *where, const char *why) {
  error->code = code;
  snprintf(error->text, sizeof error->text, "%s: %s", where, why);
  return 0;
}

/* Returns where an option that needs no value is kept, null where it is none. */
static int *nnd_flag_named(struct nnd_arguments *said, const char *word) {
  if (!strcmp(word, "--info")) return &said->is_info;
  if (!strcmp(word, "--verify")) return &said->is_verify;
  if (!strcmp(word, "-v") || !strcmp(word, "--verbose")) return &said->is_verbose;
  return strcmp(word, "--json") ? NULL : &said->is_json;
}

static int nnd_check_together(const struct nnd_arguments *said, nnd_error *error) {
  if ((said->rtol >= 0 || said->atol >= 0) && !said->is_verify)
    return nnd_usage(error, "--rtol and --atol can be used with --verify alone", "");
  if (said->is_info + said->is_verify + (said->bench_seconds > 0) > 1)
    return nnd_usage(error, "only one of --info, --verify and --bench can be used", "");
  if (said->is_json && said->output && !strcmp(said->output, "-"))
    return nnd_usage(error, "--json and --output - both want standard output: name a file or a folder", "");
  if ((said->is_info || said->is_verify) && (said->num_inputs || said->output))
    return nnd_usage(error, "--input and --output cannot be used with ", said->is_info ? "--info" : "--verify");
  return 1;
}

int nnd_read_arguments(int count, char **words, struct nnd_arguments *said, nnd_error *error) {
  said->rtol = said->atol = -1;
  for (int i = 0; i < count; i++) said->is_json |= !strcmp(words[i], "--json"); /* of errors in the others too */
  for (int i = 0; i < count; i++) {
    const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
    int *flag = nnd_flag_named(said, word);
    char *behind = !strncmp(word, "--", 2) ? strchr(word, '=') : NULL;
    if (behind) { /* --option=value */
      *behind = 0;
      value = behind + 1;
    }
    const int is_input = !strcmp(word, "-i") || !strcmp(word, "--input");
    const int is_output = !strcmp(word, "-o") || !strcmp(word, "--output");
    const int is_threads = !strcmp(word, "--threads"), is_bench = !strcmp(word, "--bench");
    const int is_key = !strcmp(word, "--verify-key"), is_decisions = !strcmp(word, "--decisions");
    double *const tolerance = !strcmp(word, "--rtol") ? &said->rtol : !strcmp(word, "--atol") ? &said->atol : NULL;
    if (flag) {
      *flag = 1;
    } else if (is_input || is_output || is_threads || is_bench || is_key || is_decisions || tolerance) {
      char *end = "";
      if (!value) return nnd_usage(error, "a value is missing behind ", word);
      i += !behind;
      if (is_input && said->num_inputs == NND_MOST_INPUTS) return nnd_usage(error, "too many inputs", "");
      if (is_input) said->inputs[said->num_inputs++] = value;
      if (is_output) said->output = value;
      if (is_key) said->verify_key = value;
      if (is_decisions) said->decisions = value;
      if (is_threads) said->threads = (int)strtol(value, &end, 10);
      if (is_bench) said->bench_seconds = strtod(value, &end);
      if (*end || (is_threads && said->threads < 1) || (is_bench && !(said->bench_seconds > 0)))
        return nnd_usage(error, "not a number above 0: ", value);
      if (tolerance) *tolerance = strtod(value, &end);
      if (*end || (tolerance && !(*tolerance >= 0 && isfinite(*tolerance))))
        return nnd_usage(error, "not a number from 0: ", value);
    } else if (*word == '-' || said->bundle) {
      return nnd_usage(error, "an unknown argument: ", word);
    } else {
      said->bundle = word;
    }
  }
  return nnd_check_together(said, error);
}
