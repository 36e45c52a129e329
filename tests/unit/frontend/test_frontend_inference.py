# SPDX-License-Identifier: Apache-2.0
"""Inference of types: stale remarks, branches never taken, ONNX Runtime's operators, and vectors that are too long."""

import resource
import time

import onnx
import onnx.checker
import onnx.defs
import onnx_ir as ir
import pytest
from frontend_builders import HEADER, model

from nndeploy.errors import ModelError
from nndeploy.frontend.contrib_types import contrib_types_known
from nndeploy.frontend.inference import infer_types
from nndeploy.frontend.node_names import name_nodes

MS = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'


def inferred(body: str, header: str = HEADER) -> dict[str, str]:
    """Returns value -> type of what is inferred for a graph, bodies included."""
    proto = model(body, header)
    name_nodes(proto)
    found = ir.from_proto(infer_types(proto))
    return {
        str(v.name): f"{v.dtype}{v.shape if v.shape is not None else '[...]'}"
        for node in found.graph.all_nodes()
        for v in node.outputs
        if v.type is not None
    }


SPLIT = "p, q, r, s = Split <num_outputs = 4> (x)"
"""Of five elements the last part has a size below 0; onnx 1.23 aborts where a Slice reads it."""
SLICE = "t = Slice(s, zero, one)"


@pytest.mark.parametrize(("then", "after", "is_refused"), [
    (f"{{ {SPLIT} t = Identity(x) }}", "y = Slice(u, zero, one)", False),
    (f"{{ {SPLIT} {SLICE} }}", "y = Identity(u)", True),
    ("{ t = Identity(x) }", f"{SPLIT.replace('p, q', 'y, q')} {SLICE}", True),
])  # fmt: skip
def test_a_size_below_0_is_refused_unless_it_stands_in_a_branch_and_no_slice_reads_it(
    then: str, after: str, is_refused: bool
) -> None:
    branches = f"then_branch = a () => (t) {then}, else_branch = b () => (e) {{ e = Identity(x) }}"
    body = f"""g (float[5] x, bool c) => (float[K] y) <int64[1] zero = {{0}}, int64[1] one = {{1}}>
        {{ u = If(c) <{branches}> {after} }}"""
    header = HEADER.replace("17", "18")
    if is_refused:
        with pytest.raises(ModelError):
            inferred(body, header)
    else:
        assert inferred(body, header)["y"].startswith("FLOAT[")


def test_a_stale_remark_gives_way_to_what_the_nodes_say() -> None:
    assert inferred("g (float[2,3] x) => (float[2,3] y) <float[7,7] t> { t = Relu(x)  y = Abs(t) }") == {
        "t": "FLOAT[2,3]",
        "y": "FLOAT[2,3]",
    }


def test_a_remark_gives_a_rank_where_nothing_is_inferred() -> None:
    body = "g (float[N,4] x, int64[R] s) => (float[A,B] z) <float[7,8] t> { t = Reshape(x, s)  z = Abs(t) }"
    assert inferred(body)["t"] == "FLOAT[None,None]"


def test_a_remark_of_another_element_type_is_dropped() -> None:
    body = "g (float[N,4] x, int64[R] s) => (float[A,B] z) <int32[7,8] t> { t = Reshape(x, s)  z = Abs(t) }"
    assert inferred(body)["t"] == "FLOAT[...]"


def test_a_remark_on_a_foreign_operator_is_kept() -> None:
    header = '<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>\n'
    body = "g (float[2] x) => (float[5] z) <float[5] t, float[9] u> { t = mine.Op(x)  u = Relu(t)  z = Abs(u) }"
    assert inferred(body, header) == {"t": "FLOAT[5]", "u": "FLOAT[5]", "z": "FLOAT[5]"}


@pytest.mark.parametrize(("carried", "made", "body", "want"), [
    ("2,3", "2,3", "w = Add(v, x)", "FLOAT[2,3]"), ("2,3", "A,B", "w = Add(v, x)", "FLOAT[2,3]"),
    ("N,3", "N,3", "w = Relu(v)", "FLOAT[...]"), ("2,3", "2,3", "w = Concat <axis = 0> (v, x)", "FLOAT[...]"),
    ("2,3", "A,B", "w = Concat <axis = 0> (v, x)", "FLOAT[...]"),
    ("2,3", "A,B,C", "o = Constant <value_ints = [0]> ()  w = Unsqueeze(v, o)", "FLOAT[...]"),
])  # fmt: skip
def test_what_a_loop_declares_of_what_it_carries_counts_where_it_is_proven(
    carried: str, made: str, body: str, want: str
) -> None:
    """What goes in is float[2,3] everywhere."""
    loop = f"""g (float[2,3] x, int64 n) => (float[N,M] y) {{ y = Loop(n, , x) <body = b
        (int64 i, bool c, float[{carried}] v) => (bool d, float[{made}] w)
        {{ d = Identity(c)  t = Abs(v)  {body} }}> }}"""
    assert inferred(loop)["t"] == want


