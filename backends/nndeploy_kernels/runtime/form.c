/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/form.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/shown.h"

#define NND_FORMAT_NAME "nndeploy-bundle"
#define NND_FORMAT_MAJOR 1
#define NND_FORMAT_MINOR 10
#define NND_MOST_TYPE_DEPTH 8
#define NND_MOST_SIZES 64

/* What a field may hold. */
enum nnd_kind {
  NND_IS_TEXT,
  NND_IS_NAME,
  NND_IS_NAMES,
  NND_IS_ID,
  NND_IS_SHA256,
  NND_IS_MEMBER,
  NND_IS_MEMBER_OR_EMPTY,
  NND_IS_BOOLEAN,
  NND_IS_INTEGER, /* between `low` and `high` */
  NND_IS_INTEGER_OR_NULL,
  NND_IS_FROM_ZERO,
  NND_IS_NUMBERS,
  NND_IS_CHOICE, /* of the words of `of`, with commas between them */
  NND_IS_PLACE,
  NND_IS_PLAIN,          /* an object */
  NND_IS_PLAINS,         /* a list of objects */
  NND_IS_OBJECT,         /* of the fields `fields` */
  NND_IS_OBJECT_OR_NULL, /* the same */
  NND_IS_OBJECTS,        /* a list of these, `low` at least */
  NND_IS_OBJECT_OF,      /* these by name */
  NND_IS_TOLERANCES,     /* these by the name of an element type */
  NND_IS_MEMBERS,        /* these by the name of a member */
  NND_IS_COMPRESSED,     /* the same, each of bases that are members */
  NND_IS_NAMES_BY_NAME,
  NND_IS_MEMBERS_BY_NAME,
  NND_IS_FILES,
  NND_IS_INTEGERS_BY_NAME,
  NND_IS_TYPE,
  NND_IS_TYPES
};

struct nnd_field {
  const char *name;
  enum nnd_kind kind;
  const struct nnd_field *fields;
  int first_minor; /* the version that brought it */
  int is_optional;
  int64_t low, high; /* of names and objects: how many at least */
  const char *of;
};

#define NND_MOST_INTEGER INT64_MAX
#define NND_END_OF_FIELDS {NULL, NND_IS_TEXT, NULL, 0, 0, 0, 0, NULL}
#define NND_PLAIN_FIELD(name, kind) {name, kind, NULL, 0, 0, 0, NND_MOST_INTEGER, NULL}
#define NND_SINCE(name, kind, fields, minor) {name, kind, fields, minor, 0, 0, NND_MOST_INTEGER, NULL}
#define NND_OF(name, kind, fields, least) {name, kind, fields, 0, 0, least, NND_MOST_INTEGER, NULL}
#define NND_NEED(name, kind, fields, least) {name, kind, fields, 0, 1, least, NND_MOST_INTEGER, NULL}

