# SPDX-License-Identifier: Apache-2.0
"""Calls -> one C source that includes c/program.h: a struct, its epilogues and a call for each step.

    static inline vf step3_end(vf v0, vf v1, vf v2) { return nnd_op_relu(v0); }
    static const struct nnd_pointwise_step step3 = {.images = 1, ..., .end = {step3_end, 0, 0}};
    static void step3_run(const void *context, struct nnd_part part) { nnd_pointwise_step(&step3, ..., part); }

All sizes are constants, so the compiler specialises every kernel. Where a size depends on the inputs, the struct is the
function's own, and that member is read from the table that nnd_compose filled (`size_table.py`):

    const struct nnd_pointwise_step step3 = {.images = call->sizes[0], .in_channels = 32, ...};

Steps that differ only in where their arrays lie and in which entries of the table they read, as the blocks of a network
that repeats them, share one function, for a kernel takes up to seconds to compile:

    static void step3_like_run(const nnd_size *sizes, nnd_elem *p0, ..., struct nnd_part part) { ... }

Law: the same calls and places give the same text.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nndeploy.values.size import Size, product
from nndeploy_native.expressions import Expression, c_lines
from nndeploy_native.shuffles import c_shuffle
from nndeploy_native.size_table import SizeTable
from nndeploy_native.steps.step import Axis, Call, Epilogue, Field, Formula, Shuffle
from nndeploy_native.tensors import Array, Tensor

PlaceOf = Callable[[Tensor | Array], str]
"""The C expression of the address of a tensor or of a packed constant."""

_HEAD = """/* Made by nndeploy_native/emit.py. */
#include "program.h"
"""
_HEAD_OF_ANY_SHAPE = _HEAD.replace("#include", "#define NND_ANY_SHAPE\n#include")
_COMPOSE = """
/* Fills the table of sizes for the inputs' shapes; 0 where the caller counts other symbols or entries than are here. */
NND_EXPORT int nnd_compose(const nnd_size *symbols, nnd_size num_symbols, nnd_size *sizes, nnd_size num_sizes) {{
  if (num_symbols != {symbols} || num_sizes != {entries}) return 0;
{body}
  return 1;
}}
"""
_RUN = """
static void all_steps(const void *context, struct nnd_pool *pool, int worker) {{
{body}
}}

/* Returns a pool of `workers`, null where the system gives no memory or threads. */
NND_EXPORT struct nnd_pool *nnd_start(int workers) {{ return nnd_pool_start(workers, {steps}); }}
NND_EXPORT void nnd_stop(struct nnd_pool *pool) {{ nnd_pool_stop(pool); }}

/* Which plan and constants this was made with: plan_check.py reads it before anything of this is mapped. */
NND_EXPORT const char nnd_seal[] = "{seal}";

/* Steps pass pace points. */
NND_EXPORT const int nnd_points_version = NND_PACE_VERSION;

