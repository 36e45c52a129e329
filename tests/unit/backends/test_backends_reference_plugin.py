# SPDX-License-Identifier: Apache-2.0
"""The backend reference: ONNX's evaluator, with what it gets wrong put right and its values made to keep the rules."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nndeploy_reference.plugin import Plugin
from nndeploy_reference.session import EvaluatorSession

from nndeploy.errors import BuildRefusedError, BundleError, UsageError
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import host_target

PLUGIN = Plugin()
HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def proto_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def run(text: str, **inputs: Any) -> dict[str, Any]:
    return EvaluatorSession(proto_of(text)).run(inputs)


LOOP = """g (int64 n, SHAPE x) => (SHAPE y, float[A,B,C] all) {
  go = Constant<value = bool {1}>()
  y, all = Loop (n, go, x) <body = b (int64 i, bool c, SHAPE a) => (bool d, SHAPE e, SHAPE f)
  { d = Identity(c) e = Add(a, a) f = Identity(a) }>
}"""


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_scan_outputs_of_a_loop_are_stacked(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    declared = "float" if not shape else f"float[{','.join(map(str, shape))}]"
    outputs = run(LOOP.replace("SHAPE", declared), n=np.array(3), x=x)
    np.testing.assert_array_equal(outputs["y"], 8 * x)
    np.testing.assert_array_equal(outputs["all"], np.stack([x, 2 * x, 4 * x]))


def test_loop_that_does_not_run_gives_empty_scan_outputs() -> None:
    outputs = run(LOOP.replace("SHAPE", "float[2]"), n=np.array(0), x=np.ones(2, np.float32))
    assert outputs["y"].tolist() == [1, 1]
    assert (outputs["all"].shape, outputs["all"].dtype) == ((0, 2), np.float32)


def test_loop_ends_when_its_condition_does() -> None:
    text = """g (float x) => (float y, int64[K] counts) <float limit = {10.0}> {
      y, counts = Loop ( , , x) <body = b (int64 i, bool c, float a) => (bool d, float e, int64 f)
      { e = Add(a, a) d = Less(e, limit) f = Identity(i) }>
    }"""
    outputs = run(text, x=np.array(1, np.float32))
    assert outputs["y"] == 16
    assert outputs["counts"].tolist() == [0, 1, 2, 3]


def test_optional_is_its_value_or_nothing() -> None:
    text = "g (optional(float[2]) x) => (optional(float[2]) y, bool z) { y = Identity(x) z = OptionalHasElement(x) }"
    outputs = run("g (float[2] x) => (optional(float[2]) y) { y = Optional(x) }", x=np.ones(2, np.float32))
    assert outputs["y"].tolist() == [1, 1]
    absent = run(text, x=None)
    assert absent["y"] is None
    assert not absent["z"]


def test_if_may_give_an_absent_optional() -> None:
    text = """g (bool c, float[2] x) => (optional(float[2]) y) {
      y = If (c) <then_branch = t () => (optional(float[2]) p) { p = Optional(x) },
                  else_branch = e () => (optional(float[2]) q) { q = Optional<type = float[2]>() }>
    }"""
    assert run(text, c=np.array(True), x=np.ones(2, np.float32))["y"].tolist() == [1, 1]
    assert run(text, c=np.array(False), x=np.ones(2, np.float32))["y"] is None


def test_outputs_are_arrays_of_the_declared_type() -> None:
    text = """g (float[3] x) => (float y, int64 n, float[3] same)
    { y = ReduceSum<keepdims=0>(x) n = Size(x) same = Identity(x) }"""
    x = np.ones(3, np.float32)
    outputs = run(text, x=x)
    assert {name: (type(v), v.dtype.name, v.shape) for name, v in outputs.items()} == {
        "y": (np.ndarray, "float32", ()), "n": (np.ndarray, "int64", ()), "same": (np.ndarray, "float32", (3,)),
    }  # fmt: skip
    assert not np.shares_memory(outputs["same"], x)


def test_text_is_an_object_array() -> None:
    outputs = run("g (string[2] x) => (string[2] y) { y = StringConcat(x, x) }", x=np.array(["a", "bc"], object))
    assert outputs["y"].dtype == object
    assert outputs["y"].tolist() == ["aa", "bcbc"]


def test_constant_output_belongs_to_the_caller() -> None:
    session = EvaluatorSession(proto_of("g () => (float[2] y) <float[2] c = {1.0, 2.0}> { y = Identity(c) }"))
    session.run({})["y"][...] = 9
    assert session.run({})["y"].tolist() == [1, 2]


def test_both_names_of_the_standard_domain_work() -> None:
    text = '<ir_version: 10, opset_import: ["ai.onnx" : 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    session = EvaluatorSession(onnx.parser.parse_model(text))
    assert session.run({"x": np.ones(2, np.float32)})["y"].tolist() == [-1, -1]


def test_overflow_does_not_warn() -> None:
    assert run("g (float[1] x) => (float[1] y) { y = Exp(x) }", x=np.array([1e4], np.float32))["y"] == np.inf


def test_threads_take_turns() -> None:
    session = EvaluatorSession(proto_of(LOOP.replace("SHAPE", "float[2]")))

    def call(n: int) -> list[float]:
        return session.run({"n": np.array(n), "x": np.ones(2, np.float32)})["y"].tolist()  # type: ignore[no-any-return]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(12))) == [[2.0**n] * 2 for n in range(12)]


def test_session_that_is_closed_says_so() -> None:
    session = EvaluatorSession(proto_of("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run({"x": np.ones(2, np.float32)})


@pytest.mark.parametrize("files", [{}, {"model.onnx": b"no model"}])
def test_artifact_without_a_model_is_a_damaged_bundle(files: dict[str, bytes]) -> None:
    views = {name: memoryview(data) for name, data in files.items()}
    with pytest.raises(BundleError, match=r"model\.onnx"):
        PLUGIN.open(views, {}, OpenOptions())


def test_operator_of_nobody_is_refused_and_its_neighbours_are_taken() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21, "nobody" : 1]> g (float[2] x) => (float[2] z) '
    model = ir.from_proto(onnx.parser.parse_model(text + "{ y = nobody.Thing(x) z = Neg(y) }"))
    first, second = PLUGIN.supports(model, host_target(), BuildOptions())
    assert (first.ok, second.ok) == (False, True)
    assert "Thing" in first.reason


def test_evaluation_that_fails_is_refused_with_a_reason() -> None:
    model = proto_of("g (float[2] x) => (float[2] y) { y = Neg(x) }").SerializeToString()
    with pytest.raises(BuildRefusedError):
        PLUGIN.evaluate(model, [{}], BuildOptions())


@pytest.mark.parametrize("opset", [10, 13, 19, 21])
def test_dequantize_linear_of_every_opset_is_there(opset: int) -> None:
    text = f'<ir_version: 7, opset_import: ["" : {opset}]> g (uint8[2] x) => (float[2] y) '
    model = onnx.parser.parse_model(text + "<float s = {0.5}, uint8 z = {1}> { y = DequantizeLinear(x, s, z) }")
    assert EvaluatorSession(model).run({"x": np.array([1, 5], np.uint8)})["y"].tolist() == [0, 2]