def test_a_branch_that_is_never_taken_may_hold_what_does_not_fit() -> None:
    body = """g (float[5,3] x, bool c) => (float[?] y) {
        r = If(c) <then_branch = a () => (float[?] p) { ax = Constant <value = int64[1] {0}> ()  p = Squeeze(x, ax) },
                   else_branch = b () => (float[?] q) { q = Identity(x) }>
        y = Relu(r)
    }"""
    proto = model(body.replace("float[?]", "float[k,l]"))
    name_nodes(proto)
    assert len(infer_types(proto).graph.node) == 2


def test_a_model_that_no_inference_survives_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "g (float[5] x, bool c) => (float[k] y) { y = If(c) <then_branch = a () => (float[i] p) { p = Abs(x) },"
    proto = model(body + " else_branch = b () => (float[j] q) { q = Identity(x) }> }")
    name_nodes(proto)

    def fail(*_: object, **__: object) -> onnx.ModelProto:
        raise ValueError("(op_type:If, node name: If_0): something")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", fail)
    with pytest.raises(ModelError, match=r"the types cannot be inferred: .*something"):
        infer_types(proto)


def test_sizes_inside_bodies_are_inferred() -> None:
    body = """g (float[N,3] x, bool c) => (float[A,B] y) {
        y = If(c) <then_branch = a () => (float[i,j] p) { t = Relu(x)  p = Abs(t) },
                   else_branch = b () => (float[k,l] q) { u = Abs(x)  q = Relu(u) }>
    }"""
    assert inferred(body)["t"] == "FLOAT[N,3]"


def test_the_default_axes_of_mean_variance_normalization_are_known() -> None:
    assert inferred("g (float[2,3,4,4] x) => (float[2,3,4,4] y) { y = MeanVarianceNormalization(x) }") == {
        "y": "FLOAT[2,3,4,4]"
    }


def test_follows_small_values_to_the_shapes_that_depend_on_them() -> None:
    body = """g (float[N,4,6] x) => (float[N,24] y) {
        s = Shape(x)  zero = Constant <value = int64[1] {0}> ()  rest = Constant <value = int64[1] {-1}> ()
        n = Gather(s, zero)  t = Concat <axis = 0> (n, rest)  r = Reshape(x, t)  y = Relu(r)
    }"""
    assert inferred(body)["r"] == "FLOAT[N,unk__0]"


