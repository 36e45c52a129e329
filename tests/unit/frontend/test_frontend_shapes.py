# SPDX-License-Identifier: Apache-2.0
"""`--shape`: the grammar, its refusals, and what it does to a model."""

import onnx
import pytest
from frontend_builders import model
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import UsageError
from nndeploy.frontend.shape_texts import (
    ShapeSpec,
    parse_shape,
    parse_shape_options,
    parse_trtexec_shapes,
    shape_spec_from_value,
)
from nndeploy.frontend.shapes import apply_shapes
from nndeploy.values.types import DimRange

TWO_INPUTS = """g (float[N,3,H,?] x, float[N,4] y) => (float[N,3,H,?] z, float[N,4] v) <float[N,3,H,W] t> {
    t = Relu(x)
    z = Abs(t)
    v = Abs(y)
}"""

sizes = st.integers(0, 2**31 - 1)
plain_ranges = st.lists(sizes, min_size=3, max_size=3).map(lambda s: DimRange(min(s), max(s), sorted(s)[1]))
stepped_ranges = st.tuples(*[st.integers(0, 1000)] * 3, st.integers(1, 1000)).map(
    lambda s: DimRange(s[0], s[0] + s[3] * (s[1] + s[2]), s[0] + s[3] * s[1], s[3])
)
ranges = plain_ranges | stepped_ranges
symbols = st.tuples(st.sampled_from("AZa_"), st.text("Bz09_. ", max_size=8), st.sampled_from("az")).map("".join)
specs = st.lists(sizes | ranges | symbols | st.none(), max_size=6).map(lambda dims: ShapeSpec(tuple(dims)))


def two_inputs() -> onnx.ModelProto:
    return model(TWO_INPUTS.replace("?", "unnamed"), '<ir_version: 8, opset_import: ["" : 17]>\n')


def unnamed() -> onnx.ModelProto:
    proto = two_inputs()
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "unnamed":
                dim.ClearField("dim_param")
    return proto


def apply(proto: onnx.ModelProto, **texts: str) -> dict[str, DimRange]:
    return apply_shapes(proto, {name: parse_shape(text) for name, text in texts.items()})


def shown(value: onnx.ValueInfoProto) -> str:
    return ",".join(
        str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in value.type.tensor_type.shape.dim
    )


