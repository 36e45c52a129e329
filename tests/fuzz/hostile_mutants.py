# SPDX-License-Identifier: Apache-2.0
"""Models of single operators and calls of them that nobody expects: of a number follows one mutant and its calls.

The models are ONNX's node tests, `CONTRIB`, and one case of each operator of `tests/oracle`: that adds ai.onnx.ml and
old versions. A mutant may have another element type, open sizes, constant integers.
"""

import random
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import defs, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.cases import all_cases

FLOATS = (np.nan, np.inf, -np.inf, -0.0, 0.0, -1.0, 0.5, 1e-40, 3e9, -3e9, 1e38, -1e38)
INTEGERS = (0, 1, -1, -2, 7, -100, 100, 10**6, 2**31 - 1, -(2**31), 2**31, 10**12, -(2**62), -(2**63), 2**63 - 1)
TEXTS = ("", "\0", "a" * 1000, "é \U0001f600", "nan", "-1")
MAX_ROUNDS = 100
TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", **{f"tensor({name})": name for name in (
    "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)}}  # fmt: skip
SIZES = (0, 0, 0, 1, 2, 17)

CONTRIB = {
    "Range": "(int64 a, int64 b, int64 c) => (int64[K] y) { y = com.microsoft.Range(a, b, c) }",
    "Pad": "(float[2,3] x, int64[4] p) => (float[A,B] y) { y = com.microsoft.Pad(x, p) }",
    "CropAndResize": """(float[1,1,4,4] x, float[2,4] r, int32[2] i, int32[2] s) => (float[A,B,C,D] y)
        { y = com.microsoft.CropAndResize(x, r, i, s) }""",
    "EmbedLayerNormalization": """(int32[2,3] i, int32[2,3] s, float[7,4] w, float[5,4] p, float[2,4] t, float[4] g,
        float[4] b) => (float[2,3,4] y, int32[2] m)
        { y, m = com.microsoft.EmbedLayerNormalization(i, s, w, p, t, g, b) }""",
    "SkipLayerNormalization": """(float[2,3,4] x, float[2,3,4] s, float[4] g) => (float[2,3,4] y)
        { y = com.microsoft.SkipLayerNormalization(x, s, g) }""",
    "FusedMatMul": """(float[2,3] a, float[2,4] b) => (float[3,4] y)
        { y = com.microsoft.FusedMatMul<transA = 1>(a, b) }""",
    "RotaryEmbedding": """(float[1,3,8] x, int64[1,3] p, float[9,4] c, float[9,4] s) => (float[1,3,8] y)
        { y = com.microsoft.RotaryEmbedding<num_heads = 1>(x, p, c, s) }""",
    "GroupQueryAttention": """(float[1,1,8] q, float[1,1,8] k, float[1,1,8] v, float[1,1,4,8] a, float[1,1,4,8] b,
        int32[1] n, int32 t) => (float[1,1,8] y, float[1,1,4,8] c, float[1,1,4,8] d)
        { y, c, d = com.microsoft.GroupQueryAttention<num_heads = 1, kv_num_heads = 1>(q, k, v, a, b, n, t) }""",
    "MultiHeadAttention": """(float[1,3,8] q, float[1,3,8] k, float[1,3,8] v) => (float[1,3,8] y)
        { y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v) }""",
    "ExpandDims": "(float[2,3] x, int32 a) => (float[A,B,C] y) { y = com.microsoft.ExpandDims(x, a) }",
    "GatherND": "(float[2,3] x, int64[2,1] i) => (float[2,3] y) { y = com.microsoft.GatherND(x, i) }",
    "NGramRepeatBlock": """(int64[2,4] i, float[2,9] s) => (float[2,9] y)
        { y = com.microsoft.NGramRepeatBlock<ngram_size = 2>(i, s) }""",
    "MaxpoolWithMask": """(float[1,1,4,4] x, int32[1,1,4,4] m) => (float[A,B,C,D] y)
        { y = com.microsoft.MaxpoolWithMask<kernel_shape = [2,2]>(x, m) }""",
    "UnfoldTensor": "(float[2,6] x) => (float[A,B,C] y) { y = com.microsoft.UnfoldTensor<size = 2, dim = 1>(x) }",
    "Trilu": "(float[3,3] x, int64 k) => (float[3,3] y) { y = com.microsoft.Trilu(x, k) }",
    "QuantizeLinear": """(float[2,3] x, float[2] s, uint8[2] z) => (uint8[2,3] y)
        { y = com.microsoft.QuantizeLinear<axis = 0>(x, s, z) }""",
}  # fmt: skip
"""Operators of ONNX Runtime that take numbers as places or sizes, or need elements."""
FEW = (1, 0, 2, 1, 0, 1, 2, 0, 1)
"""What integers of `CONTRIB` are."""

Values = dict[str, Any]


