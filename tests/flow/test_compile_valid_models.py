# SPDX-License-Identifier: Apache-2.0
"""Models that are written oddly, but that ONNX Runtime loads: what it gives is what the bundle gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.helper
import pytest
from compile_with import compile_with
from frontend_builders import HEADER, model, outputs_of

import nndeploy
from nndeploy.errors import InputError

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
ONLY = [{"x": X}]
BOTH = [{"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)}]
UNKNOWN = "h = Shape(x)  f = Cast <to = 1> (h)  r = Mul(f, f)  q = Sqrt(r)  s = Cast <to = 7> (q)  y = Reshape(x, s)"
ML = '<ir_version: 8, opset_import: ["ai.onnx.ml" : 3, "foo.bar" : 1]>\n'
AI = '<ir_version: 8, opset_import: ["ai.onnx" : 17, "com.microsoft" : 1]>\n'
Feeds = list[dict[str, Any]]
Tweak = Callable[[onnx.ModelProto], object]


def branches(first: str, second: str, declared: str = "float[?,?]") -> str:
    then, other = f"a () => ({declared} t) {{ {first} }}", f"b () => ({declared} t) {{ {second} }}"
    return f"y = If(c) <then_branch = {then}, else_branch = {other}>"


def grown(declared: str, body: str) -> str:
    inner = f"(int64 i, bool c, float[{declared}] v) => (bool d, float[A,B] w) {{ d = Identity(c)  {body} }}"
    return f"n = Constant <value_int = 2> ()  y = Loop(n, , x) <body = b {inner}>"


def without(*fields: str) -> Tweak:
    def tweak(proto: onnx.ModelProto) -> None:
        for field in fields:
            (value,) = getattr(proto.graph, field)
            value.type.tensor_type.ClearField("shape")

    return tweak


def listed(proto: onnx.ModelProto) -> None:
    (tensor,) = proto.graph.initializer
    proto.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))


def questioned(proto: onnx.ModelProto) -> None:
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = "?"


def g(given: str, made: str, nodes: str, constants: str = "") -> str:
    return f"g ({given}) => ({made}) {constants} {{ {nodes} }}"


IN, OUT, WAY = "float[2,3] x", "float[2,3] y", "float[2,3] x, bool c"
MODELS: dict[str, tuple[Any, ...]] = {
    "an output listed twice": (g(IN, f"{OUT}, {OUT}", "y = Relu(x)"),),
    "an input as output": (g(IN, f"{IN}, {OUT}", "y = Relu(x)"),),
    "no nodes": (g(IN, "float[2,3] x, float[2] w", "", "<float[2] w = {1, 2}>"),),
    "no inputs": (g("", "float[2] y", "y = Relu(w)", "<float[2] w = {1, -2}>"), [{}]),
    "an input that nobody reads": (g(f"{IN}, float[1] u", OUT, "y = Relu(x)"), [{"x": X, "u": X[0, :1]}]),
    "no shapes": (
        g(IN, OUT, "y = Relu(x)"), [{"x": X}, {"x": X[0]}, {"x": X[None, :, None]}], HEADER, without("input", "output"),
    ),
    "branches of other ranks": (g(WAY, OUT, branches("t = Relu(x)", "t = ReduceSum <keepdims = 0> (x)")), BOTH),
    "branches of other sizes": (g(WAY, OUT, branches("t = Relu(x)", "t = Concat <axis = 0> (x, x)")), BOTH),
    "branches that declare what is not": (g(WAY, OUT, branches("t = Relu(x)", "t = Neg(x)", "float[5]")), BOTH),
    "a wrong size": (g(IN, "float[7,3] y", "y = Relu(x)"),),
    "a wrong rank": (g(IN, "float y", "y = Relu(x)"),),
    "a wrong rank that is not inferred": (g(IN, "float[6] y", UNKNOWN),),
    "the size of one run": (g("float[N,3] x", "float[1,3] y", UNKNOWN), [{"x": X}, {"x": X[:1]}]),
    "a symbol that is another size": (
        g("float[N,3] x", "float[N,3] y", "y = Concat <axis = 0> (x, x)"),
        [{"x": X}, {"x": X[:1]}],
    ),
    "a wrong remark": (g(IN, OUT, "t = Relu(x)  y = Neg(t)", "<float[7] t, float[9] nobody>"),),
    "a loop that grows": (g(IN, "float[A,B] y", grown("2,3", "w = Concat <axis = 0> (v, x)")),),
    "a loop that reads its declared sizes": (
        g(IN, "float[A,B] y", grown("2,3", "s = Size(v) f = Cast<to = 1>(s) t = Mul(v, f) w = Concat<axis = 0>(t, x)")),
    ),
    "sizes called ?": (g("float[A,B] x", "float[A,B] y", "y = Relu(x)"), [{"x": X}, {"x": X.T}], HEADER, questioned),
    "one name for two sizes": (g("float[N,N] x", "float[N,N] y", "y = Relu(x)"),),
    "one name for sizes of two inputs": (
        g("float[N] a, float[N] b", "float[M] y", "y = Concat <axis = 0> (a, b)"),
        [{"a": X[0], "b": X[0, :1]}],
    ),
    "a name that a weight contradicts": (
        g("float[N,N] x", "float[N,2] y", "y = MatMul(x, w)", "<float[3,2] w = {1, 2, 3, 4, 5, 6}>"),
    ),
    "the default domain by its name": (g(IN, OUT, "t = ai.onnx.Relu(x)  y = ai.onnx.Neg(t)"), ONLY, AI),
    "no operator of ONNX itself": (g(IN, OUT, "y = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x)"), ONLY, ML),
    "an input with a default": (
        g(IN, OUT, "y = Add(x, k)", "<float[1] k = {2}>"), [{"x": X}, {"x": X, "k": np.float32([5])}], HEADER, listed,
    ),
    "a default that says the shape": (
        g(IN, "float[A,B] y", "y = Reshape(x, k)", "<int64[2] k = {3, 2}>"),
        [{"x": X}, {"x": X, "k": np.array([1, 6])}], HEADER, listed,
    ),
    "no elements": (g(IN, OUT, "y = Concat <axis = 0> (x, w)", "<float[0,3] w = {}>"),),
    "a sequence": (g(IN, "seq(float[9]) y", "r = Relu(x)  y = SequenceConstruct(x, r)"),),
}  # fmt: skip
"""Name -> text, what it is given, header, and what is changed in it; each has a default."""
DEFAULTS: tuple[Any, ...] = (ONLY, HEADER, None)
"""What is given, the header, and what is changed, where the table does not say."""
BY_DEFAULT = (
    "no shapes", "branches of other ranks", "a wrong rank", "the size of one run", "a loop that grows",
    "sizes called ?", "an input with a default",
)  # fmt: skip


@pytest.mark.parametrize(("name", "backends"), [
    *((name, ("native", "onnxruntime")) for name in MODELS), *((name, None) for name in BY_DEFAULT)
])  # fmt: skip
def test_gives_what_onnx_runtime_gives(name, backends, tmp_path) -> None:
    text, feeds, header, tweak = (*MODELS[name], *DEFAULTS[len(MODELS[name]) - 1 :])
    proto = model(text, header)
    if tweak is not None:
        tweak(proto)
    options = nndeploy.CompileOptions(backends=backends, objective="priority", keep_fallback=False)
    nndeploy.compile_model(proto, tmp_path / "m.nnd", options)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        for given in feeds:
            got = program.run(given)
            for output, want in outputs_of(proto, given).items():
                assert np.shape(got[output]) == np.shape(want)
                np.testing.assert_allclose(got[output], want, rtol=1e-5)


def test_a_name_is_one_size_where_the_operators_want_it(tmp_path) -> None:
    proto = model(g("float[N] a, float[N] b", "float[N] y", "y = Add(a, b)"))
    compile_with(proto, tmp_path / "m.nnd", backends=("native", "onnxruntime"))
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program, pytest.raises(InputError):
        program.run({"a": X[0], "b": X[0, :2]})


def test_samples_show_that_a_name_is_not_one_size(tmp_path) -> None:
    proto = model(g("float[N] a, float[N] b", "float[N] y", "y = Add(a, b)"))
    sample = {"a": X[0], "b": X[0, :1]}
    options = nndeploy.CompileOptions(backends=("onnxruntime",), samples=[sample])
    nndeploy.compile_model(proto, tmp_path / "m.nnd", options)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.run(sample)["y"].tolist() == [2, -1, 4]


def test_a_default_must_be_of_the_right_type_where_it_is_given(tmp_path) -> None:
    proto = model(MODELS["an input with a default"][0])
    listed(proto)
    compile_with(proto, tmp_path / "m.nnd", backends=("native", "onnxruntime"))
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert program.manifest.defaults.keys() == {"k"}
        with pytest.raises(InputError):
            program.run({"x": X, "k": np.array([1])})
        with pytest.raises(InputError):
            program.run({"k": np.float32([1])})


def test_the_user_decides_what_listed_initializers_are(tmp_path) -> None:
    proto = model(MODELS["an input with a default"][0])
    listed(proto)
    options = nndeploy.CompileOptions(backends=("native", "onnxruntime"), initializer_inputs="constants")
    nndeploy.compile_model(proto, tmp_path / "m.nnd", options)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        assert [named.name for named in program.inputs] == ["x"]
