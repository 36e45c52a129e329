# SPDX-License-Identifier: Apache-2.0
"""Functions that a model defines: what a call gives, by NumPy, however it is written."""

from typing import Any

import numpy as np
import onnx
import onnx.helper
import pytest
from frontend_builders import model, outputs_of

from nndeploy.errors import ModelError
from nndeploy.frontend import operator_sets
from nndeploy.frontend.load import load_model

HEADER = '<ir_version: 10, opset_import: ["" : 17, "my" : 1]>\n'
X = np.array([[-1, 0.5, 2, -3]], np.float32)


def leaky(x: Any, alpha: float) -> Any:
    return np.where(x < 0, alpha * x, x)


def function(head: str, body: str, imports: str = '"" : 17, "my" : 1') -> str:
    return f'<domain: "my", opset_import: [{imports}]> {head} {{ {body} }}\n'


LEAKY = function("leaky <alpha: float = 0.5> (a) => (b)", "b = LeakyRelu <alpha: float = @alpha> (a)")
OUTER = function("outer <beta: float = 0.75> (a) => (b)", "b = my.leaky <alpha: float = @beta> (a)") + LEAKY
NONE = function("none <beta> (a) => (b)", "b = my.leaky <alpha: float = @beta> (a)") + LEAKY
PLAIN = function("plain <alpha> (a) => (b)", "b = LeakyRelu <alpha: float = @alpha> (a)")
BRANCHES = (function("branches <k: float = 3.0> (a, c) => (b)", """d = Mul(a, a)  b = If(c) <
        then_branch = t () => (float[?,?] y)
            { k = Constant <value_float: float = @k> ()  x = Add(d, a)  y = Mul(k, x) },
        else_branch = e () => (float[?,?] y) { y = my.leaky(d) }>""") + LEAKY)  # fmt: skip
LOOP = (
    function(
        "loop <k: float = 2.0> (a) => (b)",
        """n = Constant <value_int = 2> ()
        b = Loop(n, , a) <body = i (int64 i, bool g, float[?,?] v) => (bool h, float[?,?] w)
            { h = Identity(g)  k = Constant <value_float: float = @k> ()  t = Mul(v, k)  w = my.leaky(t) }>""",
    )
    + LEAKY
)
CLIP = function("clip (a, low, high) => (b, n)", "b = Clip(a, low, high)  n = Neg(a)")
HANDS_ON = function("hands_on (a) => (a, b)", "b = Neg(a)")
INSIDE = function("inside (a) => (b, c)", "b = Neg(a)  c = Mul(b, a)")
SCALED = function("scaled (a) => (b)", "b = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (a)", '"ai.onnx.ml" : 3')
SPELLED = function("spelled (a) => (b)", "b = ai.onnx.Neg(a)", '"ai.onnx" : 17')

CALLS = {
    "the default": ("y = my.leaky(x)", LEAKY, leaky(X, 0.5)),
    "the call's own": ("y = my.leaky <alpha = 0.25> (x)", LEAKY, leaky(X, 0.25)),
    "neither: the operator's": ("y = my.plain(x)", PLAIN, leaky(X, 0.01)),
    "a default handed on": ("y = my.outer(x)", OUTER, leaky(X, 0.75)),
    "none handed on: the inner default": ("y = my.none(x)", NONE, leaky(X, 0.5)),
    "a body": ("y = my.branches(x, yes)", BRANCHES, 3 * (X * X + X)),
    "a body with a call": ("y = my.branches(x, no)", BRANCHES, X * X),
    "the caller's names": ("d = my.branches(x, no)  k = my.branches(d, no)  y = Sub(k, d)", BRANCHES, X**4 - X * X),
    "a loop": ("y = my.loop(x)", LOOP, leaky(2 * leaky(2 * X, 0.5), 0.5)),
    "an input left out": ("y = my.clip(x, , one)", CLIP, np.minimum(X, 1)),
    "the last inputs left out": ("y = my.clip(x, one)", CLIP, np.maximum(X, 1)),
    "an output left out": (", y = my.clip(x)", CLIP, -X),
    "an input handed on": ("a, b = my.hands_on(x)  y = Sub(a, b)", HANDS_ON, 2 * X),
    "an input as the output": ("y = my.hands_on(x)", HANDS_ON, X),
    "an output used inside": (", y = my.inside(x)", INSIDE, -X * X),
    "two calls": ("a, b = my.inside(x)  c, d = my.inside(b)  y = Add(a, d)", INSIDE, -X - X**4),
    "a domain of its own": ("y = my.scaled(x)", SCALED, 2 * (X - 1)),
    "the default domain by its name": ("y = my.spelled(x)", SPELLED, -X),
}  # fmt: skip


