# SPDX-License-Identifier: Apache-2.0
"""Calls -> one C source that includes c/program.h: a struct, its epilogues and a call for each step.

    static inline vf step3_end(vf v0, vf v1, vf v2) { return nnd_op_relu(v0); }
    static const struct nnd_pointwise_step step3 = {.images = 1, ..., .end = {step3_end, 0, 0}};
    static void step3_run(const void *context, struct nnd_part part) { nnd_pointwise_step(&step3, ..., part); }

All sizes are constants, so the compiler specialises every kernel. Law: the same calls and places give the same text.
"""

from collections.abc import Callable, Sequence

from nndeploy_native.expressions import Expression, c_lines
from nndeploy_native.shuffles import c_shuffle
from nndeploy_native.steps.step import Axis, Call, Epilogue, Field, Formula, Shuffle
from nndeploy_native.tensors import Array, Tensor

PlaceOf = Callable[[Tensor | Array], str]
"""The C expression of the address of a tensor or of a packed constant."""

_HEAD = """/* Made by nndeploy_native/emit.py. */
#include "program.h"
"""
_RUN = """
static void all_steps(const void *context, struct nnd_pool *pool, int worker) {{
{body}
}}

/* Returns a pool of `workers`, null where the system gives no memory or threads. */
NND_EXPORT struct nnd_pool *nnd_start(int workers) {{ return nnd_pool_start(workers, {steps}); }}
NND_EXPORT void nnd_stop(struct nnd_pool *pool) {{ nnd_pool_stop(pool); }}

/* `pool` is null where the caller works alone; one call at a time has it. */
NND_EXPORT void nnd_run(const struct nnd_call *call, struct nnd_pool *pool) {{
  if (pool) nnd_pool_run(pool, all_steps, call);
  else all_steps(call, NULL, 0);
}}
"""
EPILOGUE_OPERANDS = 3
ELEMENTWISE_OPERANDS = 4


def source_of(calls: Sequence[Call], place_of: PlaceOf) -> str:
    """Returns the C source."""
    steps = [_step(number, call, place_of) for number, call in enumerate(calls)]
    runs = (
        f"  nnd_run_step(pool, {number}, worker, {call.chunks}, step{number}_run, context);"
        for number, call in enumerate(calls)
    )
    return "".join((_HEAD, *steps, _RUN.format(body="\n".join(runs), steps=len(calls))))


def _step(number: int, call: Call, place_of: PlaceOf) -> str:
    """Returns the functions, the struct and the call of one step; two structs where several threads get another."""
    name, struct = f"step{number}", call.struct or call.kernel
    functions = [_function(f"{name}_{key}", value) for key, value in call.fields.items()]
    variants = {name: dict(call.fields)}
    if call.shared_fields:
        variants[f"{name}_shared"] = {**call.fields, **call.shared_fields}
    structs = [
        f"static const struct nnd_{struct}_step {variant} = {_initializer(fields, name)};\n"
        for variant, fields in variants.items()
    ]
    places = [place_of(call.output), *("0" if one is None else place_of(one) for one in call.arguments)]
    runs = [f"nnd_{call.kernel}_step(&{variant}, {', '.join(places)}, part);\n" for variant in variants]
    body = f"  {runs[0]}" if len(runs) == 1 else f"  if (part.count == 1) {runs[0]}  else {runs[1]}"
    return (
        f"\n/* {call.notes.get('what', call.kernel)} */\n"
        + "".join((*functions, *structs))
        + f"static __attribute__((noinline)) void {name}_run(const void *context, struct nnd_part part) {{\n"
        + "  const struct nnd_call *call = context;\n"
        + body
        + "}\n"
    )


def _initializer(fields: dict[str, Field], prefix: str) -> str:
    return "{" + ", ".join(f".{key} = {_value(field, f'{prefix}_{key}')}" for key, field in fields.items()) + "}"


def _value(field: Field, name: str) -> str:
    """Returns a member of a struct in C; `name` is that of the function that an epilogue or the like became."""
    match field:
        case Epilogue():
            return f"{{{name}, {int(field.residual is not None)}, {int(field.channel is not None)}}}"
        case Axis():
            sizes = (field.size, field.out_size, field.kernel, field.stride, field.dilation, field.pad)
            return f"{{{', '.join(map(str, sizes))}}}"
        case Formula() | Shuffle():
            return name
        case int():
            return str(int(field))
    return "{" + ", ".join(_value(one, name) for one in field) + "}"


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