class TestGrammar:
    @pytest.mark.parametrize(("text", "dims"), [
        ("1,3,224,224", (1, 3, 224, 224)), ("1..8,3,224,224:4,3,224,224", (DimRange(1, 8, 4), 3, 224, 224)),
        ("1..8,3", (DimRange(1, 8, 8), 3)), ("1..8,2..4:,3", (DimRange(1, 8, 8), DimRange(2, 4, 3))),
        ("?,-1,batch", (None, None, "batch")),
        ("1..64,3,224..1280:32,?,224", (DimRange(1, 64, 32), 3, DimRange(224, 1280, 224))),
        (" 1 , 2..3 : 1 , 2 ", (1, DimRange(2, 3, 2))),
        ("1..64,3,224..1280:32,224..1280:32", (DimRange(1, 64, 64), 3, *[DimRange(224, 1280, 1280, 32)] * 2)),
        ("1..9:2,3,8..64:8:5,?,16", (DimRange(1, 9, 5, 2), 3, DimRange(8, 64, 16, 8))),
        ("1..8,3,224..1280:32,640", (DimRange(1, 8, 8), 3, DimRange(224, 1280, 1280, 32), 640)),
        ("8..64:8:32", (DimRange(8, 64, 32, 8),)), ("8..64:8", (DimRange(8, 64, 8),)), ("0", (0,)), ("", ()),
        ("batch:batch", ("batch",)),
    ])  # fmt: skip
    def test_reads(self, text: str, dims: tuple[object, ...]) -> None:
        assert parse_shape(text).dims == dims

    @given(st.text("0123456789.,:?-xN= ", max_size=24))
    def test_any_text_is_refused_or_a_spec_of_sound_ranges(self, text: str) -> None:
        try:
            spec = parse_shape(text, where="--shape x")
        except UsageError:
            return
        for dims in (spec.dims, spec.stepped or ()):
            found = [dim for dim in dims if isinstance(dim, DimRange)]
            assert all(limits.holds(limits.best) and limits.holds(limits.max) for limits in found)

    def test_the_number_of_axes_decides_where_a_text_can_be_read_both_ways(self) -> None:
        spec = parse_shape("1..8,16..64:8,32")
        assert spec.of_rank(2) == (DimRange(1, 8, 8), DimRange(16, 64, 32))
        assert spec.of_rank(3) == (DimRange(1, 8, 8), DimRange(16, 64, 64, 8), 32)

    @given(specs)
    def test_reads_what_it_prints(self, spec: ShapeSpec) -> None:
        assert parse_shape(str(spec)) == spec

    @pytest.mark.parametrize(("text", "words"), [
        ("8..1", "the range 8..1 is empty"), ("1..8:9", "the best size 9 lies outside 1..8"),
        ("1..8:0", "the best size 0 lies outside 1..8"), ("1..8,3:4", "2 sizes, but 1 best sizes after the colon"),
        ("1..8:x", "the best size 'x' is no number"), ("3:4", "the best size 4 stands for '3', which is no range"),
        ("224..1280:32", "the best size 32 lies outside 224..1280 (hint: a step and a best size: 224..1280:32:640)"),
        ("8..64:8:12", "the best size 12 lies outside 8..64:8"),
        ("1,8..65:8", "the range 8..65 does not end on a step of 8 (hint: 8..64:8)"),
        ("1,8..64:0", "the step 0 of the range 8..64 is no step"),
        ("1,8..64:x", "2 sizes, but 1 best sizes after the colon"),
        ("1,3:8", "2 sizes, but 1 best sizes after the colon"),
        ("?:4", "the best size 4 stands for '?', which is no range"), ("-2", "'-2' is no size"),
        ("1.5", "'1.5' is no size"), ("1...8", "'1...8' is no size"), ("1..", "'1..' is no size"),
        ("3x224", "'3x224' is no size"), ("2147483648", "the size 2147483648 is too large"),
        ("9" * 5000, "is too large"), ("1..99999999999", "is too large"),
    ])  # fmt: skip
    def test_refuses(self, text: str, words: str) -> None:
        with pytest.raises(UsageError) as caught:
            parse_shape(text, where="--shape x")
        assert words in str(caught.value)
        assert caught.value.exit_code == 2

    def test_options_name_their_inputs_whatever_the_names_look_like(self) -> None:
        found = parse_shape_options(["serving_default:0=1,3", "a=b=2", "sr="])
        assert found == {"serving_default:0": ShapeSpec((1, 3)), "a=b": ShapeSpec((2,)), "sr": ShapeSpec(())}

    @pytest.mark.parametrize(("texts", "words"), [
        (["1,3,224,224"], "names no input (hint: for example --shape x=1..8,3,224,224)"), (["=1,3"], "names no input"),
        (["x=1", "x=2"], "--shape gives the input 'x' twice"), (["x=8..1"], "--shape x=8..1: the range 8..1 is empty"),
    ])  # fmt: skip
    def test_refuses_options(self, texts: list[str], words: str) -> None:
        with pytest.raises(UsageError) as caught:
            parse_shape_options(texts)
        assert words in str(caught.value)


class TestTrtexec:
    def test_merges_the_three(self) -> None:
        found = parse_trtexec_shapes("in:1x3x224x224,b:1", "in:4x3x224x224,b:2", "in:8x3x224x224,b:2")
        assert found == {"in": ShapeSpec((DimRange(1, 8, 4), 3, 224, 224)), "b": ShapeSpec((DimRange(1, 2, 2),))}

    def test_opt_alone_fixes_and_min_with_max_is_best_at_max(self) -> None:
        assert parse_trtexec_shapes("", "x:4x3", "") == {"x": ShapeSpec((4, 3))}
        assert parse_trtexec_shapes("x:1x3", "", "x:8x3") == {"x": ShapeSpec((DimRange(1, 8, 8), 3))}
        assert parse_trtexec_shapes("", "", "") == {}

    def test_names_may_hold_colons_and_quotes(self) -> None:
        assert parse_trtexec_shapes("", "'input:0':1x3,input:1:2", "") == {
            "input:0": ShapeSpec((1, 3)),
            "input:1": ShapeSpec((2,)),
        }

    @pytest.mark.parametrize(("low", "best", "high", "words"), [
        ("x:1x3", "", "", "'x' has only one of --min-shapes and --max-shapes"),
        ("", "x:1x3", "x:1x3", "'x' has only one of --min-shapes and --max-shapes"),
        ("x:1x3", "x:1", "x:1x3", "of 'x' differ in rank"), ("x:8", "", "x:1", "input 'x': the range 8..1 is empty"),
        ("x:1", "x:9", "x:8", "input 'x': the best size 9 lies outside 1..8"),
        ("x", "", "", "'x' is no shape (hint: for example x:1x3x224x224,y:1x8)"), ("x:", "", "", "'x:' is no shape"),
        ("x:1,3", "", "", "'3' is no shape"), ("x:1x3,x:2x3", "", "", "'x'"),
    ])  # fmt: skip
    def test_refuses(self, low: str, best: str, high: str, words: str) -> None:
        with pytest.raises(UsageError) as caught:
            parse_trtexec_shapes(low, best, high)
        assert words in str(caught.value)