class TestContribOperators:
    @pytest.mark.parametrize(("body", "want"), [
        ("y = com.microsoft.QLinearAdd(x, s, z, v, s, z, s, z)", "UINT8[1,8,4,4]"),
        ("y = com.microsoft.QLinearMul(x, s, z, v, s, z, s, z)", "UINT8[1,8,4,4]"),
        ("y = com.microsoft.QLinearGlobalAveragePool(x, s, z, s, z)", "UINT8[1,8,1,1]"),
        ("y = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2]> (x, s, z, s, z)", "UINT8[1,8,3,3]"),
        ("y = com.microsoft.QLinearConcat <axis = 1> (s, z, x, s, z, x, s, z)", "UINT8[1,16,4,4]"),
        ("y = com.microsoft.QLinearSigmoid(x, s, z, s, z)", "UINT8[1,8,4,4]"),
        ("y = com.microsoft.FusedMatMul(f, g)", "FLOAT[2,5]"),
        ("y = com.microsoft.FusedMatMul <transA = 1, transB = 1> (t, h)", "FLOAT[2,5]"),
        ("y = com.microsoft.MatMulNBits <K = 3, N = 7, block_size = 16> (f, w, s)", "FLOAT[2,7]"),
        ("y = com.microsoft.Attention <num_heads = 1> (a, p)", "FLOAT[2,3,5]"),
        ("y = com.microsoft.Attention <num_heads = 1, qkv_hidden_sizes = [4, 4, 7]> (a, p)", "FLOAT[2,3,7]"),
        ("y = com.microsoft.MultiHeadAttention <num_heads = 2> (a, a, a)", "FLOAT[2,3,4]"),
        ("y = com.microsoft.FusedGemm <transB = 1> (f, h)", "FLOAT[2,5]"),
        ("y = com.microsoft.DynamicQuantizeMatMul(f, w, s)", "FLOAT[2,5]"),
        ("y = com.microsoft.MatMulIntegerToFloat(v2, w, s, s)", "FLOAT[2,5]"),
        ("y = com.microsoft.QGemm(v2, s, z, w, s, z, , s, z)", "UINT8[2,5]"),
        ("y = com.microsoft.QGemm <transA = 1> (v2, s, z, v2, s, z)", "FLOAT[3,3]"),
        ("y = com.microsoft.FusedConv <kernel_shape = [3, 3]> (i, k)", "FLOAT[1,6,2,2]"),
        ("y = com.microsoft.SkipLayerNormalization(f, f, s)", "FLOAT[2,3]"),
    ])  # fmt: skip
    def test_have_the_types_of_the_operators_that_they_are_like(self, body: str, want: str) -> None:
        inputs = (
            "uint8[1,8,4,4] x, uint8[1,8,1,1] v, float s, uint8 z, float[2,3] f, float[3,5] g, float[5,3] h, "
            "uint8[3,5] w, uint8[2,3] v2, float[1,2,4,4] i, float[6,2,3,3] k, float[3,2] t, "
            "float[2,3,4] a, float[4,15] p"
        )
        assert inferred(f"g ({inputs}) => (float s) {{ {body} }}", MS) == {"y": want}

    @pytest.mark.parametrize("node", [
        "com.microsoft.QLinearGlobalAveragePool <channels_last = 1> (x, s, z, s, z)", "com.microsoft.QLinearAdd(x)",
        "com.microsoft.FusedMatMul <transA = 1> (s, s)",
        "com.microsoft.Attention <num_heads = 1, qkv_hidden_sizes = [1, 1, 1]> (x, x)",
        "com.microsoft.MultiHeadAttention <num_heads = 2> (x, x, w)",
        "com.microsoft.MultiHeadAttention <num_heads = 2> (x)", "com.microsoft.MatMulNBits <K = 3> (s, w, s)",
        "com.microsoft.QLinearAdd(x, s, z, w, s, z, s, z)", "com.microsoft.NobodyKnows(x)",
    ])  # fmt: skip
    def test_nothing_is_said_where_the_rule_does_not_hold(self, node: str) -> None:
        inputs = "uint8[1,8,4,4] x, float s, uint8 z, uint8[3,5] w"
        assert "y" not in inferred(f"g ({inputs}) => (float s) {{ y = {node} }}", MS)

    def test_what_a_skip_layer_normalization_adds_up_is_known_too(self) -> None:
        body = "y, , , t = com.microsoft.SkipLayerNormalization(x, x, s)"
        found = inferred(f"g (float[2,3] x, float[3] s) => (float[3] s) {{ {body} }}", MS)
        assert found == {"y": "FLOAT[2,3]", "t": "FLOAT[2,3]"}

    def test_types_go_on_behind_them(self) -> None:
        body = "g (float[2,3] x) => (float[2,3] z) { y = com.microsoft.FastGelu(x)  a = Relu(y)  z = Abs(a) }"
        assert inferred(body, MS)["a"] == "FLOAT[2,3]"

    def test_onnx_forgets_them_afterwards(self) -> None:
        proto = model("g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }", MS)
        with contrib_types_known(proto):
            assert onnx.defs.has("Gelu", domain="com.microsoft")
        assert not onnx.defs.has("Gelu", domain="com.microsoft")
        onnx.checker.check_model(proto)


