/* SPDX-License-Identifier: Apache-2.0
 *
 * What is code is decided by the files that a backend would load (`nndeploy/runtime/code_policy.py`). None of it runs
 * here; a manifest that says otherwise of a variant is refused all the same.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/bundle.h"

/* Which files are code; of a backend that is not listed nothing is known. */
static const struct {
  const char *backend, *file; /* null: all of them; "": none */
} nnd_code[] = {
    {"cudnn", "plans.bin"},     {"native", ""},  {"onnxruntime", ""}, {"openvino", "model.blob"}, {"reference", ""},
    {"tensorrt", "engine.trt"}, {"triton", NULL}};

static int nnd_check_variant(const struct nnd_json *submodel, const struct nnd_json *variant, nnd_error *error) {
  const char *backend = nnd_json_member(variant, "backend")->text.data;
  const size_t count = sizeof nnd_code / sizeof *nnd_code;
  char names[200] = "";
  size_t at = 0, size = 0;
  while (at < count && strcmp(nnd_code[at].backend, backend)) at++;
  if (at == count) return 1;
  NND_EACH(file, nnd_json_member(variant, "files")) {
    const char *name = file->key.data, *last = strrchr(name, '/');
    if (nnd_code[at].file && strcmp(nnd_code[at].file, at || !last ? name : last + 1)) continue; /* cuDNN has folders */
    if (size < sizeof names) size += (size_t)snprintf(names + size, sizeof names - size, size ? ", %s" : "%s", name);
  }
  if ((size > 0) == (nnd_json_member(variant, "native_code")->kind == NND_TRUE)) return 1;
  return nnd_fail_with(error, NND_POLICY,
                       size ? "%s/%s: %s is code for %s, and the manifest says it holds none"
                            : "%s/%s: the manifest says that it holds code, and nothing in it is%s code for %s",
                       nnd_json_member(submodel, "id")->text.data, nnd_json_member(variant, "id")->text.data, names,
                       backend);
}

static int nnd_check_chain(const struct nnd_json *chain, nnd_error *error) {
  NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
    NND_EACH(variant, nnd_json_member(submodel, "variants")) {
      if (!nnd_check_variant(submodel, variant, error)) return 0;
    }
  }
  return 1;
}

int nnd_check_code(const struct nnd_json *manifest, nnd_error *error) {
  NND_EACH(chain, nnd_json_member(manifest, "target_chains")) {
    if (!nnd_check_chain(chain, error)) return 0;
  }
  return nnd_check_chain(manifest, error);
}
