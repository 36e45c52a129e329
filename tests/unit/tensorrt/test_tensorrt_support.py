# SPDX-License-Identifier: Apache-2.0
"""Which nodes TensorRT takes, asked of the real parser and builder: no GPU is needed for that."""

from collections.abc import Callable

import onnx_ir as ir
import pytest
from nndeploy_tensorrt import ask, support
from nndeploy_tensorrt.plugin import Plugin

from nndeploy.plugin.interface import BuildOptions, Support
from nndeploy.target.target import Target
from nndeploy.values.types import DimRange

pytestmark = pytest.mark.usefixtures("library")

Model = Callable[..., ir.Model]
Ask = Callable[..., list[Support]]


@pytest.fixture
def answers(rtx4090: Target) -> Ask:
    """Returns a function: model, ranges -> the answer for each node on an RTX 4090."""

    def of(model: ir.Model, **ranges: DimRange) -> list[Support]:
        return Plugin().supports(model, rtx4090, BuildOptions(ranges=ranges))

    return of


def taken(found: list[Support]) -> list[bool]:
    return [answer.ok for answer in found]


def reasons(found: list[Support]) -> list[str]:
    return [answer.reason for answer in found if not answer.ok]


N = {"N": DimRange(1, 8, 4)}
QUANTISED = "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"
TABLE: dict[str, tuple[str, list[str]]] = {
    "known": (
        """(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4] y)
        { c = Conv<pads=[1,1,1,1]>(x, w) r = Relu(c) p = GlobalAveragePool(r) y = Flatten(p) }""",
        ["", "", "", ""],
    ),
    "a bad node among others": (
        "(float[2,3,3] x) => (float[2] y) { a = Relu(x) b = Neg(a) d = Det(b) e = Abs(d) y = Exp(e) }",
        ["", "", "TensorRT has no Det", "", ""],
    ),
    "each bad node": (
        """(float[1,1,4,4] x) => (float[1,1,2,2] y) <float[4] half = {1, 1, 0.5, 0.5}>
        { a = Relu(x) b = Resize<antialias=1, mode="linear">(a, , half) c = Abs(b) y = nobody.knows.Thing(c) }""",
        ["", "Antialiasing is not supported currently", "", "TensorRT has no Thing"],
    ),
    "inside of a branch": (
        """(bool c, float[2,2] x) => (float y) { q = Relu(x)
        d = If(c) <then_branch = yes () => (float a) { a = ReduceMax<keepdims=0>(q) },
                   else_branch = no () => (float b) { b = Det(q) }> y = Abs(d) }""",
        ["", "Det", ""],
    ),
    **{
        dtype: (
            f"(float[2] x, {dtype}[2] u) => (float[2] y, {dtype}[2] z) {{ y = Relu(x) z = Identity(u) }}",
            ["", f"TensorRT has no {dtype}, as 'u' is"],
        )
        for dtype in ("int16", "uint16", "uint32", "uint64", "string")
    },
    "double would become single": (
        """(float[2] x) => (float[2] y, double[2] z) <double[2] tiny = {1e-300, 1e300}>
        { y = Relu(x) d = Cast<to=11>(y) z = Mul(d, tiny) }""",
        ["", *["float32, the model says float64"] * 2],
    ),
    "uint8 would become int8": (
        f"(float[2] x) => (float[2] y) <float s = {{0.1}}, uint8 z = {{0}}> {QUANTISED}",
        ["int8, the model says uint8", "UINT8"],
    ),
    "around another number": (
        f"(float[2] x) => (float[2] y) <float s = {{0.1}}, int8 z = {{3}}> {QUANTISED}",
        ["Non-zero zero point is not supported", "*"],
    ),
    "around zero, and half precision": (
        """(float[2] x) => (bfloat16[2] y) <float s = {0.1}, int8 z = {0}>
        { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) h = Cast<to=10>(d) r = Relu(h)
        y = Cast<to=16>(r) }""",
        [""] * 5,
    ),
    "packed elements": (
        "(int4[4] x) => (float[4] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }",
        ["'x' is int4, which TensorRT packs and others do not"],
    ),
    "a shape from outside": (
        "(float[2,3] x, int64[2] s) => (float[a,b] y) { r = Relu(x) y = Reshape(r, s) }",
        ["", "the value of 's' decides shapes and is known only at run time"],
    ),
    "a shape of the input": (
        """(float[N,6] x) => (float[N,3,2] y) <int64[2] rest = {3, 2}>
        { s = Shape<start=0, end=1>(x) t = Concat<axis=0>(s, rest) y = Reshape(x, t) }""",
        ["", "", ""],
    ),
    "no range": (
        "(float[M,3] x, float[2] u) => (float[M,3] y, float[2] z) { y = Relu(x) z = Neg(u) }",
        ["axis 0 (M) of 'x' has no range: declare it with --shape", ""],
    ),
    "a range": ("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }", [""]),
    "only the builder refuses it": (  # a zero point that is no constant parses, but no engine can be built of it
        """(float[2] x, float s, int8 z) => (float[2] y)
        { a = Relu(x) b = Neg(a) q = QuantizeLinear(b, s, z) c = Cast<to=1>(q) y = Exp(c) }""",
        ["", "", "zero_point", "", ""],
    ),
}
"""Graphs, and a word of the reason for which each node is refused; "*" is either."""


