/* SPDX-License-Identifier: Apache-2.0
 *
 * nndeploy-run: a bundle from the shell, without Python. With a bundle behind the program itself, that one is run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/appended.h"
#include "runtime/command/array.h"
#include "runtime/command/command.h"
#include "runtime/command/signature.h"
#include "runtime/command/system.h"
#include "runtime/program.h"

static void nnd_say_decisions(const struct nnd_work *work) {
  const struct nnd_arguments *said = work->said;
  const char *file = said->decisions ? said->decisions : "its decisions";
  if (!work->program->decisions.tuned || !said->is_verbose) return;
  const char *note = nnd_decisions_note(work->program);
  const int taken = work->program->decisions.num_taken;
  if (*note)
    fprintf(stderr, "%s: %s: %s\n", work->name, file, note);
  else
    fprintf(stderr, "%s: %s: counts for %d set%s of shapes\n", work->name, file, taken, taken == 1 ? "" : "s");
}

/* Opens the bundle behind the program, or the one that was named; only if it is signed, where that is asked. */
static int nnd_open_bundle(struct nnd_work *work, const struct nnd_appended *appended, nnd_error *error) {
  const nnd_options options = {work->said->threads};
  const double began = nnd_seconds();
  struct nnd_public_key key;
  struct nnd_condition condition = {0};
  if (work->said->verify_key) {
    if (!nnd_key_read(work->said->verify_key, &key, error)) return 0;
    condition = (struct nnd_condition){nnd_check_signature, &key};
  }
  struct nnd_file decisions = {0};
  if (work->said->decisions) {
    if (!nnd_file_read(work->said->decisions, &decisions, error)) return 0;
    decisions.bytes[decisions.size] = 0;
  }
  work->program = nnd_open_if(work->path, appended->bundle, appended->size, &options,
                              decisions.bytes ? decisions.bytes : appended->decisions, condition, error);
  nnd_file_free(&decisions);
  work->load_seconds = nnd_seconds() - began;
  if (work->program) nnd_say_decisions(work);
  return work->program != NULL;
}

static int nnd_work_on(struct nnd_work *work, nnd_error *error) {
  if (work->said->is_verify) return nnd_run_goldens(work, error);
  if (!work->said->is_info) return nnd_run_inputs(work, error);
  nnd_show_info(work);
  return 1;
}

/* Returns the command of `nndeploy` that answers in the same way. */
static const char *nnd_command_of(const struct nnd_arguments *said) {
  return said->is_verify ? "verify" : said->is_info ? "inspect" : said->bench_seconds > 0 ? "bench" : "run";
}

int main(int count, char **words) {
  nnd_process_begin(&count, &words);
  struct nnd_arguments said = {0};
  nnd_error error = {0, ""};
  struct nnd_appended appended = {0};
  const enum nnd_behind behind = nnd_appended_here(&appended);
  const int is_whole = behind == NND_BUNDLE_BEHIND;
  const char *name = nnd_base_name(words[0]);
  if (count == 2 && (!strcmp(words[1], "--help") || !strcmp(words[1], "-h")))
    return printf(nnd_help, name, is_whole ? "" : " BUNDLE"), 0;
  int is_right = nnd_read_arguments(count - 1, words + 1, &said, &error);
  if (is_right && behind == NND_CUT_BEHIND)
    is_right = nnd_fail(&error, NND_BAD_DATA, name, "the program was cut short (hint: copy it again)");
  if (is_right && is_whole == (said.bundle != NULL))
    is_right =
        nnd_usage(&error, is_whole ? "an unknown argument: " : "no bundle is named", is_whole ? said.bundle : "");
  struct nnd_work work = {.said = &said, .path = is_whole ? words[0] : said.bundle, .name = name};
  is_right = is_right && nnd_open_bundle(&work, &appended, &error) && nnd_work_on(&work, &error);
  nnd_close(work.program);
  if (is_right) error.code = 0;
  if (said.is_json) nnd_answer_print(&work.answer, nnd_command_of(&said), &error);
  if (!error.code && (fflush(stdout) || ferror(stdout))) nnd_fail(&error, NND_IO, "standard output", "it is gone");
  if (error.code) {
    const char *what, *code = nnd_code_name(&error, &what);
    fprintf(stderr, "%s: error[%s]: %s\n", name, code, what);
  }
  return error.code;
}
