/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/form.h"
#include "runtime/shown.h"

#define NND_MOST_LISTED 4094 /* members of a bundle, without the manifest and the signature */
#define NND_MOST_OWN ((int64_t)64 << 20)

/* A name as messages show it. */
struct nnd_quoted {
  char text[NND_SHOWN];
};

static struct nnd_quoted nnd_quoted(const struct nnd_text *name) {
  struct nnd_quoted quoted;
  nnd_shown_text(name, 80, quoted.text);
  return quoted;
}

/* Writes where a part lies, as "submodel s0". */
__attribute__((format(printf, 2, 3))) static const char *nnd_place_of(char where[200], const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(where, 200, format, arguments);
  va_end(arguments);
  return where;
}

static const struct nnd_text *nnd_text_in(const struct nnd_json *object, const char *key) {
  return &nnd_json_member(object, key)->text;
}

static int nnd_is_in(const struct nnd_json *names, const struct nnd_text *name) {
  NND_EACH(item, names) {
    if (nnd_is_same_text(&item->text, name)) return 1;
  }
  return 0;
}

/* Returns the object of a list whose field is a text, null where there is none. */
static const struct nnd_json *nnd_with(const struct nnd_json *list, const char *key, const struct nnd_text *text) {
  NND_EACH(item, list) {
    if (nnd_is_same_text(nnd_text_in(item, key), text)) return item;
  }
  return NULL;
}

static int nnd_check_once(const struct nnd_json *list, const char *key, const char *what, const char *where,
                          nnd_error *error) {
  NND_EACH(item, list) {
    const struct nnd_text *name = nnd_text_in(item, key);
    if (nnd_with(list, key, name) != item)
      return nnd_bad_manifest(error, where, "the %s %s stands twice", what, nnd_quoted(name).text);
  }
  return 1;
}

/* ---- the submodels of all chains */

/* Returns the chain behind one, of which the portable one, the manifest itself, is the first. */
static const struct nnd_json *nnd_next_chain(const struct nnd_json *manifest, const struct nnd_json *chain) {
  const struct nnd_json *chains = nnd_json_member(manifest, "target_chains");
  return chain == manifest ? (chains ? chains->first : NULL) : chain->next;
}

#define NND_EACH_CHAIN(chain, manifest)                                                                                \
  for (const struct nnd_json *chain = manifest; chain; chain = nnd_next_chain(manifest, chain))

static int nnd_check_submodels(const struct nnd_json *manifest, nnd_error *error) {
  NND_EACH_CHAIN(chain, manifest) {
    NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
      const struct nnd_text *id = nnd_text_in(submodel, "id");
      NND_EACH_CHAIN(other, manifest) {
        const struct nnd_json *found = nnd_with(nnd_json_member(other, "submodels"), "id", id);
        if (found && found != submodel)
          return nnd_bad_manifest(error, "", "the submodel %s stands twice", nnd_quoted(id).text);
        if (found) break;
      }
    }
  }
  return 1;
}

/* ---- one chain */

/* Returns the submodel from `from` up to `end` that gives a value. */
static const struct nnd_json *nnd_giver_of(const struct nnd_json *from, const struct nnd_json *end,
                                           const struct nnd_text *name) {
  for (; from && from != end; from = from->next)
    if (nnd_is_in(nnd_json_member(from, "outputs"), name)) return from;
  return NULL;
}

static const struct nnd_json *nnd_first_of(const struct nnd_json *chain) {
  return nnd_json_member(chain, "submodels")->first;
}