@pytest.mark.parametrize("name", TABLE)
def test_each_node_is_taken_or_refused_with_a_reason(model: Model, answers: Ask, name: str) -> None:
    text, words = TABLE[name]
    found = answers(model(f"g {text}"), **N)
    assert len(found) == len(words)
    for answer, word in zip(found, words, strict=True):
        assert word == "*" or (answer.ok == (not word) and word in answer.reason), answer


def test_sizes_in_between_that_nobody_declared_are_refused_behind_a_refusal(model: Model, answers: Ask) -> None:
    text = """
        g (float[N,2,2] x) => (float[M] y) { r = Relu(x) d = Det(r) y = Abs(d) }"""
    found = answers(model(text), N=DimRange(1, 8, 4))
    assert taken(found) == [True, False, True], "N is the size behind Det as well"
    unsized = model(text)
    for value in unsized.graph.node(1).outputs:
        value.shape = ir.Shape([None])
    assert taken(answers(unsized, N=DimRange(1, 8, 4))) == [True, False, False]


def test_operator_newer_than_the_parser_is_refused(model: Model, answers: Ask) -> None:
    text = "g (float[2] x, float[2] z) => (float[2] y, float[2] u) { u = Relu(x) y = Mod<fmod=1>(x, z) }"
    found = answers(model(text, opset=28))
    assert taken(found) == [True, False]
    assert reasons(found) == ["Mod of opset 28 is newer than what TensorRT reads (opset 25)"]
    assert taken(answers(model(text, opset=21))) == [True, True]


def test_operator_older_than_the_parser_is_refused(model: Model, answers: Ask) -> None:
    found = answers(model("g (float[2,3] x, float[3] z) => (float[2,3] y) { y = Add<broadcast=1>(x, z) }", opset=6))
    assert reasons(found) == ["Add of opset 6 is older than what TensorRT reads (opset 7)"]


def test_node_that_the_builder_does_not_name_is_found_by_halving(
    model: Model, answers: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refuses_tanh(part: ir.Model, *_: object) -> str:
        asked.append(len(part.graph))
        return "it said no" if any(node.op_type == "Tanh" for node in part.graph) else ""

    monkeypatch.setattr(support, "refused_by_builder", refuses_tanh)
    found = answers(model("""
        g (float[2] x) => (float[2] y)
        { a = Relu(x) b = Neg(a) c = Exp(b) d = Abs(c) e = Tanh(d) f = Neg(e) h = Exp(f) y = Abs(h) }"""))  # fmt: skip
    assert taken(found) == [True] * 4 + [False] + [True] * 3
    assert reasons(found) == ["it said no"]
    assert asked == [8, 4, 6, 5, 4, 3], "the whole, three halves, then the two parts beside it"


def test_parser_that_blames_nobody_is_asked_about_ever_shorter_parts(
    model: Model, answers: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses_tanh(part: ir.Model, _flavour: str) -> dict[int, str]:
        return {ask.NO_BLAME: "it said no"} if any(node.op_type == "Tanh" for node in part.graph) else {}

    monkeypatch.setattr(support, "refused_by_parser", refuses_tanh)
    found = answers(model("g (float[2] x) => (float[2] y) { a = Relu(x) b = Tanh(a) c = Exp(b) y = Tanh(c) }"))
    assert taken(found) == [True, False, True, False]


def test_model_is_not_changed(model: Model, answers: Ask) -> None:
    asked = model("g (float[2,3,3] x) => (float[2] y) { a = Relu(x) d = Det(a) y = Exp(d) }")
    before = ir.to_proto(asked).SerializeToString(deterministic=True)
    answers(asked)
    assert ir.to_proto(asked).SerializeToString(deterministic=True) == before


def test_nodes_without_names_are_answered_for(model: Model, answers: Ask) -> None:
    asked = model("g (float[2,3,3] x) => (float[2] y) { a = Relu(x) d = Det(a) y = Exp(d) }")
    for node in asked.graph:
        node.name = "same"
    assert taken(answers(asked)) == [True, False, True]
    assert [node.name for node in asked.graph] == ["same"] * 3


def test_target_without_a_gpu_gets_nothing(model: Model, with_gpu: Callable[..., Target]) -> None:
    found = Plugin().supports(model("g (float[2] x) => (float[2] y) { y = Relu(x) }"), with_gpu(), BuildOptions())
    assert found == [Support(False, "the target has no NVIDIA GPU")]


def test_gpu_that_no_library_serves_says_so_for_each_node(model: Model, with_gpu: Callable[..., Target]) -> None:
    asked = model("g (float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }")
    found = Plugin().supports(asked, with_gpu("5.2"), BuildOptions())
    assert len(found) == 2
    assert all("compute capability 5.2" in answer.reason for answer in found)