@cache
def cases() -> list[tuple[str, onnx.ModelProto, Values]]:
    """Returns the name, model and inputs of each single operator that is called with anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose
        from onnx.backend.test.case.node import collect_testcases

        found = [
            (
                case.name,
                case.model,
                dict(zip([one.name for one in case.model.graph.input], case.data_sets[0][0], strict=True)),
            )
            for case in collect_testcases(None)
            if case.model is not None and case.model.graph.input and case.data_sets
        ]
    first_of = {f"{case.operator} {case.proto.opset_import[0].version}": case for case in all_cases().values()}
    found += [(f"case {name}", case.proto, dict(case.inputs)) for name, case in first_of.items() if case.inputs]
    for name, text in CONTRIB.items():
        head = '<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]> g '
        model = onnx.parser.parse_model(head + text)
        found.append((f"com.microsoft {name}", model, {one.name: _usual(one) for one in model.graph.input}))
    return found


def _usual(value: onnx.ValueInfoProto) -> "np.ndarray[Any, Any]":
    kind = value.type.tensor_type
    shape = [size.dim_value for size in kind.shape.dim]
    return np.resize(np.array(FEW), shape).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))


class Mutant:
    def __init__(self, number: int, backends: tuple[str, ...]) -> None:
        self.dice = random.Random(number)  # noqa: S311 - no secret
        self.backend = backends[number % len(backends)]
        name, model, inputs = cases()[number // len(backends) % len(cases())]
        self.model = onnx.ModelProto.FromString(model.SerializeToString())
        self.inputs = {key: _plain(value) for key, value in inputs.items()}
        self.said = [f"{self.backend} {name}"]
        for change, share in ((self._retype, 0.3), (self._open, 0.6), (self._fix, 0.3)):
            if self.dice.random() < share:
                change()

    def _retype(self) -> None:
        node = self.model.graph.node[0]
        are_numbers = all(isinstance(one, np.ndarray) and one.dtype.kind in "biuf" for one in self.inputs.values())
        if len(self.model.graph.node) > 1 or not defs.has(node.op_type, node.domain) or not are_numbers:
            return
        schema = defs.get_schema(node.op_type, self._opset(node.domain), node.domain)
        choices = [(one.type_param_str, kind) for one in schema.type_constraints for kind in one.allowed_type_strs]
        variable, kind = self.dice.choice([(one, kind) for one, kind in choices if kind in TYPES] or [("", "")])
        if variable:
            self._give(variable, np.dtype(TYPES[kind]), schema)
            self.said.append(f"{variable} is {kind}")

    def _give(self, variable: str, dtype: "np.dtype[Any]", schema: defs.OpSchema) -> None:
        graph, node = self.model.graph, self.model.graph.node[0]
        for names, side, formal in (
            (node.input, graph.input, schema.inputs),
            (node.output, graph.output, schema.outputs),
        ):
            types = [one.type_str for one in formal] + [formal[-1].type_str] * len(names) if formal else []
            of_variable = {name for name, kind in zip(names, types, strict=False) if kind == variable}
            for value in side:
                if value.name in of_variable and value.type.HasField("tensor_type"):
                    value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(dtype)
        self.inputs.update({name: self.inputs[name].astype(dtype) for name in self.inputs if self._is(name, dtype)})

    def _is(self, name: str, dtype: "np.dtype[Any]") -> bool:
        kinds = {value.name: value.type.tensor_type.elem_type for value in self.model.graph.input}
        return bool(kinds[name] == helper.np_dtype_to_tensor_dtype(dtype))

    def _opset(self, domain: str) -> int:
        return next(int(one.version) for one in self.model.opset_import if one.domain == domain)

    def _open(self) -> None:
        for side in (self.model.graph.input, self.model.graph.output):
            for value in side:
                if value.type.HasField("tensor_type"):
                    for axis, size in enumerate(value.type.tensor_type.shape.dim):
                        size.dim_param = f"{value.name}_{axis}"
        self.said.append("open sizes")

    def _fix(self) -> None:
        whole = [
            name for name, value in self.inputs.items() if isinstance(value, np.ndarray) and value.dtype.kind == "i"
        ]
        if not whole or len(self.inputs) == 1:
            return
        name = self.dice.choice(whole)
        self.model.graph.initializer.append(numpy_helper.from_array(self.inputs.pop(name), name))
        kept = [value for value in self.model.graph.input if value.name != name]
        del self.model.graph.input[:]
        self.model.graph.input.extend(kept)
        self.said.append(f"constant {name}")

    def call(self) -> Values:
        values = dict(self.inputs)
        if "open sizes" in self.said and self.dice.random() < 0.5:
            values = self._resized(values)
        share = self.dice.choice((0.0, 0.2, 1.0))
        chosen = [name for name in values if self.dice.random() < 0.6]
        return {name: self._hostile(value, share) if name in chosen else value for name, value in values.items()}

    def _resized(self, values: Values) -> Values:
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.ndim}
        if not arrays:
            return values
        name = self.dice.choice(list(arrays))
        at, size = self.dice.randrange(arrays[name].ndim), self.dice.choice(SIZES)
        old, is_alone = arrays[name].shape[at], self.dice.random() < 0.4
        for other, array in arrays.items():
            shape = [
                size if (other == name and axis == at) or (not is_alone and one == old) else one
                for axis, one in enumerate(array.shape)
            ]
            values[other] = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
        return values

    def _hostile(self, value: Any, share: float) -> Any:
        if isinstance(value, list):
            return [self._hostile(one, share) for one in value][: self.dice.choice((None, 0, 1))]
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iufOUS":
            return value
        changed = value.copy()
        for at in range(min(changed.size, 256)):
            if self.dice.random() < share:
                changed.reshape(-1)[at] = self._number(value.dtype)
        return changed

    def _number(self, dtype: "np.dtype[Any]") -> Any:
        if dtype.kind == "f":
            return np.float64(self.dice.choice(FLOATS)).astype(dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            is_loop = any(node.op_type == "Loop" for node in self.model.graph.node)  # which may run as often
            most = MAX_ROUNDS if is_loop else limits.max
            return max(limits.min, min(self.dice.choice((*INTEGERS, limits.min, limits.max)), most))
        return self.dice.choice(TEXTS)


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [_plain(one) for one in value] if isinstance(value, list) else value