static int nnd_check_order_of(const struct nnd_json *manifest, const struct nnd_json *chain, const char *in,
                              nnd_error *error) {
  const struct nnd_json *inputs = nnd_json_member(manifest, "inputs"), *first = nnd_first_of(chain);
  char where[200];
  NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
    const char *id = nnd_text_in(submodel, "id")->data;
    nnd_place_of(where, "%ssubmodel %s", in, id);
    NND_EACH(name, nnd_json_member(submodel, "inputs")) {
      if (nnd_with(inputs, "name", &name->text) || nnd_giver_of(first, submodel, &name->text)) continue;
      const struct nnd_json *later = NULL, *one = submodel;
      while ((one = nnd_giver_of(one, NULL, &name->text))) later = one, one = one->next;
      if (!later)
        return nnd_bad_manifest(error, where, "%s is read, but nothing produces it", nnd_quoted(&name->text).text);
      return nnd_bad_manifest(error, where, "%s is read before %s produces it: a cycle, or the wrong order",
                              nnd_quoted(&name->text).text, nnd_text_in(later, "id")->data);
    }
    NND_EACH(name, nnd_json_member(submodel, "outputs")) {
      const struct nnd_json *before = nnd_giver_of(first, submodel, &name->text),
                            *own = nnd_json_member(submodel, "outputs");
      const struct nnd_json *earlier = own->first;
      while (earlier != name && !nnd_is_same_text(&earlier->text, &name->text)) earlier = earlier->next;
      const int is_input = nnd_with(inputs, "name", &name->text) != NULL;
      if (!is_input && !before && earlier == name) continue;
      return nnd_bad_manifest(error, nnd_place_of(where, "%ssubmodels", in), "%s is produced twice, by %s and by %s",
                              nnd_quoted(&name->text).text,
                              earlier != name && !is_input ? id
                              : before                     ? nnd_text_in(before, "id")->data
                                                           : "the program's inputs",
                              id);
    }
  }
  return 1;
}

static int nnd_check_outputs_of(const struct nnd_json *manifest, const struct nnd_json *chain, const char *in,
                                nnd_error *error) {
  const struct nnd_json *inputs = nnd_json_member(manifest, "inputs"), *outputs = nnd_json_member(manifest, "outputs");
  const struct nnd_json *aliases = nnd_json_member(manifest, "aliases");
  char where[200];
  NND_EACH(alias, aliases) {
    nnd_place_of(where, "%saliases", in);
    if (!nnd_with(outputs, "name", &alias->key) || !nnd_with(inputs, "name", &alias->text))
      return nnd_bad_manifest(error, where, "the alias %s of %s does not lead from an output to an input",
                              nnd_quoted(&alias->key).text, nnd_quoted(&alias->text).text);
    if (nnd_is_same_text(&alias->key, &alias->text)) continue;
    const struct nnd_json *giver = nnd_giver_of(nnd_first_of(chain), NULL, &alias->key);
    if (giver || nnd_with(inputs, "name", &alias->key))
      return nnd_bad_manifest(error, where, "the alias %s is also produced by %s", nnd_quoted(&alias->key).text,
                              giver ? nnd_text_in(giver, "id")->data : "the program's inputs");
  }
  NND_EACH(output, nnd_text_in(manifest, "constants")->size ? NULL : outputs) {
    const struct nnd_text *name = nnd_text_in(output, "name");
    if (!nnd_giver_of(nnd_first_of(chain), NULL, name) && !nnd_with(inputs, "name", name) && !nnd_listed(aliases, name))
      return nnd_bad_manifest(error, nnd_place_of(where, "%soutputs", in), "nothing produces the output %s",
                              nnd_quoted(name).text);
  }
  return 1;
}

/* Returns whether two types may be one, of which one may know more of the shape than the other. */
static int nnd_may_be_same(const struct nnd_json *a, const struct nnd_json *b) {
  if (!nnd_is_same_text(nnd_text_in(a, "kind"), nnd_text_in(b, "kind"))) return 0;
  const struct nnd_json *element = nnd_json_member(a, "element"), *shape = nnd_json_member(a, "shape");
  if (element) return nnd_may_be_same(element, nnd_json_member(b, "element"));
  if (!shape)
    return nnd_is_same_text(nnd_text_in(a, "key"), nnd_text_in(b, "key")) &&
           nnd_may_be_same(nnd_json_member(a, "value"), nnd_json_member(b, "value"));
  const struct nnd_json *other = nnd_json_member(b, "shape");
  if (!nnd_is_same_text(nnd_text_in(a, "dtype"), nnd_text_in(b, "dtype"))) return 0;
  if (shape->kind == NND_NULL || other->kind == NND_NULL) return 1;
  if (shape->count != other->count) return 0;
  for (const struct nnd_json *x = shape->first, *y = other->first; x; x = x->next, y = y->next)
    if (x->kind == NND_INTEGER && y->kind == NND_INTEGER && x->integer != y->integer) return 0;
  return 1;
}

static int nnd_check_typed(const struct nnd_json *types, const struct nnd_text *name, const char *in,
                           nnd_error *error) {
  char where[200];
  return nnd_listed(types, name) ||
         nnd_bad_manifest(error, nnd_place_of(where, "%.*s", in && *in ? (int)strlen(in) - 2 : 0, in),
                          "the value %s has no type", nnd_quoted(name).text);
}

