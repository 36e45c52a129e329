# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX's evaluator gets wrong (seen in onnx 1.23.2), written anew after the specification.

    Loop      scan outputs are stacked along a new first axis; the evaluator concatenates them, so that scalars come
              out as a column, matrices as one long matrix, and no iteration at all as an error
    Optional  gives its input, or nothing; the evaluator wraps it into a list
    If        a branch may give an absent optional; the evaluator refuses it, and so does Identity

`Evaluator` uses them, and takes DequantizeLinear before opset 19 as well, which had fewer types and meant the same.

Source: ONNX operators Loop (1-25), Optional (15, 28), If (1-25), Identity (1-25), DequantizeLinear (10, 13, 19).
"""

from typing import Any

import numpy as np
from onnx import NodeProto, TypeProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnx.reference.ops.op_identity import Identity as _Identity
from onnx.reference.ops.op_if import If as _If
from onnx.reference.ops.op_loop import Loop as _Loop
from onnx.reference.ops.op_optional import Optional as _Optional


class Loop(_Loop):
    """Loop with stacked scan outputs."""

    op_domain = ""
    body: Any
    _run_body: Any

    def _run(self, M: Any, cond: Any, *carried: Any, context: Any = None, **more: Any) -> tuple[Any, ...]:  # noqa: N803
        more.pop("body", None)  # the attribute: already an evaluator in self.body
        names = self.body.input_names
        known = {**(context or {}), **dict(zip(names[2:], carried, strict=False))}
        scanned: list[list[Any]] = [[] for _ in range(self.K)]
        state, count = list(carried), 0
        going = True if cond is None else bool(cond)
        while going and (M is None or count < int(M)):
            known.update({names[0]: np.array(count, np.int64), names[1]: np.array(going)})
            outputs = self._run_body(known, **more)
            going, state = bool(outputs[0]), list(outputs[1 : 1 + self.N])
            known.update(zip(names[2:], state, strict=True))
            for values, value in zip(scanned, outputs[1 + self.N :], strict=True):
                values.append(value)
            count += 1
        types = self.body.output_types[1 + self.N :]
        return (*state, *(_stacked(values, declared) for values, declared in zip(scanned, types, strict=True)))

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


class Optional(_Optional):
    """Optional whose value is the value itself, or None."""

    op_domain = ""

    def _run(self, x: Any = None, type: Any = None) -> tuple[Any, ...]:  # noqa: A002, ARG002 - the attribute's name
        return (x,)

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


class If(_If):
    """If whose branches may give absent optionals."""

    op_domain = ""
    _run_then_branch: Any
    _run_else_branch: Any

    def _run(self, cond: Any, context: Any = None, **more: Any) -> tuple[Any, ...]:  # type: ignore[override]
        for branch in ("then_branch", "else_branch"):
            more.pop(branch, None)
        run = self._run_then_branch if np.asarray(cond).item() else self._run_else_branch
        return tuple(run(context, **more))

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


class Identity(_Identity):
    """Identity of a value that may be absent."""

    op_domain = ""

    def _check_and_fix_outputs(self, res: tuple[Any, ...]) -> tuple[Any, ...]:
        return res


_OPERATORS: list[type[OpRun]] = [Loop, Optional, If, Identity]
_FIRST_DEQUANTISE = 19


class Evaluator(ReferenceEvaluator):
    """ONNX's evaluator with the operators above."""

    def __init__(self, proto: Any, *arguments: Any, **options: Any) -> None:
        """Looks up the operators of `proto`; raises what the evaluator raises where it has none."""
        super().__init__(proto, *arguments, **{"new_ops": _OPERATORS, **options})

    def _load_impl(self, node: NodeProto, input_types: Any = None) -> Any:
        version = self.opsets.get(node.domain, _FIRST_DEQUANTISE)
        if node.domain == "" and node.op_type == "DequantizeLinear" and version < _FIRST_DEQUANTISE:
            return load_op("", node.op_type, _FIRST_DEQUANTISE)
        return super()._load_impl(node, input_types)


def _stacked(values: list[Any], declared: TypeProto) -> "np.ndarray[Any, Any]":
    if values:
        return np.stack([np.asarray(value) for value in values])
    tensor = declared.tensor_type
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    return np.empty((0, *sizes), helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.float32)