static const struct nnd_field nnd_named_type[] = {
    NND_PLAIN_FIELD("name", NND_IS_NAME),
    NND_PLAIN_FIELD("type", NND_IS_TYPE),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_machine[] = {
    NND_PLAIN_FIELD("arch", NND_IS_NAME),
    NND_PLAIN_FIELD("cpu_features", NND_IS_NAMES),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_needs[] = {
    NND_NEED("arch", NND_IS_NAME, NULL, 0),
    NND_NEED("cpu_features", NND_IS_NAMES, NULL, 0),
    NND_NEED("custom_ops", NND_IS_NAMES, NULL, 0),
    NND_NEED("compute_capability", NND_IS_NAMES, NULL, 1),
    NND_NEED("compute_capability_min", NND_IS_NAME, NULL, 0),
    NND_NEED("machines", NND_IS_OBJECTS, nnd_machine, 1),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_variant[] = {
    NND_PLAIN_FIELD("id", NND_IS_ID),
    NND_PLAIN_FIELD("backend", NND_IS_NAME),
    NND_PLAIN_FIELD("target", NND_IS_NAME),
    NND_PLAIN_FIELD("files", NND_IS_FILES),
    NND_PLAIN_FIELD("metadata", NND_IS_PLAIN),
    NND_OF("requires", NND_IS_OBJECT, nnd_needs, 0),
    NND_PLAIN_FIELD("native_code", NND_IS_BOOLEAN),
    NND_PLAIN_FIELD("deterministic", NND_IS_BOOLEAN),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_submodel[] = {
    NND_PLAIN_FIELD("id", NND_IS_ID),
    NND_PLAIN_FIELD("inputs", NND_IS_NAMES),
    NND_OF("outputs", NND_IS_NAMES, NULL, 1),
    NND_OF("variants", NND_IS_OBJECTS, nnd_variant, 1),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_range_fields[] = {
    NND_SINCE("step", NND_IS_INTEGER, NULL, 2),
    NND_PLAIN_FIELD("min", NND_IS_INTEGER),
    NND_PLAIN_FIELD("max", NND_IS_INTEGER),
    NND_PLAIN_FIELD("best", NND_IS_INTEGER),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_chain[] = {
    NND_PLAIN_FIELD("id", NND_IS_ID),
    NND_PLAIN_FIELD("target", NND_IS_NAME),
    NND_OF("submodels", NND_IS_OBJECTS, nnd_submodel, 0),
    NND_PLAIN_FIELD("values", NND_IS_TYPES),
    NND_SINCE("ranges", NND_IS_OBJECT_OF, nnd_range_fields, 10),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_limit[] = {
    NND_PLAIN_FIELD("max_abs", NND_IS_FROM_ZERO),
    NND_PLAIN_FIELD("rms", NND_IS_FROM_ZERO),
    NND_PLAIN_FIELD("slice_rms", NND_IS_FROM_ZERO),
    NND_PLAIN_FIELD("off", NND_IS_FROM_ZERO),
    {"rows_axis", NND_IS_INTEGER_OR_NULL, NULL, 0, 0, 0, NND_MOST_SIZES, NULL},
    NND_PLAIN_FIELD("unmatched", NND_IS_FROM_ZERO),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_golden[] = {
    NND_PLAIN_FIELD("inputs", NND_IS_MEMBER),
    NND_PLAIN_FIELD("outputs", NND_IS_MEMBER),
    NND_PLAIN_FIELD("boundaries", NND_IS_MEMBER_OR_EMPTY),
    {"origin", NND_IS_CHOICE, NULL, 0, 0, 0, 0, "sample, generated"},
    NND_SINCE("limits", NND_IS_OBJECT_OF, nnd_limit, 5),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_tolerance_fields[] = {
    NND_PLAIN_FIELD("rtol", NND_IS_FROM_ZERO),
    NND_PLAIN_FIELD("atol", NND_IS_FROM_ZERO),
    NND_PLAIN_FIELD("span", NND_IS_FROM_ZERO),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_image_fields[] = {
    NND_PLAIN_FIELD("name", NND_IS_NAME),
    {"height", NND_IS_INTEGER, NULL, 0, 0, 1, 65535, NULL},
    {"width", NND_IS_INTEGER, NULL, 0, 0, 1, 65535, NULL},
    {"channels", NND_IS_CHOICE, NULL, 0, 0, 0, 0, "RGB, BGR, L"},
    {"layout", NND_IS_CHOICE, NULL, 0, 0, 0, 0, "NCHW, NHWC"},
    NND_PLAIN_FIELD("mean", NND_IS_NUMBERS),
    NND_PLAIN_FIELD("std", NND_IS_NUMBERS),
    NND_PLAIN_FIELD("labels", NND_IS_NAMES),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_member_fields[] = {
    NND_PLAIN_FIELD("sha256", NND_IS_SHA256),
    NND_PLAIN_FIELD("size_bytes", NND_IS_INTEGER),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_compressed_fields[] = {
    NND_PLAIN_FIELD("bases", NND_IS_NAMES),
    NND_PLAIN_FIELD("sha256", NND_IS_SHA256),
    NND_PLAIN_FIELD("size_bytes", NND_IS_INTEGER),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_placed[] = {
    NND_PLAIN_FIELD("place", NND_IS_PLACE),
    NND_PLAIN_FIELD("weight_bytes", NND_IS_INTEGER),
    NND_PLAIN_FIELD("peak_bytes", NND_IS_INTEGER),
    NND_END_OF_FIELDS,
};
static const struct nnd_field nnd_placing[] = {
    NND_PLAIN_FIELD("value_bytes", NND_IS_PLAIN),
    NND_OF("submodels", NND_IS_OBJECT_OF, nnd_placed, 0),
    NND_PLAIN_FIELD("value_bytes", NND_IS_INTEGERS_BY_NAME),
    NND_END_OF_FIELDS,
};
/* In the order in which they are looked at; so is what is wrong with two of them. */
static const struct nnd_field nnd_manifest[] = {
    NND_PLAIN_FIELD("format", NND_IS_PLAIN),
    NND_SINCE("target_chains", NND_IS_PLAINS, NULL, 1),
    NND_PLAIN_FIELD("model_name", NND_IS_TEXT),
    NND_PLAIN_FIELD("model_sha256", NND_IS_SHA256),
    NND_OF("inputs", NND_IS_OBJECTS, nnd_named_type, 0),
    NND_OF("outputs", NND_IS_OBJECTS, nnd_named_type, 0),
    NND_OF("submodels", NND_IS_OBJECTS, nnd_submodel, 0),
    NND_PLAIN_FIELD("values", NND_IS_TYPES),
    NND_SINCE("target_chains", NND_IS_OBJECTS, nnd_chain, 1),
    NND_OF("ranges", NND_IS_OBJECT_OF, nnd_range_fields, 0),
    NND_PLAIN_FIELD("aliases", NND_IS_NAMES_BY_NAME),
    NND_PLAIN_FIELD("constants", NND_IS_MEMBER_OR_EMPTY),
    NND_OF("goldens", NND_IS_OBJECTS, nnd_golden, 0),
    NND_OF("tolerances", NND_IS_TOLERANCES, nnd_tolerance_fields, 0),
    NND_PLAIN_FIELD("checks", NND_IS_PLAINS),
    NND_OF("image_input", NND_IS_OBJECT_OR_NULL, nnd_image_fields, 0),
    NND_SINCE("pace_libraries", NND_IS_MEMBERS_BY_NAME, NULL, 3),
    NND_SINCE("pace_operators", NND_IS_MEMBER_OR_EMPTY, NULL, 4),
    NND_PLAIN_FIELD("provenance", NND_IS_PLAIN),
    NND_OF("members", NND_IS_MEMBERS, nnd_member_fields, 0),
    NND_SINCE("compressed", NND_IS_COMPRESSED, nnd_compressed_fields, 7),
    NND_SINCE("placings", NND_IS_OBJECT_OF, nnd_placing, 8),
    NND_SINCE("defaults", NND_IS_MEMBERS_BY_NAME, NULL, 9),
    NND_END_OF_FIELDS,
};

/* ---- what is refused */

struct nnd_form {
  int64_t minor;
  nnd_error *error;
};

int nnd_bad_manifest(nnd_error *error, const char *where, const char *format, ...) {
  char what[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "manifest.json: %s%s%s", where, *where ? ": " : "", what);
}

static int nnd_unexpected(const struct nnd_form *form, const char *where, const char *expected,
                          const struct nnd_json *found) {
  char shown[NND_SHOWN];
  return nnd_bad_manifest(form->error, where, "expected %s, got %s", expected, nnd_shown(found, 80, shown));
}

#define NND_WHERE 400

/* Writes where a field lies, as "submodels[0].id". */
static const char *nnd_at(const char *where, const char *name, char at[NND_WHERE]) {
  snprintf(at, NND_WHERE, "%s%s%s", where, *where ? "." : "", name);
  return at;
}

static const char *nnd_at_number(const char *where, int64_t number, char at[NND_WHERE]) {
  snprintf(at, NND_WHERE, "%.380s[%lld]", where, (long long)number);
  return at;
}

static const char *nnd_at_name(const char *where, const struct nnd_text *name, char at[NND_WHERE]) {
  char shown[NND_SHOWN];
  snprintf(at, NND_WHERE, "%.300s[%s]", where, nnd_shown_text(name, 80, shown));
  return at;
}

/* ---- names, numbers, types */

static int nnd_is_id(const struct nnd_text *text, int64_t most) {
  for (int64_t i = 0; i < text->size; i++) {
    const char c = text->data[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-')) return 0;
  }
  return text->size > 0 && text->size <= most && !nnd_is_text(text, ".") && !nnd_is_text(text, "..");
}

static int nnd_is_file(const struct nnd_text *text) {
  const char *slash = memchr(text->data, '/', (size_t)text->size);
  if (!slash) return nnd_is_id(text, 64);
  const struct nnd_text first = {text->data, slash - text->data};
  const struct nnd_text second = {slash + 1, text->size - first.size - 1};
  return nnd_is_id(&first, 64) && nnd_is_id(&second, 128);
}

int nnd_is_sha256(const struct nnd_text *text) {
  for (int64_t i = 0; i < text->size; i++)
    if (!memchr("0123456789abcdef", text->data[i], 16)) return 0;
  return text->size == 64;
}

static int nnd_is_number(const struct nnd_json *value) {
  double number;
  return nnd_json_number(value, &number);
}

static int nnd_check_member_name(const struct nnd_form *form, const char *where, const struct nnd_text *name) {
  char shown[NND_SHOWN];
  const char *fault = nnd_name_fault(name);
  return !fault ||
         nnd_bad_manifest(form->error, where, "the member name %s %s", nnd_shown_text(name, 80, shown), fault);
}

static int nnd_is_place(const struct nnd_text *text) { /* cpu, cpu:N, cuda:N; N from 0 to 63, without zeros before */
  if (nnd_is_text(text, "cpu")) return 1;
  const int64_t begin = text->size > 4 && !memcmp(text->data, "cpu:", 4)    ? 4
                        : text->size > 5 && !memcmp(text->data, "cuda:", 5) ? 5
                                                                            : 0;
  int64_t number = 0;
  for (int64_t i = begin; begin && i < text->size; i++) {
    if (text->data[i] < '0' || text->data[i] > '9' || number > 63) return 0;
    number = 10 * number + text->data[i] - '0';
  }
  return begin && number < 64 && (text->data[begin] != '0' || text->size == begin + 1);
}

static int nnd_is_element(const struct nnd_json *value) {
  static const char *const names[] = {
      "float16",         "float32",        "float64",       "int8",          "int16",           "int32",
      "int64",           "uint8",          "uint16",        "uint32",        "uint64",          "bool",
      "complex64",       "complex128",     "bfloat16",      "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
      "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4",          "uint4",           "int2",
      "uint2",           "string"};
  for (size_t i = 0; value && value->kind == NND_STRING && i < sizeof names / sizeof *names; i++)
    if (nnd_is_text(&value->text, names[i])) return 1;
  return 0;
}

static int nnd_is_key_of_map(const struct nnd_text *name) {
  return nnd_is_text(name, "string") ||
         (name->size > 3 && name->size < 7 && (!memcmp(name->data, "int", 3) || !memcmp(name->data, "uint", 4)) &&
          !nnd_is_text(name, "int4") && !nnd_is_text(name, "int2") && !nnd_is_text(name, "uint4") &&
          !nnd_is_text(name, "uint2"));
}

static int nnd_check_element(const struct nnd_form *form, const char *where, const struct nnd_json *value) {
  char shown[NND_SHOWN] = "None";
  return nnd_is_element(value) || nnd_bad_manifest(form->error, where, "unknown element type %s",
                                                   value->kind == NND_NULL ? shown : nnd_shown(value, 40, shown));
}

static int nnd_is_shape(const struct nnd_json *value) {
  if (value->kind == NND_NULL) return 1;
  if (value->kind != NND_ARRAY || value->count > NND_MOST_SIZES) return 0;
  NND_EACH(size, value) {
    const int is_whole = size->kind == NND_INTEGER && size->integer >= 0;
    const int is_large = size->kind == NND_REAL && !memchr(size->text.data, '.', (size_t)size->text.size) &&
                         !memchr(size->text.data, 'e', (size_t)size->text.size) && *size->text.data != '-';
    if (size->kind != NND_NULL && size->kind != NND_STRING && !is_whole && !is_large) return 0;
  }
  return 1;
}

static int nnd_no_type(const struct nnd_form *form, const char *where, const struct nnd_json *value) {
  char shown[NND_SHOWN] = "None";
  return nnd_bad_manifest(form->error, where, "not a value type: %s",
                          value->kind == NND_NULL ? shown : nnd_shown(value, 80, shown));
}

static int nnd_check_type(const struct nnd_form *form, const char *where, const struct nnd_json *value, int depth) {
  const struct nnd_json *kind = nnd_json_of_kind(nnd_json_member(value, "kind"), NND_STRING);
  const struct nnd_json *dtype = nnd_json_member(value, "dtype"), *shape = nnd_json_member(value, "shape");
  const struct nnd_json *element = nnd_json_member(value, "element"), *key = nnd_json_member(value, "key");
  const struct nnd_json *of = nnd_json_member(value, "value");
  if (!kind || depth > NND_MOST_TYPE_DEPTH) return nnd_no_type(form, where, value);
  if (nnd_is_text(&kind->text, "tensor") && dtype && shape && value->count == 3) {
    char shown[NND_SHOWN];
    return nnd_check_element(form, where, dtype) &&
           (nnd_is_shape(shape) ||
            nnd_bad_manifest(form->error, where, "not a shape: %s", nnd_shown(shape, 80, shown)));
  }
  if ((nnd_is_text(&kind->text, "sequence") || nnd_is_text(&kind->text, "optional")) && element && value->count == 2)
    return nnd_check_type(form, where, element, depth + 1);
  if (nnd_is_text(&kind->text, "map") && key && of && value->count == 3)
    return nnd_check_element(form, where, key) && nnd_check_type(form, where, of, depth + 1) &&
           (nnd_is_key_of_map(&key->text) ||
            nnd_bad_manifest(form->error, where, "the keys of a map are integers or strings, not %s", key->text.data));
  return nnd_no_type(form, where, value);
}

/* ---- fields */

static int nnd_check_fields(const struct nnd_form *form, const char *where, const struct nnd_json *object,
                            const struct nnd_field *fields);

static int nnd_check_names(const struct nnd_form *form, const char *at, const struct nnd_json *value, int64_t least) {
  char more[40];
  int is_right = value->kind == NND_ARRAY;
  NND_EACH(item, is_right ? value : NULL) is_right = is_right && item->kind == NND_STRING && item->text.size;
  if (!is_right) return nnd_unexpected(form, at, "a list of names", value);
  snprintf(more, sizeof more, "%lld name or more", (long long)least);
  return value->count >= least || nnd_unexpected(form, at, more, value);
}

static int nnd_check_integer(const struct nnd_form *form, const char *at, const struct nnd_json *value, int64_t low,
                             int64_t high) {
  char expected[80];
  int64_t number;
  if (nnd_json_integer(value, low, high, &number)) return 1;
  snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)low, (long long)high);
  return nnd_unexpected(form, at, expected, value);
}

static int nnd_check_choice(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                            const char *choices) {
  char expected[80];
  for (const char *c = choices; value->kind == NND_STRING && *c; c += strspn(c, ", ")) {
    const struct nnd_text one = {c, (int64_t)strcspn(c, ",")};
    if (nnd_is_same_text(&value->text, &one)) return 1;
    c += one.size;
  }
  snprintf(expected, sizeof expected, "one of %s", choices);
  return nnd_unexpected(form, at, expected, value);
}

/* Checks that a value is an object of which each name is some; then `names_alone`, that each item is a name. */
static int nnd_check_named(const struct nnd_form *form, const char *at, const struct nnd_json *value, int names_alone) {
  int is_right = value->kind == NND_OBJECT, are_names = 1;
  NND_EACH(item, is_right ? value : NULL) {
    is_right = is_right && item->key.size;
    are_names = are_names && item->kind == NND_STRING && item->text.size;
  }
  if (!is_right) return nnd_unexpected(form, at, "an object without an empty name", value);
  return !names_alone || are_names || nnd_unexpected(form, at, "an object of names", value);
}

static int nnd_check_list(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                          const struct nnd_field *field) {
  char more[40], inside[NND_WHERE];
  int64_t number = 0;
  if (value->kind != NND_ARRAY) return nnd_unexpected(form, at, "a list", value);
  snprintf(more, sizeof more, "%lld item or more", (long long)field->low);
  if (value->count < field->low) return nnd_unexpected(form, at, more, value);
  NND_EACH(item, value) {
    if (item->kind != NND_OBJECT) return nnd_unexpected(form, nnd_at_number(at, number, inside), "an object", item);
    number++;
  }
  number = 0;
  NND_EACH(item, field->fields ? value : NULL) {
    if (!nnd_check_fields(form, nnd_at_number(at, number++, inside), item, field->fields)) return 0;
  }
  return 1;
}

static int nnd_check_objects_by_name(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                                     const struct nnd_field *field) {
  char inside[NND_WHERE], shown[NND_SHOWN];
  if (!nnd_check_named(form, at, value, 0)) return 0;
  NND_EACH(item, value) {
    if (item->kind != NND_OBJECT) return nnd_unexpected(form, nnd_at_name(at, &item->key, inside), "an object", item);
  }
  NND_EACH(item, value) {
    const struct nnd_json name = {.kind = NND_STRING, .text = item->key};
    if (field->kind == NND_IS_TOLERANCES && !nnd_is_element(&name))
      return nnd_bad_manifest(form->error, "tolerances", "unknown element type %s",
                              nnd_shown_text(&item->key, 40, shown));
    if (field->kind == NND_IS_MEMBERS && !nnd_check_member_name(form, "members", &item->key)) return 0;
    if (!nnd_check_fields(form, nnd_at_name(at, &item->key, inside), item, field->fields)) return 0;
    if (field->kind != NND_IS_COMPRESSED) continue;
    char bases[NND_WHERE];
    NND_EACH(base, nnd_json_member(item, "bases")) {
      if (!nnd_check_member_name(form, nnd_at(inside, "bases", bases), &base->text)) return 0;
    }
    if (!nnd_check_member_name(form, "compressed", &item->key)) return 0;
  }
  return 1;
}

static int nnd_check_files(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                           enum nnd_kind kind) {
  char inside[NND_WHERE], shown[NND_SHOWN];
  if (!nnd_check_named(form, at, value, 1)) return 0;
  NND_EACH(item, kind == NND_IS_NAMES_BY_NAME ? NULL : value) {
    if (kind == NND_IS_FILES && !nnd_is_file(&item->key))
      return nnd_bad_manifest(form->error, at, "%s is no name of a backend's file",
                              nnd_shown_text(&item->key, 80, shown));
    if (!nnd_check_member_name(form, nnd_at_name(at, &item->key, inside), &item->text)) return 0;
  }
  return 1;
}

static int nnd_check_each(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                          enum nnd_kind kind) {
  char inside[NND_WHERE];
  if (kind == NND_IS_TYPES) {
    if (!nnd_check_named(form, at, value, 0)) return 0;
    NND_EACH(item, value) {
      if (!nnd_check_type(form, nnd_at_name(at, &item->key, inside), item, 0)) return 0;
    }
    return 1;
  }
  if (value->kind != NND_OBJECT) return nnd_unexpected(form, at, "an object", value);
  NND_EACH(item, value) {
    if (!nnd_check_integer(form, nnd_at(at, item->key.data, inside), item, 0, NND_MOST_INTEGER)) return 0;
  }
  return 1;
}

static int nnd_check_text(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                          enum nnd_kind kind) {
  if (value->kind != NND_STRING) return nnd_unexpected(form, at, "text", value);
  switch (kind) {
    case NND_IS_NAME: return value->text.size || nnd_unexpected(form, at, "a name", value);
    case NND_IS_ID:
      return nnd_is_id(&value->text, 64) || nnd_unexpected(form, at, "1 to 64 of a-z, 0-9, '_', '.', '-'", value);
    case NND_IS_SHA256:
      return nnd_is_sha256(&value->text) || nnd_unexpected(form, at, "64 lower-case hexadecimal digits", value);
    case NND_IS_PLACE: return nnd_is_place(&value->text) || nnd_unexpected(form, at, "cpu, cpu:N or cuda:N", value);
    case NND_IS_MEMBER: return nnd_check_member_name(form, at, &value->text);
    case NND_IS_MEMBER_OR_EMPTY: return !value->text.size || nnd_check_member_name(form, at, &value->text);
    default: return 1;
  }
}

static int nnd_check_numbers(const struct nnd_form *form, const char *at, const struct nnd_json *value) {
  int is_right = value->kind == NND_ARRAY;
  NND_EACH(item, is_right ? value : NULL) is_right = is_right && nnd_is_number(item);
  return is_right || nnd_unexpected(form, at, "a list of finite numbers", value);
}

static int nnd_check_field(const struct nnd_form *form, const char *at, const struct nnd_json *value,
                           const struct nnd_field *field) {
  double number;
  if (value->kind == NND_NULL && (field->kind == NND_IS_OBJECT_OR_NULL || field->kind == NND_IS_INTEGER_OR_NULL))
    return 1;
  switch (field->kind) {
    case NND_IS_NAMES: return nnd_check_names(form, at, value, field->low);
    case NND_IS_BOOLEAN:
      return value->kind == NND_TRUE || value->kind == NND_FALSE || nnd_unexpected(form, at, "true or false", value);
    case NND_IS_INTEGER:
    case NND_IS_INTEGER_OR_NULL: return nnd_check_integer(form, at, value, field->low, field->high);
    case NND_IS_FROM_ZERO:
      return (nnd_json_number(value, &number) && number >= 0) ||
             nnd_unexpected(form, at, "a finite number that is not negative", value);
    case NND_IS_NUMBERS: return nnd_check_numbers(form, at, value);
    case NND_IS_CHOICE: return nnd_check_choice(form, at, value, field->of);
    case NND_IS_PLAIN: return value->kind == NND_OBJECT || nnd_unexpected(form, at, "an object", value);
    case NND_IS_PLAINS:
    case NND_IS_OBJECTS: return nnd_check_list(form, at, value, field);
    case NND_IS_OBJECT:
    case NND_IS_OBJECT_OR_NULL: return nnd_check_fields(form, at, value, field->fields);
    case NND_IS_OBJECT_OF:
    case NND_IS_TOLERANCES:
    case NND_IS_MEMBERS:
    case NND_IS_COMPRESSED: return nnd_check_objects_by_name(form, at, value, field);
    case NND_IS_NAMES_BY_NAME:
    case NND_IS_MEMBERS_BY_NAME:
    case NND_IS_FILES: return nnd_check_files(form, at, value, field->kind);
    case NND_IS_INTEGERS_BY_NAME:
    case NND_IS_TYPES: return nnd_check_each(form, at, value, field->kind);
    case NND_IS_TYPE: return nnd_check_type(form, at, value, 0);
    default: return nnd_check_text(form, at, value, field->kind);
  }
}

/* Returns whether an object of some fields has one of a name; fields of later versions are none. */
static int nnd_is_field(const struct nnd_form *form, const struct nnd_field *fields, const struct nnd_text *name) {
  for (const struct nnd_field *field = fields; field->name; field++)
    if (field->first_minor <= form->minor && nnd_is_text(name, field->name)) return 1;
  return 0;
}

static int nnd_check_fields(const struct nnd_form *form, const char *where, const struct nnd_json *object,
                            const struct nnd_field *fields) {
  char at[NND_WHERE], shown[NND_SHOWN];
  if (object->kind != NND_OBJECT) return nnd_unexpected(form, where, "an object", object);
  for (const struct nnd_field *field = fields; field->name; field++) {
    const struct nnd_json *value = nnd_json_member(object, field->name);
    if (field->first_minor > form->minor || (!value && field->is_optional)) continue;
    if (!value) return nnd_bad_manifest(form->error, where, "the field '%s' is missing", field->name);
    if (!nnd_check_field(form, nnd_at(where, field->name, at), value, field)) return 0;
  }
  NND_EACH(item, form->minor > NND_FORMAT_MINOR ? NULL : object) {
    if (!nnd_is_field(form, fields, &item->key))
      return nnd_bad_manifest(form->error, where, "unknown field %s", nnd_shown_text(&item->key, 80, shown));
  }
  return 1;
}

/* ---- the version */

static int nnd_check_version(struct nnd_form *form, const struct nnd_json *manifest) {
  static const struct nnd_field version[] = {
      NND_PLAIN_FIELD("name", NND_IS_TEXT),
      NND_PLAIN_FIELD("major", NND_IS_INTEGER),
      NND_PLAIN_FIELD("minor", NND_IS_INTEGER),
      NND_END_OF_FIELDS,
  };
  if (manifest->kind != NND_OBJECT) return nnd_unexpected(form, "", "an object", manifest);
  const struct nnd_json *format = nnd_json_member(manifest, "format");
  if (!format) return nnd_bad_manifest(form->error, "", "the field 'format' is missing");
  if (format->kind != NND_OBJECT) return nnd_unexpected(form, "format", "an object", format);
  for (const struct nnd_field *field = version; field->name; field++) {
    const struct nnd_json *value = nnd_json_member(format, field->name);
    char at[NND_WHERE];
    if (!value) return nnd_bad_manifest(form->error, "format", "the field '%s' is missing", field->name);
    if (field == version && (value->kind != NND_STRING || !nnd_is_text(&value->text, NND_FORMAT_NAME)))
      return nnd_unexpected(form, "format.name", NND_FORMAT_NAME, value);
    if (field != version && !nnd_check_integer(form, nnd_at("format", field->name, at), value, 0, NND_MOST_INTEGER))
      return 0;
  }
  const int64_t major = nnd_json_member(format, "major")->integer;
  if (major > NND_FORMAT_MAJOR)
    return nnd_bad_manifest(
        form->error, "",
        "made by a newer nndeploy (format %lld), this one reads format %d (hint: upgrade nndeploy, or "
        "compile the model again with this one)",
        (long long)major, NND_FORMAT_MAJOR);
  if (major < NND_FORMAT_MAJOR)
    return nnd_bad_manifest(form->error, "", "format %lld was never released; this nndeploy reads format %d",
                            (long long)major, NND_FORMAT_MAJOR);
  form->minor = nnd_json_member(format, "minor")->integer;
  return nnd_check_fields(form, "format", format, version);
}

static int nnd_has_some(const struct nnd_json *manifest, const char *name) {
  const struct nnd_json *value = nnd_json_member(manifest, name);
  return value && (value->kind == NND_STRING ? value->text.size : value->count) > 0;
}

/* Returns whether a variant of the submodels of a chain needs something of its machine. */
static int nnd_is_needed(const struct nnd_json *chain, const char *need) {
  NND_EACH(submodel, nnd_json_member(chain, "submodels")) {
    NND_EACH(variant, nnd_json_member(submodel, "variants")) {
      if (nnd_json_member(nnd_json_member(variant, "requires"), need)) return 1;
    }
  }
  return 0;
}

/* Returns the oldest minor version that can say this (`_least_minor`). */
static int nnd_least_minor(const struct nnd_json *manifest) {
  int has_chain_ranges = 0, has_machines = nnd_is_needed(manifest, "machines"), has_limits = 0, has_steps = 0;
  NND_EACH(chain, nnd_json_member(manifest, "target_chains")) {
    has_chain_ranges |= nnd_has_some(chain, "ranges");
    has_machines |= nnd_is_needed(chain, "machines");
  }
  NND_EACH(golden, nnd_json_member(manifest, "goldens")) has_limits |= nnd_has_some(golden, "limits");
  NND_EACH(range, nnd_json_member(manifest, "ranges")) {
    const struct nnd_json *step = nnd_json_member(range, "step");
    has_steps |= step && step->integer != 1;
  }
  if (has_chain_ranges) return 10;
  if (nnd_has_some(manifest, "defaults")) return 9;
  if (nnd_has_some(manifest, "placings")) return 8;
  if (nnd_has_some(manifest, "compressed")) return 7;
  if (has_machines) return 6;
  if (has_limits) return 5;
  if (nnd_has_some(manifest, "pace_operators")) return 4;
  if (nnd_has_some(manifest, "pace_libraries")) return 3;
  if (has_steps) return 2;
  return nnd_has_some(manifest, "target_chains") || nnd_is_needed(manifest, "compute_capability") ||
         nnd_is_needed(manifest, "compute_capability_min");
}

int nnd_check_form(const struct nnd_json *manifest, nnd_error *error) {
  struct nnd_form form = {0, error};
  if (!nnd_check_version(&form, manifest) || !nnd_check_fields(&form, "", manifest, nnd_manifest)) return 0;
  const int least = nnd_least_minor(manifest);
  return form.minor > NND_FORMAT_MINOR || form.minor == least ||
         nnd_bad_manifest(error, "format", "says that it is of format 1.%lld, what it holds makes it 1.%d",
                          (long long)form.minor, least);
}
