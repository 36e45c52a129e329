# SPDX-License-Identifier: Apache-2.0
"""One case: a model and its inputs; what is right comes from the oracle.

    one("MaxPool", 12, floats(1, 1, 4, 4), kernel_shape=[2, 2])     one node, its inputs in order
    graph("name", "g (float[2] x) => (float[2] y) { y = Relu(x) }", x=...)   a model as ONNX text

`Fixed(array)` is an initializer, None an absent input, a list a sequence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, TypeProto, defs, helper, numpy_helper, shape_inference
from onnx.parser import parse_model

from oracle.evaluator import evaluate, type_of
from oracle.registry import InvalidError, UnspecifiedError, schema_of

IR_VERSION = 10


@dataclass(frozen=True)
class Fixed:
    """An input that the model holds itself."""

    value: Any


@dataclass(frozen=True)
class Case:
    """A small model with inputs; `signed_zeros` where the sign of a zero counts."""

    name: str
    operator: str
    proto: ModelProto
    inputs: Mapping[str, Any]
    signed_zeros: bool = False
    steps: float = 1.0
    """How many times the usual tolerance it gets: for sums in a fixed lower precision."""

    @cached_property
    def wanted(self) -> dict[str, Any] | None:
        """The right outputs by name; None where the inputs are an error."""
        try:
            return evaluate(self.proto, self.inputs)
        except InvalidError:
            return None

    @cached_property
    def model(self) -> ModelProto:
        """The model with the types of its outputs."""
        model = ModelProto()
        model.CopyFrom(self.proto)
        found = self.wanted
        if found is None:
            return shape_inference.infer_shapes(model)
        for info in model.graph.output:
            value = found[info.name]
            if not info.type.WhichOneof("value") and not (isinstance(value, list) and not value):
                info.type.CopyFrom(_declared(value))
        return model


def _declared(value: Any) -> TypeProto:
    """Returns the type that a model declares: sequences of tensors without sizes, maps by their first entry."""
    if isinstance(value, list):
        inner = _declared(value[0])
        if inner.HasField("tensor_type") and len({np.asarray(v).shape for v in value}) > 1:
            inner.tensor_type.ClearField("shape")
        return helper.make_sequence_type_proto(inner)
    if isinstance(value, dict):
        found = TypeProto()
        key, item = next(iter(value.items()))
        found.map_type.key_type = TensorProto.STRING if isinstance(key, str) else TensorProto.INT64
        found.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(_element(item), ()))
        return found
    return type_of(value)


def _element(item: Any) -> int:
    return TensorProto.STRING if isinstance(item, str) else helper.np_dtype_to_tensor_dtype(np.asarray(item).dtype)


def one(
    op: str, opset: int, *inputs: Any, note: str = "", outputs: int | Sequence[str] = 1, domain: str = "",
    signed_zeros: bool = False, steps: float = 1.0, optional: Any = None, **attributes: Any,
) -> Case:  # fmt: skip
    """Returns a case of a single node; `attributes` that are None are left out."""
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    outs = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    given = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node(op, names, outs, op.lower(), domain=domain, **given)
    fed = {n: v for n, v in zip(names, inputs, strict=True) if n and not isinstance(v, Fixed)}
    held = [numpy_helper.from_array(v.value, n) for n, v in zip(names, inputs, strict=True) if isinstance(v, Fixed)]
    infos = [helper.make_value_info(name, _input_type(value)) for name, value in fed.items()]
    ends = [helper.make_empty_tensor_value_info(name) for name in outs if name]
    graph = helper.make_graph([node], "g", infos, ends, held)
    imports = [helper.make_opsetid(domain, opset)]
    if domain:
        imports.append(helper.make_opsetid("", 21))
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    label = f"{domain + '.' if domain else ''}{op}-{schema_of(domain, op, opset).since_version}"
    text = note or _described(inputs, given)
    wants = "" if outputs == 1 else f" -> {','.join(map(str, outs))}"
    return Case(f"{label} {text}{wants}".strip(), op, model, fed, signed_zeros, steps)


def graph(
    name: str, text: str, opset: int = 21, ir_version: int = IR_VERSION, imports: str = "", **inputs: Any
) -> Case:
    """Returns a case of a model as ONNX text; its operator is the first word of the name, else the last node's."""
    header = f'<ir_version: {ir_version}, opset_import: ["" : {opset}{imports}]> '
    model = parse_model(header + text)
    first = name.split()[0]
    operator = first if defs.has(first) else model.graph.node[-1].op_type
    return Case(f"{name} (opset {opset})", operator, model, inputs)


def _input_type(value: Any) -> TypeProto:
    return _declared(value)


def _described(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> str:
    """Returns what a case is, from its inputs and attributes."""
    return " ".join([*map(_text_of, inputs), *(f"{name}={_short(value)}" for name, value in attributes.items())])


def _text_of(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Fixed):
        array = np.asarray(value.value)
        return f"[{_short(array.ravel().tolist())}]" if array.size <= 6 else _text_of(array)
    if isinstance(value, list):
        return f"({', '.join(map(_text_of, value))})"
    if isinstance(value, dict):
        return f"map of {len(value)}"
    array = np.asarray(value)
    kind = "string" if array.dtype == object else array.dtype.name
    return f"{kind}[{','.join(map(str, array.shape))}]"


def _short(value: Any) -> str:
    if isinstance(value, TensorProto):
        return _text_of(numpy_helper.to_array(value))
    if isinstance(value, onnx.GraphProto | TypeProto | onnx.SparseTensorProto):
        return type(value).__name__
    if isinstance(value, float | np.floating):
        return f"{value:g}"
    return ",".join(map(_short, value)) if isinstance(value, list | tuple) else str(value)


_RANDOM = np.random.default_rng(2026)


def floats(*shape: int, dtype: Any = np.float32, low: int = -24, high: int = 24) -> Any:
    """Returns eighths between -3 and 3: sums of them are exact, and equal ones occur."""
    return np.asarray(_RANDOM.integers(low, high + 1, shape) / 8).astype(dtype)


def integers(*shape: int, dtype: Any = np.int64, low: int = -5, high: int = 6) -> Any:
    """Returns small integers."""
    return _RANDOM.integers(low, high, shape).astype(dtype)


def edges(dtype: Any, largest: bool = True) -> Any:
    """Returns the numbers of a type at which operators go wrong; without the largest where a step would overflow."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(sorted({info.min, info.min + 1, -1 if info.min else 0, 0, 1, 2, info.max - 1, info.max}), dtype)
    import ml_dtypes

    limits = ml_dtypes.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, np.nan, np.inf, -np.inf, float(limits.max), float(limits.tiny)]
    return np.array([v for v in values if largest or v != float(limits.max)]).astype(dtype)


def pairs(values: Any) -> tuple[Any, Any]:
    """Returns two tensors that hold every pair of values."""
    count = len(values)
    return np.repeat(values, count), np.tile(values, count)


@dataclass
class Verdict:
    """What came of a case on an engine, and what was seen.

    "right"; "refused": the model is not taken; "error": it is taken, and its legal inputs are an error; "wrong";
    "ended": the process; "unspecified": nothing to compare with.
    """

    outcome: str
    detail: str = ""


__all__ = ["Case", "Fixed", "UnspecifiedError", "Verdict", "edges", "floats", "graph", "integers", "one", "pairs"]