class TestLongVectors:
    """onnx follows a vector element by element: 2^36 of them would take all memory there is."""

    LONG = "float[68719476736] x"

    @pytest.mark.parametrize(
        "body",
        [
            f"g ({LONG}) => (float[n] y) {{ y = Add(x, x) }}",
            f"g ({LONG}) => (float[n] y) {{ y = Mul(x, x) }}",
            f"g ({LONG}) => (int64[n] y) {{ y = Cast <to = 7> (x) }}",
            f"g ({LONG}) => (int64 y) {{ y = Size(x) }}",
            f"g ({LONG}) => (float[n] y) {{ y = MeanVarianceNormalization <axes = [0]> (x) }}",
            f"g ({LONG}) => (float[n,m] y) <int64[1] a = {{0}}> {{ y = Unsqueeze(x, a) }}",
            f"g ({LONG}) => (float[n] y) <int64[1] a = {{0}}, int64[1] b = {{4}}> {{ y = Slice(x, a, b) }}",
            f"g ({LONG}) => (float[n] y) <int64[1] a = {{3}}> {{ y = Gather(x, a) }}",
            "g (float[1] x) => (float[n] y) <int64[1] s = {68719476736}> { c = ConstantOfShape(s)  y = Add(c, c) }",
            "g (int64[1] x) => (int64[n] y) <int64[1] s = {68719476736}> { e = Expand(x, s)  y = Cast <to = 7> (e) }",
            "g (int64[1] x) => (int64[n] y) <int64[1] s = {68719476736}> { e = Tile(x, s)  y = Cast <to = 7> (e) }",
            "g (int64 a, int64 d) => (int64[n] y) <int64 s = {68719476736}, int64 o = {0}, int64 i = {1}>"
            " { r = Range(o, s, i)  y = Cast <to = 7> (r) }",
            "g (float[1] x) => (int64[n] y) <int64[1] s = {68719476736}, int64 o = {0}, int64 i = {1}> "
            "{ c = ConstantOfShape(s)  h = Shape(c)  z = Squeeze(h)  r = Range(o, z, i)  y = Cast <to = 7> (r) }",
            "g (int64[1] v0) => (int64[n] y) { "
            + "  ".join(f"v{i + 1} = Concat <axis = 0> (v{i}, v{i})" for i in range(36))
            + "  y = Identity(v36) }",
            f"g ({LONG}, bool c) => (float[n] y) {{ y = If(c) <then_branch = a () => (float[n] p) {{ p = Add(x, x) }},"
            " else_branch = b () => (float[n] q) { q = Add(x, x) }> }",
            f"g ({LONG}, int64 n, bool c) => (float[n] y) {{ y = Loop(n, c, x) <body = b (int64 i, bool ci, "
            "float[68719476736] s) => (bool co, float[68719476736] so) { co = Identity(ci)  so = Add(s, s) }> }",
        ],
    )
    def test_cost_nothing(self, body: str) -> None:
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(
            resource.RLIMIT_AS, (8 << 30, hard)
        )  # so that a failure is a MemoryError, not a dead machine
        try:
            proto = model(body)
            name_nodes(proto)
            found = infer_types(proto)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert time.monotonic() - start < 5
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
        assert {n.op_type for n in found.graph.node} == {n.op_type for n in proto.graph.node}
        assert all(opset.domain == "" for opset in found.opset_import)

    def test_still_have_their_types(self) -> None:
        body = f"g ({self.LONG}) => (float[n] z) {{ y = Add(x, x)  z = Mul(y, x) }}"
        assert inferred(body) == {"y": "FLOAT[68719476736]", "z": "FLOAT[68719476736]"}


@pytest.mark.parametrize(("body", "typed"), [
    ("u = MeanVarianceNormalization(i)  v = Reshape(u, k)  y = EyeLike<dtype = 6>(v)", "INT32[2,3]"),
    ("u = other.Some(x)  y = EyeLike<dtype = 6>(u)", ""),
    ('u = other.Some(x)  y = RegexFullMatch<pattern = "a">(u)', ""),
    ('u = other.Some(x)  y = ai.onnx.ml.LabelEncoder<classes_strings = ["a"]>(u)', ""),
    ('u = other.Some(x)  y = ai.onnx.ml.DictVectorizer<string_vocabulary = ["a"]>(u)', ""),
    ("u = Identity(x)  y = EyeLike<dtype = 6>(u)  w = other.Some(u)  z = EyeLike<dtype = 6>(w)", "INT32[2,3]"),
])  # fmt: skip
def test_where_a_type_is_unknown_no_node_ends_the_process(body: str, typed: str) -> None:
    header = '<ir_version: 8, opset_import: ["" : 20, "ai.onnx.ml" : 1, "other" : 1]>\n'
    found = inferred(f"g (float[2,3] x, float[2,3,1,1] i) => (y) <int64[2] k = {{2, 3}}> {{ {body} }}", header)
    assert found.get("y", "") == typed