static int nnd_check_types_of(const struct nnd_json *manifest, const struct nnd_json *chain, const char *in,
                              nnd_error *error) {
  static const char *const sides[] = {"inputs", "outputs"};
  const struct nnd_json *types = nnd_json_member(chain, "values");
  char where[200];
  for (int side = 0; side < 2; side++) NND_EACH(end, nnd_json_member(manifest, sides[side])) {
      if (!nnd_check_typed(types, nnd_text_in(end, "name"), in, error)) return 0;
    }
  NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
    for (int side = 0; side < 2; side++) NND_EACH(name, nnd_json_member(submodel, sides[side])) {
        if (!nnd_check_typed(types, &name->text, in, error)) return 0;
      }
  }
  for (int side = 0; side < 2; side++) NND_EACH(end, nnd_json_member(manifest, sides[side])) {
      const struct nnd_text *name = nnd_text_in(end, "name");
      if (!nnd_may_be_same(nnd_json_member(end, "type"), nnd_listed(types, name)))
        return nnd_bad_manifest(error, nnd_place_of(where, "%svalues", in), "the value %s has two types",
                                nnd_quoted(name).text);
    }
  return 1;
}

static int nnd_check_ranges_of(const struct nnd_json *ranges, const char *in, nnd_error *error) {
  char where[200];
  NND_EACH(range, ranges) {
    const struct nnd_json *step = nnd_json_member(range, "step");
    const long long least = nnd_json_member(range, "min")->integer, most = nnd_json_member(range, "max")->integer;
    const long long best = nnd_json_member(range, "best")->integer, by = step ? step->integer : 1;
    nnd_place_of(where, "%sranges[%s]", in, nnd_quoted(&range->key).text);
    if (least > best || best > most)
      return nnd_bad_manifest(error, where, "expected min <= best <= max, got %lld, %lld, %lld", least, best, most);
    if (by < 1 || (best - least) % by || (most - least) % by)
      return nnd_bad_manifest(error, where, "best %lld and max %lld must be %lld and a multiple of the step %lld", best,
                              most, least, by);
  }
  return 1;
}

static int nnd_check_chains(const struct nnd_json *manifest, nnd_error *error) {
  NND_EACH_CHAIN(chain, manifest) {
    char in[120] = "";
    if (chain != manifest) snprintf(in, sizeof in, "chain %s: ", nnd_text_in(chain, "id")->data);
    if (!nnd_check_order_of(manifest, chain, in, error) || !nnd_check_outputs_of(manifest, chain, in, error) ||
        !nnd_check_types_of(manifest, chain, in, error) ||
        (chain != manifest && !nnd_check_ranges_of(nnd_json_member(chain, "ranges"), in, error)))
      return 0;
  }
  return 1;
}

/* ---- members */

static int nnd_check_named_member(const struct nnd_json *manifest, const struct nnd_text *name, const char *where,
                                  nnd_error *error) {
  return nnd_listed(nnd_json_member(manifest, "members"), name) ||
         nnd_bad_manifest(error, where, "it names the member %s, which is not listed", nnd_quoted(name).text);
}

/* Checks the members that variants name; that the variants of a submodel are called otherwise is known. */
static int nnd_check_files_of(const struct nnd_json *manifest, nnd_error *error) {
  char where[200];
  NND_EACH_CHAIN(chain, manifest) {
    NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
      NND_EACH(variant, nnd_json_member(submodel, "variants")) {
        nnd_place_of(where, "variant %s of submodel %s", nnd_text_in(variant, "id")->data,
                     nnd_text_in(submodel, "id")->data);
        NND_EACH(file, nnd_json_member(variant, "files")) {
          if (!nnd_check_named_member(manifest, &file->text, where, error)) return 0;
        }
      }
    }
  }
  return 1;
}

static int nnd_check_variants(const struct nnd_json *manifest, nnd_error *error) {
  char where[200];
  NND_EACH_CHAIN(chain, manifest) {
    NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
      nnd_place_of(where, "submodel %s", nnd_text_in(submodel, "id")->data);
      if (!nnd_check_once(nnd_json_member(submodel, "variants"), "id", "variant", where, error)) return 0;
    }
  }
  return 1;
}