/* `pool` is null where the caller works alone; one call at a time has it. */
NND_EXPORT void nnd_run(const struct nnd_call *call, struct nnd_pool *pool) {{
  if (pool) nnd_pool_run(pool, all_steps, call);
  else all_steps(call, NULL, 0);
}}
"""
_OF_IMAGES = frozenset((
    "convolution", "depthwise", "first_convolution", "grouped", "inverted_residual", "planar_separable", "pointwise",
    "pool_max", "pool_mean", "repeat", "resize", "separable", "stem", "transposed",
))  # fmt: skip
"""Kernels whose steps do images one after the other: where only their number varies, the rest is compiled as fixed."""
EPILOGUE_OPERANDS = 3
ELEMENTWISE_OPERANDS = 4

_NAME = "$step"
"""Stands in place of the name of a step, because what a step does is independent of its number."""
_ENTRY = re.compile(r"call->sizes\[\d+\]")
_ENTRY_OF_BODY = re.compile(r"\bsizes\[(\d+)\]")
_POINTER = re.compile(r"\bp(\d+)\b")
_KIND = re.compile(r"\(((?:const )?\w+ \*)\)")


@dataclass(frozen=True, slots=True)
class StepSource:
    """The C functions of one step; one `of_any_shape` is compiled in a file of its own, with kernels for any size."""

    text: str
    of_any_shape: bool


@dataclass(frozen=True, slots=True)
class _Body:
    """What a step does, in C, the same text for steps that may share it.

    `sizes[k]` is entry k of a step's own, `p0` its first place, of the first of `kinds`, which is "" where it is NULL.
    """

    functions: str
    text: str
    kinds: tuple[str, ...]
    of_any_shape: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """A step with what is its own."""

    what: str
    body: _Body
    places: tuple[str, ...]
    entries: tuple[str, ...]


def step_sources(calls: Sequence[Call], place_of: PlaceOf, table: SizeTable) -> list[StepSource]:
    """Returns the C functions of each step; sizes that depend on the inputs become entries of the table."""
    steps = [_step(call, place_of, table) for call in calls]
    counts = Counter(step.body for step in steps)
    first: dict[_Body, int] = {}
    found = []
    for number, step in enumerate(steps):
        shared = counts[step.body] > 1
        text = f"\n/* {step.what} */\n"
        if shared and step.body not in first:
            first[step.body] = number
            text += _shared(step.body, f"step{number}_like")
        text += _run_like(number, first[step.body], step) if shared else _run_alone(number, step)
        found.append(StepSource(text, step.body.of_any_shape))
    return found


def sources_of(calls: Sequence[Call], steps: Sequence[StepSource], table: SizeTable, seal: str = "") -> list[str]:
    """Returns the C files of steps, whose functions are those of `step_sources`, with the table that is complete.

    `seal` is a text of letters, digits and the like that the library holds.
    """
    runs = (
        f"  nnd_run_step(pool, {number}, worker, {call.chunks}, step{number}_run, context);"
        for number, call in enumerate(calls)
    )
    run = _RUN.format(body="\n".join(runs), steps=len(calls), seal=seal)
    compose = ""
    if table.solved:
        lines = "\n".join(f"  {line}" for line in table.lines)
        compose = _COMPOSE.format(body=lines, symbols=len(table.solved), entries=table.num_entries)
    others = [_declared(number) for number, step in enumerate(steps) if step.of_any_shape]
    files = ["".join((_HEAD, *others, *(step.text for step in steps if not step.of_any_shape), compose, run))]
    if others:
        files.append("".join((_HEAD_OF_ANY_SHAPE, *others, *(step.text for step in steps if step.of_any_shape))))
    return files


def _declared(number: int) -> str:
    return f"void step{number}_run(const void *context, struct nnd_part part);\n"


def _step(call: Call, place_of: PlaceOf, table: SizeTable) -> _Step:
    """Returns the functions, the struct and the call of one step; two structs where several threads get another."""
    struct = call.struct or call.kernel
    functions = [_function(f"{_NAME}_{key}", value) for key, value in call.fields.items()]
    variants = {_NAME: dict(call.fields)}
    if call.shared_fields:
        variants[f"{_NAME}_shared"] = {**call.fields, **call.shared_fields}
    is_any = any(_depends(field) for key, field in call.fields.items() if key != "images")
    images = call.fields.get("images")
    one_by_one = isinstance(images, Size) and not is_any and call.kernel in _OF_IMAGES
    if one_by_one:
        variants = {variant: {**fields, "images": 1} for variant, fields in variants.items()}
    structs = [_struct(struct, variant, _initializer(fields, _NAME, table)) for variant, fields in variants.items()]
    operands = (call.output, *call.arguments)
    places = ["0" if one is None else place_of(one) for one in operands]
    given = [
        "0" if one is None else f"p{number}{_of_image(one) if one_by_one else ''}"
        for number, one in enumerate(operands)
    ]
    runs = [f"nnd_{call.kernel}_step(&{variant}, {', '.join(given)}, part);\n" for variant in variants]
    body = f"  {runs[0]}" if len(runs) == 1 else f"  if (part.count == 1) {runs[0]}  else {runs[1]}"
    if one_by_one:
        assert isinstance(images, Size)
        body = f"  for (nnd_size n = 0; n < call->sizes[{table.entry_of(images)}]; n++) {{\n{body}  }}\n"
    text = "".join(f"  {one}" for one in structs if not _is_static(one)) + body
    entries = tuple(dict.fromkeys(_ENTRY.findall(text)))
    text = _ENTRY.sub(lambda found: f"sizes[{entries.index(found[0])}]", text)
    before = "".join((*functions, *(one for one in structs if _is_static(one))))
    kinds = tuple("" if place == "0" else _kind_of(place) for place in places)
    return _Step(str(call.notes.get("what", call.kernel)), _Body(before, text, kinds, is_any), tuple(places), entries)


def _kind_of(place: str) -> str:
    """Returns the type of a place, which begins with it."""
    found = _KIND.match(place)
    assert found, place
    return found[1]


def _run_alone(number: int, step: _Step) -> str:
    """Returns the functions of a step that is like no other."""
    text = _ENTRY_OF_BODY.sub(lambda found: step.entries[int(found[1])], step.body.text)
    text = _POINTER.sub(lambda found: step.places[int(found[1])], text)
    return _named(step.body.functions, f"step{number}") + _run(number, step, _named(text, f"step{number}"))


def _shared(body: _Body, name: str) -> str:
    """Returns the function that steps share."""
    parameters = [f"{kind}p{number}" for number, kind in enumerate(body.kinds) if kind]
    head = f"static __attribute__((noinline)) void {name}_run"
    text = f"{head}(const nnd_size *sizes, {', '.join(parameters)}, struct nnd_part part) {{\n{body.text}}}\n"
    return _named(body.functions + text, name)


def _run_like(number: int, first: int, step: _Step) -> str:
    """Returns the function of a step that shares what the step `first` does."""
    places = [place for place, kind in zip(step.places, step.body.kinds, strict=True) if kind]
    text, sizes = "", "0"
    if step.entries:
        text, sizes = f"  const nnd_size sizes[] = {{{', '.join(step.entries)}}};\n", "sizes"
    return _run(number, step, f"{text}  step{first}_like_run({sizes}, {', '.join(places)}, part);\n")


def _run(number: int, step: _Step, text: str) -> str:
    return (
        f"{'' if step.body.of_any_shape else 'static '}__attribute__((noinline)) void step{number}_run"
        "(const void *context, struct nnd_part part) {\n"
        f"  const struct nnd_call *call = context;\n{text}}}\n"
    )


def _named(text: str, name: str) -> str:
    return text.replace(_NAME, name)


def _of_image(one: Tensor | Array) -> str:
    """Returns what leads from a tensor to its image n, where images are done one by one."""
    if not isinstance(one, Tensor):
        return ""
    return f" + n * {product((*one.shape[1:],)) if not one.is_blocked else _blocked_image(one)}"


def _blocked_image(tensor: Tensor) -> str:
    _, channels, height, width = tensor.shape
    return f"nnd_blocks({channels}) * {product((height, width))} * NND_LANES"


def _depends(field: Field) -> bool:
    """Whether a member depends on the inputs."""
    match field:
        case Size():
            return True
        case Axis():
            return any(isinstance(size, Size) for size in (field.size, field.out_size, field.kernel, field.pad))
        case Epilogue() | Formula() | Shuffle() | int():
            return False
    return any(_depends(one) for one in field)


def _struct(struct: str, variant: str, initializer: str) -> str:
    kind = "const" if "call->sizes" in initializer else "static const"
    return f"{kind} struct nnd_{struct}_step {variant} = {initializer};\n"


def _is_static(struct: str) -> bool:
    return struct.startswith("static")


def _initializer(fields: dict[str, Field], prefix: str, table: SizeTable) -> str:
    return "{" + ", ".join(f".{key} = {_value(field, f'{prefix}_{key}', table)}" for key, field in fields.items()) + "}"


def _value(field: Field, name: str, table: SizeTable) -> str:
    """Returns a member of a struct in C; `name` is that of the function that an epilogue or the like became."""
    match field:
        case Size():
            return f"call->sizes[{table.entry_of(field)}]"
        case Epilogue():
            return f"{{{name}, {int(field.residual is not None)}, {int(field.channel is not None)}}}"
        case Axis():
            sizes = (field.size, field.out_size, field.kernel, field.stride, field.dilation, field.pad, field.over)
            return f"{{{', '.join(_value(size, name, table) for size in sizes)}}}"
        case Formula() | Shuffle():
            return name
        case int():
            return str(int(field))
    return "{" + ", ".join(_value(one, name, table) for one in field) + "}"


def _function(name: str, field: Field) -> str:
    """Returns the C function of an epilogue, an expression or a shuffle, "" for any other field."""
    match field:
        case Epilogue():
            return _expression(name, field.expression, EPILOGUE_OPERANDS)
        case Formula():
            return _expression(name, field.expression, ELEMENTWISE_OPERANDS)
        case Shuffle():
            lines = (f"  NND_MOVE({block}, {c_shuffle(lanes)});\n" for block, lanes in enumerate(field.blocks))
            return f"NND_INLINE void {name}(NND_MOVE_PARAMETERS) {{\n{''.join(lines)}}}\n"
    return ""


def _expression(name: str, expression: Expression, num_operands: int) -> str:
    names = {number: f"v{number}" for number in range(num_operands)}
    lines, result = c_lines(expression, names)
    parameters = ", ".join(f"vf {one}" for one in names.values())
    body = "".join(f"  {line}\n" for line in lines)
    return f"NND_INLINE vf {name}({parameters}) {{\n{body}  return {result};\n}}\n"