def called(body: str, functions: str, header: str = HEADER) -> onnx.ModelProto:
    constants = "<float one = {1}, bool yes = {1}, bool no = {0}>"
    return model(f"g (float[1,4] x) => (float[1,4] y) {constants} {{ {body} }}\n{functions}", header)


@pytest.mark.parametrize("case", CALLS)
def test_a_call_gives_what_the_function_says(case: str) -> None:
    body, functions, want = CALLS[case]
    loaded = load_model(called(body, functions))
    assert not loaded.original.functions
    np.testing.assert_allclose(outputs_of(loaded.original, {"x": X})["y"], want, rtol=1e-6)
    assert len({node.name for node in loaded.model.graph.all_nodes()}) == sum(1 for _ in loaded.model.graph.all_nodes())


def test_overloads_are_told_apart() -> None:
    proto = called(
        "t = my.f(x)  y = my.f(t)", function("f (a) => (b)", "b = Neg(a)") + function("g (a) => (b)", "b = Mul(a, a)")
    )
    for overload, call, body in zip("ns", proto.graph.node, proto.functions, strict=True):
        call.overload, body.overload, body.name = overload, overload, "f"
    np.testing.assert_array_equal(outputs_of(load_model(proto).original, {"x": X})["y"], X * X)


def test_a_call_in_a_branch_is_replaced_too() -> None:
    taken, other = "t () => (float[1,4] p) { p = my.leaky(x) }", "e () => (float[1,4] q) { q = Neg(x) }"
    loaded = load_model(called(f"y = If(yes) <then_branch = {taken}, else_branch = {other}>", LEAKY))
    np.testing.assert_array_equal(outputs_of(loaded.original, {"x": X})["y"], leaky(X, 0.5))


def test_nodes_are_named_after_the_call() -> None:
    loaded = load_model(called("y = my.outer(x)", OUTER))
    assert [node.name for node in loaded.model.graph] == ["outer_0/leaky_0/LeakyRelu_0"]


def test_another_version_of_another_operator_set_is_refused() -> None:
    header = HEADER.replace('"my" : 1', '"my" : 1, "ai.onnx.ml" : 2')
    with pytest.raises(ModelError) as caught:
        load_model(called("y = my.scaled(x)", SCALED, header))
    assert caught.value.where == "function 'scaled'"


def test_bodies_do_not_pile_up_without_end() -> None:
    """Each function's branch calls the next one: the gate sees no graph that is deep."""
    other = "e () => (float[?,?] z) { z = Neg(a) }"
    taken = [f"t () => (float[?,?] y) {{ y = my.f{i + 1}(a, c) }}" for i in range(40)]
    bodies = [f"b = If(c) <then_branch = {graph}, else_branch = {other}>" for graph in taken] + ["b = Neg(a)"]
    functions = "".join(function(f"f{i} (a, c) => (b)", body) for i, body in enumerate(bodies))
    with pytest.raises(ModelError, match="deep"):
        load_model(called("y = my.f0(x, yes)", functions))


def test_a_long_chain_of_calls_is_no_danger() -> None:
    functions = "".join(function(f"f{i} (a) => (b)", f"b = my.f{i + 1}(a)") for i in range(1500))
    loaded = load_model(called("y = my.f0(x)", functions + function("f1500 (a) => (b)", "b = Neg(a)")))
    assert [node.op_type for node in loaded.model.graph] == ["Neg"]
    assert len(loaded.model.graph.node(0).name or "") < 200


def test_attributes_that_calls_repeat_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_sets.function_calls, "PROTOBUF_MAX_BYTES", 10)
    with pytest.raises(ModelError, match="attributes"):
        load_model(called("y = my.outer(x)", OUTER))