class TestValues:
    @pytest.mark.parametrize(("value", "dims"), [
        ("1..8,3:4,3", (DimRange(1, 8, 4), 3)), ((1, 3, None, "batch"), (1, 3, None, "batch")),
        ([(1, 8), (1, 8, 4), "2..3", -1], (DimRange(1, 8, 8), DimRange(1, 8, 4), DimRange(2, 3, 3), None)),
        ((DimRange(1, 2, 2),), (DimRange(1, 2, 2),)), (ShapeSpec((7,)), (7,)), ((), ()),
    ])  # fmt: skip
    def test_reads(self, value: object, dims: tuple[object, ...]) -> None:
        assert shape_spec_from_value(value).dims == dims  # type: ignore[arg-type]

    @pytest.mark.parametrize("dim", [True, -2, 1.5, (1,), (1, 2, 3, 4), (-1, 5), (3, 2), DimRange(3, 2, 2), object()])
    def test_refuses(self, dim: object) -> None:
        with pytest.raises(UsageError):
            shape_spec_from_value((dim,), "shape of 'x'")


class TestApply:
    def test_what_was_said_of_values_in_between_is_inferred_anew(self) -> None:
        proto = unnamed()
        apply(proto, x="2,3,?,?")
        assert shown(proto.graph.value_info[0]) == "2,3,H,?"  # W is no symbol of an input or output

    def test_without_sizes_nothing_is_forgotten(self) -> None:
        proto = unnamed()
        apply(proto, x="1..2,3,?,?")
        assert shown(proto.graph.value_info[0]) == "N,3,H,W"

    def test_symbols_in_bodies_are_replaced_too(self) -> None:
        proto = model(
            "g (float[N] x, bool c) => (float[N] y) { y = If(c) <then_branch = a () => (float[N] p) { p = Abs(x) },"
            " else_branch = b () => (float[N] q) { q = Relu(x) }> }"
        )
        apply(proto, x="5")
        assert [shown(a.g.output[0]) for a in proto.graph.node[0].attribute] == ["5", "5"]

    @pytest.mark.parametrize(("texts", "ranges", "inputs"), [
        ({"x": "2,3,?,?"}, {}, ["2,3,H,?", "2,4"]),
        ({"x": "1..8,3,?,?:4,3,?,?"}, {"N": DimRange(1, 8, 4)}, ["N,3,H,?", "N,4"]),
        ({"x": "?,3,?,10..20"}, {"x.3": DimRange(10, 20, 20)}, ["N,3,H,x.3", "N,4"]),
        ({"x": "?,3,?,10"}, {}, ["N,3,H,10", "N,4"]), ({"x": "4..4,3,?,?"}, {}, ["4,3,H,?", "4,4"]),
        ({"x": "N,3,H,width"}, {}, ["N,3,H,width", "N,4"]),
        ({"x": "1..8,3,?,?", "y": "1..8,4"}, {"N": DimRange(1, 8, 8)}, ["N,3,H,?", "N,4"]),
        ({"y": "8..64:8,4"}, {"N": DimRange(8, 64, 64, 8)}, ["N,3,H,?", "N,4"]),
        ({"y": "8..64,4:8,4"}, {"N": DimRange(8, 64, 8)}, ["N,3,H,?", "N,4"]),
        ({"x": "1,3,16..64:8,32..64:32"}, {"H": DimRange(16, 64, 64, 8), "x.3": DimRange(32, 64, 64, 32)},
         ["1,3,H,x.3", "1,4"]),
        ({"N": "1..64:8"}, {"N": DimRange(1, 64, 8)}, ["N,3,H,?", "N,4"]), ({"N": "5"}, {}, ["5,3,H,?", "5,4"]),
        ({"width": "8..64:8:32", "x": "?,3,?,width"}, {"width": DimRange(8, 64, 32, 8)}, ["N,3,H,width", "N,4"]),
    ])  # fmt: skip
    def test_sizes_reach_inputs_and_outputs(
        self, texts: dict[str, str], ranges: dict[str, DimRange], inputs: list[str]
    ) -> None:
        proto = unnamed()
        assert apply(proto, **texts) == ranges
        assert [shown(value) for value in proto.graph.input] == inputs
        assert [shown(value) for value in proto.graph.output][1] == inputs[1]

    def test_a_size_that_the_model_has_already_changes_nothing(self) -> None:
        proto = unnamed()
        before = proto.SerializeToString()
        assert apply(proto, y="?,4") == {}
        assert proto.SerializeToString() == before

    def test_an_input_comes_before_a_size_of_the_same_name(self) -> None:
        proto = model("g (float[x] x, float[x] y) => (float[x] z) { z = Add(x, y) }")
        assert apply(proto, x="1..4") == {"x": DimRange(1, 4, 4)}

    def test_an_axis_gets_no_name_that_the_model_uses_for_another_size(self) -> None:
        proto = model("g (float[2,other] x, float[twin] y) => (float[twin] z) { z = Abs(y) }")
        proto.graph.input[0].type.tensor_type.shape.dim[1].ClearField("dim_param")
        for value in (proto.graph.input[1], proto.graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_param = "x.1"
        assert apply(proto, x="2,1..8") == {"x.1'": DimRange(1, 8, 8)}
        assert shown(proto.graph.input[1]) == "x.1"

    @pytest.mark.parametrize(("texts", "words"), [
        ({"M": "1..8"}, "the model has no input 'M', and no size of that name (hint: known: 'x', 'y', 'H', 'N')"),
        ({"N": "1..8,3"}, "--shape N=1..8,3:8,3 is no size (hint: 'N' is one size: N=8 or N=1..64:8)"),
        ({"N": "batch"}, "--shape N=batch is no size"), ({"N": "?"}, "--shape N=? is no size"),
        ({"N": "1..8", "y": "4,4"}, "the size 'N' cannot be 1..8 when axis 0 of the input 'y' is 4"),
        ({"xx": "1"}, "the model has no input 'xx', and no size of that name (hint: known: 'x', "),
        ({"x": "1,3,224"}, "the input 'x' has 4 axes, but its --shape has 3 (hint: the model says [N, 3, H, ?])"),
        ({"x": "1..8,16..64:8,32"}, "has 4 axes, but its --shape has 2"),
        ({"x": "1,4,?,?"}, "axis 1 of the input 'x' is 3 in the model, not 4"),
        ({"x": "1,1..4,?,?"}, "axis 1 of the input 'x' is 3 in the model, not 1..4"),
        ({"x": "1,c,?,?"}, "axis 1 of the input 'x' is 3 in the model, not c"),
        ({"x": "M,3,?,?"}, "axis 0 of the input 'x' is named 'N' in the model, not 'M'"),
        ({"x": "2,3,?,?", "y": "3,4"},
         "axis 0 of the input 'y' cannot be 3 when axis 0 of the input 'x' is 2 (hint: both are 'N')"),
        ({"x": "1..8,3,?,?", "y": "1..4,4"}, "axis 0 of the input 'y' cannot be 1..4 when"),
        ({"x": "1..8,3,?,?", "y": "4,4"}, "axis 0 of the input 'y' cannot be 4 when"),
    ])  # fmt: skip
    def test_refuses(self, texts: dict[str, str], words: str) -> None:
        with pytest.raises(UsageError) as caught:
            apply(unnamed(), **texts)
        assert words in str(caught.value)

    def test_an_input_that_is_no_tensor_has_no_shape(self) -> None:
        proto = model(
            "g (seq(float[1]) x) => (float[1] y) { i = Constant <value = int64 {0}> ()  y = SequenceAt(x, i) }"
        )
        with pytest.raises(UsageError, match="the input 'x' is not a tensor"):
            apply(proto, x="1")