/* Checks the members that the fields of a manifest name which are texts, or objects of texts. */
static int nnd_check_fields_of(const struct nnd_json *manifest, nnd_error *error) {
  static const char *const fields[] = {"constants", "defaults", "pace_libraries", "pace_operators"};
  char where[200];
  for (int i = 0; i < 4; i++) {
    const struct nnd_json *field = nnd_json_member(manifest, fields[i]);
    if (field && field->kind == NND_STRING && field->text.size &&
        !nnd_check_named_member(manifest, &field->text, fields[i], error))
      return 0;
    NND_EACH(item, nnd_json_of_kind(field, NND_OBJECT)) {
      nnd_place_of(where, "%s[%s]", fields[i], nnd_quoted(&item->key).text);
      if (!nnd_check_named_member(manifest, &item->text, where, error)) return 0;
    }
  }
  return 1;
}

static int nnd_check_members_of(const struct nnd_json *manifest, nnd_error *error) {
  static const char *const sides[] = {"inputs", "outputs", "boundaries"};
  static const char *const unlisted[] = {"manifest.json", "signature"};
  const struct nnd_json *members = nnd_json_member(manifest, "members");
  int number = 0;
  char where[200];
  if (members->count > NND_MOST_LISTED)
    return nnd_bad_manifest(error, "members", "%lld members, more than a bundle can hold", (long long)members->count);
  for (int i = 0; i < 2; i++)
    if (nnd_json_member(members, unlisted[i]))
      return nnd_bad_manifest(error, "members", "the manifest must not list '%s'", unlisted[i]);
  if (!nnd_json_member(members, "report.json"))
    return nnd_bad_manifest(error, "members", "the member 'report.json' is missing");
  if (!nnd_check_files_of(manifest, error)) return 0;
  NND_EACH(golden, nnd_json_member(manifest, "goldens")) {
    nnd_place_of(where, "goldens[%d]", number++);
    for (int i = 0; i < 3; i++) {
      const struct nnd_text *name = nnd_text_in(golden, sides[i]);
      if (name->size && !nnd_check_named_member(manifest, name, where, error)) return 0;
    }
  }
  return nnd_check_fields_of(manifest, error);
}

static int nnd_check_compressed_of(const struct nnd_json *manifest, nnd_error *error) {
  const struct nnd_json *members = nnd_json_member(manifest, "members"), *all = nnd_json_member(manifest, "compressed");
  char where[200];
  NND_EACH(one, all) {
    const struct nnd_json *bases = nnd_json_member(one, "bases");
    const int64_t size = nnd_json_member(one, "size_bytes")->integer;
    int64_t most = NND_MOST_OWN;
    nnd_place_of(where, "compressed[%s]", nnd_quoted(&one->key).text);
    if (!nnd_listed(members, &one->key) || nnd_is_text(&one->key, "report.json"))
      return nnd_bad_manifest(error, where, "no member that could be compressed");
    NND_EACH(base, bases) {
      const struct nnd_json *member = nnd_listed(members, &base->text);
      if (!member || nnd_listed(all, &base->text))
        return nnd_bad_manifest(error, where, "its base %s is compressed, or no member", nnd_quoted(&base->text).text);
      const struct nnd_json *first = bases->first;
      while (!nnd_is_same_text(&first->text, &base->text)) first = first->next;
      if (first == base && __builtin_add_overflow(most, nnd_json_member(member, "size_bytes")->integer, &most))
        most = INT64_MAX;
    }
    if (size < 1 || size > most)
      return nnd_bad_manifest(error, where, "claims %lld bytes; 1 to %lld are allowed", (long long)size,
                              (long long)most);
  }
  return 1;
}

/* ---- what goldens, defaults, places and images name */

static int nnd_check_limits_of(const struct nnd_json *manifest, nnd_error *error) {
  int number = 0;
  char where[200];
  NND_EACH(golden, nnd_json_member(manifest, "goldens")) {
    nnd_place_of(where, "goldens[%d].limits", number++);
    NND_EACH(limit, nnd_json_member(golden, "limits")) {
      if (!nnd_with(nnd_json_member(manifest, "outputs"), "name", &limit->key))
        return nnd_bad_manifest(error, where, "%s is no output", nnd_quoted(&limit->key).text);
    }
  }
  NND_EACH(value, nnd_json_member(manifest, "defaults")) {
    if (!nnd_with(nnd_json_member(manifest, "inputs"), "name", &value->key))
      return nnd_bad_manifest(error, "defaults", "%s has a default, but is no input", nnd_quoted(&value->key).text);
  }
  return 1;
}

