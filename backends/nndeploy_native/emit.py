# SPDX-License-Identifier: Apache-2.0
"""Calls -> one C source that includes c/templates.h: a struct, its epilogues and a call for each step.

    static const struct nnd_images step3 = {.batch = 1, ...};
    static inline vx step3_end0(vx v0, vx v1, vx v2) { return nndx_relu(v0); }
    int nnd_run(const struct nnd_call *call) { ... nnd_dense(&step3, step3_end0, out, in...); ... }

All sizes are constants, so the compiler specialises every kernel. Law: the same calls and places give the same text.
"""

from collections.abc import Callable, Sequence

import numpy as np

from nndeploy_native.expressions import Expression, c_lines
from nndeploy_native.isa import Isa
from nndeploy_native.steps.step import Call
from nndeploy_native.tensors import Array, Tensor

PlaceOf = Callable[[Tensor | Array], str]
"""The C expression of the address of a tensor or of a packed constant."""

_WITH_WINDOWS = (
    "dense", "dense_plain", "depthwise", "grouped", "transposed", "separable", "inverted_residual", "pool_max",
    "fast_pointwise", "fast_dense", "fast_dense_plain", "fast_depthwise", "fast_separable", "fast_inverted_residual",
    "pool_mean",
)  # fmt: skip
_ALONG_AXES = ("softmax", "log_softmax", "reduce_mean", "reduce_sum", "reduce_max")
_STRUCTS = {
    **dict.fromkeys(_WITH_WINDOWS, "images"),
    **dict.fromkeys(_ALONG_AXES, "along_axis"),
    **dict.fromkeys(("blocked_from_plain", "plain_from_blocked"), "convert"),
}
"""The struct of a kernel's sizes, where it is not called like the kernel."""
_HEAD = """/* Made by nndeploy_native/emit.py. */
#define NND_PANEL_LANES {panel}
#include "templates.h"
"""
_RUN = """
__attribute__((visibility("default"))) int nnd_run(const struct nnd_call *call) {{
{body}
  return 0;
}}
"""


def source_of(calls: Sequence[Call], scratch: Sequence[str], place_of: PlaceOf, isa: Isa) -> str:
    """Returns the C source; `scratch` gives the address of each call's scratch memory."""
    parts = [_HEAD.format(panel=isa.panel)]
    for number, call in enumerate(calls):
        parts.append(_step(number, call, scratch[number], place_of))
    body = "\n".join(f"  step{number}_run(call);" for number in range(len(calls)))
    return "".join(parts) + _RUN.format(body=body)


def _step(number: int, call: Call, scratch: str, place_of: PlaceOf) -> str:
    """Returns the struct, the epilogues and the function of one step."""
    name = f"step{number}"
    sizes = ", ".join(f".{field} = {int(size)}" for field, size in call.sizes.items())
    ends = [_epilogue(f"{name}_end{i}", call, one) for i, one in enumerate(call.epilogues)]
    arguments = [f"&{name}", *(f"{name}_end{i}" for i in range(len(ends)))]
    arguments += [*(one.initializer() for one in call.activations), place_of(call.output)]
    arguments += ["0" if one is None else place_of(one) for one in call.arguments]
    arguments += [scratch] if call.scratch_bytes else []
    return (
        f"\n/* {call.notes.get('what', call.kernel)} */\n"
        f"static const struct nnd_{_STRUCTS.get(call.kernel, call.kernel)} {name} = {{{sizes}}};\n"
        + "".join(ends)
        + f"static __attribute__((noinline)) void {name}_run(const struct nnd_call *call) {{\n"
        + f"  nnd_{call.kernel}({', '.join(arguments)});\n}}\n"
    )


def _epilogue(name: str, call: Call, expression: Expression) -> str:
    count = 4 if call.kernel.startswith("elementwise") else 3
    names = {number: f"v{number}" for number in range(count)}
    lines, result = c_lines(expression, names)
    parameters = ", ".join(f"vx {one}" for one in names.values())
    body = "".join(f"  {line}\n" for line in lines)
    return f"NNDX vx {name}({parameters}) {{\n{body}  return {result};\n}}\n"


def c_type(one: Tensor | Array) -> str:
    """Returns the C type of the elements."""
    return "int32_t" if isinstance(one, np.ndarray) and one.dtype == np.int32 else "float"