static int nnd_check_placing(const struct nnd_json *chain, const struct nnd_json *placing, int is_portable,
                             nnd_error *error) {
  const struct nnd_json *placed = nnd_json_member(placing, "submodels"),
                        *submodels = nnd_json_member(chain, "submodels");
  const struct nnd_text *different = NULL;
  char where[200];
  nnd_place_of(where, "placings[%s]", nnd_quoted(&placing->key).text);
  NND_EACH(submodel, submodels) {
    const struct nnd_text *id = nnd_text_in(submodel, "id");
    if (!nnd_listed(placed, id) && (!different || nnd_text_order(id, different) < 0)) different = id;
  }
  NND_EACH(one, placed) {
    if (!nnd_with(submodels, "id", &one->key) && (!different || nnd_text_order(&one->key, different) < 0))
      different = &one->key;
  }
  if (different)
    return nnd_bad_manifest(error, where, "submodel %s has no place, or is none of the chain",
                            nnd_quoted(different).text);
  NND_EACH(value, nnd_json_member(placing, "value_bytes")) {
    if (!nnd_listed(nnd_json_member(chain, "values"), &value->key))
      return nnd_bad_manifest(error, where, "%s is no value of the chain", nnd_quoted(&value->key).text);
  }
  NND_EACH(one, is_portable ? placed : NULL) {
    if (!strncmp(nnd_text_in(one, "place")->data, "cuda:", 5))
      return nnd_bad_manifest(error, where, "the portable chain runs on any CPU, and never on a GPU");
  }
  return 1;
}

static int nnd_check_placings_of(const struct nnd_json *manifest, nnd_error *error) {
  char where[200];
  NND_EACH(placing, nnd_json_member(manifest, "placings")) {
    const int is_portable = nnd_is_text(&placing->key, "portable");
    const struct nnd_json *chain =
        is_portable ? manifest : nnd_with(nnd_json_member(manifest, "target_chains"), "id", &placing->key);
    if (!chain)
      return nnd_bad_manifest(error, nnd_place_of(where, "placings[%s]", nnd_quoted(&placing->key).text),
                              "the bundle has no such chain");
    if (!nnd_check_placing(chain, placing, is_portable, error)) return 0;
  }
  return 1;
}

static int nnd_check_image_of(const struct nnd_json *manifest, nnd_error *error) {
  const struct nnd_json *image = nnd_json_of_kind(nnd_json_member(manifest, "image_input"), NND_OBJECT);
  if (!image) return 1;
  const struct nnd_text *channels = nnd_text_in(image, "channels");
  if (!nnd_with(nnd_json_member(manifest, "inputs"), "name", nnd_text_in(image, "name")))
    return nnd_bad_manifest(error, "image_input", "no input is named %s", nnd_quoted(nnd_text_in(image, "name")).text);
  if (nnd_json_member(image, "mean")->count != channels->size || nnd_json_member(image, "std")->count != channels->size)
    return nnd_bad_manifest(error, "image_input", "mean and std need %d numbers for %s", (int)channels->size,
                            channels->data);
  NND_EACH(one, nnd_json_member(image, "std")) {
    double number;
    if (nnd_json_number(one, &number) && number == 0)
      return nnd_bad_manifest(error, "image_input", "a standard deviation of 0 cannot be divided by");
  }
  return 1;
}

int nnd_check_fit(const struct nnd_json *manifest, nnd_error *error) {
  return nnd_check_once(nnd_json_member(manifest, "inputs"), "name", "input", "", error) &&
         nnd_check_once(nnd_json_member(manifest, "outputs"), "name", "output", "", error) &&
         nnd_check_once(nnd_json_member(manifest, "target_chains"), "id", "chain", "", error) &&
         nnd_check_submodels(manifest, error) && nnd_check_chains(manifest, error) &&
         nnd_check_variants(manifest, error) && nnd_check_members_of(manifest, error) &&
         nnd_check_compressed_of(manifest, error) && nnd_check_limits_of(manifest, error) &&
         nnd_check_ranges_of(nnd_json_member(manifest, "ranges"), "", error) &&
         nnd_check_placings_of(manifest, error) && nnd_check_image_of(manifest, error);
}
