# SPDX-License-Identifier: Apache-2.0
"""What the library would believe of an IR is refused before it reads it, each in one line; what is made here passes."""

import re
from contextlib import nullcontext
from pathlib import Path

import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nndeploy_openvino.conversion import convert, forget_names
from nndeploy_openvino.ir_gate import MAX_DEPTH, check_ir
from nndeploy_openvino.ir_layers import KINDS
from nndeploy_openvino.library import openvino
from nndeploy_openvino.pads import unsafe_pads

from nndeploy.errors import BundleError, PolicyError
from nndeploy.values.types import DimRange

SUM = "g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { t = Add(x, w) y = Softmax(t) }"
LOOP = """g (float[2] x) => (float[2] y, float[3,2] all) <int64 n = {3}> { y, all = Loop (n, , x) <body = b
    (int64 i, bool c, float[2] a) => (bool d, float[2] e, float[2] f) { d = Identity(c) e = Neg(a) f = Exp(a) }> }"""
CHOICE = """g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] p) { p = Neg(x) },
    else_branch = e () => (float[2] q) { q = Tanh(x) }> }"""
SCAN = """g (float[3] h, float[4,3] x) => (float[3] y, float[4,3] z) { y, z = Scan<num_scan_inputs=1,
    scan_input_directions=[1], body = b (float[3] a, float[3] c) => (float[3] d, float[3] e)
    { d = Add(a, c) e = Mul(d, c) }>(h, x) }"""
EINSUM = 'g (float[2,3] x, float[3,2] z) => (float[2,2] y) { y = Einsum<equation="ij,jk->ik">(x, z) }'
STEPS = """g (int64 a, int64 b, float c) => (int64[K] y, float[L] z) <int64[1] d = {2}, float e = {1.0}>
    { s = Squeeze(d) y = Range(a, b, s) z = Range(e, c, c) }"""
SPLIT = """g (float[6] x) => (float[4] y, float[2] z, float[3] a, float[3] b) <int64[2] l = {4, 2}>
    { y, z = Split<axis=0>(x, l) a, b = Split<axis=0, num_outputs=2>(x) }"""
PADS = "g (float[N,4] x) => (float[K,4] y) <int64[4] p = {2, 0, 1, 0}> { y = Pad(x, p) }"
TILE = "g (float[2] x) => (float[6] y) <int64[1] r = {3}> { y = Tile(x, r) }"
WINDOW = """g (float[1,2,9,9] x) => (float[1,2,5,5] y)
    { y = AveragePool<kernel_shape=[3,3], dilations=[2,2]>(x) }"""
ROTARY = """g (float[N,4] x) => (float[N,4] y) <float[1,4] f = {1, 0.1, 0.01, 0.001}, float z = {0}, float o = {1},
    int64[1] a = {1}> { s = Shape<start = 0, end = 1>(x) e = Squeeze(s) n = Cast<to = 1>(e) r = Range(z, n, o)
    c = Unsqueeze(r, a) p = MatMul(c, f) q = Sin(p) y = Mul(x, q) }"""
OPEN = "g (float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Sigmoid(a) }"


def written(text: str, folder: Path, ranges: dict[str, DimRange] | None = None) -> tuple[str, bytes]:
    """Returns the IR of a model, and its weights."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    model = convert(ir.from_proto(onnx.shape_inference.infer_shapes(proto)), ranges or {}).model
    forget_names(model)
    openvino().serialize(model, str(folder / "m.xml"), str(folder / "m.bin"))
    return (folder / "m.xml").read_text(), (folder / "m.bin").read_bytes()


@pytest.mark.parametrize("text", [SUM, LOOP, CHOICE, SCAN, EINSUM, STEPS, SPLIT, PADS, TILE, ROTARY, OPEN])
def test_what_is_made_here_passes(text: str, tmp_path: Path) -> None:
    graph, weights = written(text, tmp_path)
    check_ir(graph.encode(), weights)


def test_sizes_in_ranges_pass_and_joined_names_are_forgotten(tmp_path: Path) -> None:
    graph, weights = written(OPEN, tmp_path, {"N": DimRange(1, 8, 1)})
    assert 'shape="1..8,4"' in graph
    assert "fused_names" not in graph
    check_ir(graph.encode(), weights)


def test_notes_that_are_no_orders_pass(tmp_path: Path) -> None:
    graph, weights = written(SUM, tmp_path)
    names = '<rt_info>\n\t<attribute name="fused_names" version="0" value="a, b" />\n</rt_info>\n\t\t</layer>'
    graph = graph.replace("</layer>", names).replace(
        "<rt_info />", '<rt_info><framework><task value="ä &amp; &#10;" /></framework></rt_info>'
    )
    check_ir(graph.encode(), weights)


def damaged(graph: str, old: str, new: str) -> str:
    assert old in graph
    return graph.replace(old, new, 1)


CONSTANT = 'element_type="f32" shape="2" offset="0" size="8"'
DAMAGES = [
    (CONSTANT, 'element_type="f32" shape="2" offset="18446744073709551608" size="8"', "whose offset is"),
    (CONSTANT, 'element_type="f32" shape="2" offset="8" size="8"', "a constant of 8 bytes at 8, the weights are 8"),
    (CONSTANT, 'element_type="f32" shape="3" offset="0" size="8"', "of shape [3] with 8 bytes"),
    (CONSTANT, 'element_type="f64" shape="2" offset="0" size="8"', "of shape [2] with 8 bytes"),
    (CONSTANT, 'element_type="f32" shape="4294967296, 4294967296" offset="0" size="8"', "of shape [4294967296"),
    (CONSTANT, 'element_type="string" shape="2" offset="0" size="8"', "whose element_type is 'string'"),
    (CONSTANT, CONSTANT + ' value="x"', "more or fewer attributes: value"),
    (CONSTANT, 'element_type="f32" shape="2" offset="0"', "more or fewer attributes: size"),
    (CONSTANT, CONSTANT + ' size="8"', "more or fewer attributes"),
    (CONSTANT, 'element_type="f32" shape="0" offset="0" size="1"', "a layer Const of nothing, shape [0]"),
    ('shape="2" element_type', 'shape="2,0" element_type', "a layer Parameter of nothing, shape [2,0]"),
    ('shape="2" element_type', 'shape="..." element_type', "whose shape is '...'"),
    ('axis="-1"', 'axis="999"', "whose axis is '999'"),
    ('axis="-1"', 'axis="-1" PrimitivesPriority="ref"', "attributes: PrimitivesPriority"),
    ('type="Add" version="opset1"', 'type="ReadValue" version="opset6"', "no layer ReadValue of opset6"),
    ('type="Add" version="opset1"', 'type="Add" version="extension"', "no layer Add of extension"),
    ('type="Add"', 'type="Select"', "a layer Select with 2 inputs"),
    ('<layer id="1"', '<layer id="0"', "two layers have the id 0"),
    ('<port id="1" precision', '<port id="2" precision', "ports with the ids 0, 2"),
    ("<dim>2</dim>", "<dim>x</dim>", "was expected at '<output>"),
    ('to-layer="2" to-port="1"', 'to-layer="2" to-port="0"', "an input port has no edge, or two"),
    ('from-layer="1" from-port="0"', 'from-layer="1" from-port="1"', "an edge from port 1 of layer 1"),
    ('from-layer="1" from-port="0"', 'from-layer="9" from-port="0"', "an edge from layer 9"),
    ('from-layer="1" from-port="0"', 'from-layer="2" from-port="2"', "in a circle"),
    ('from-layer="2" from-port="2"', 'from-layer="1" from-port="0"', "a layer SoftMax of constants alone"),
    ("</layers>", "<!-- --></layers>", "a layer was expected at '<!-- -->"),
    ("</layers>", "&a;</layers>", "a layer was expected at '&a;"),
    ("<rt_info />", '<rt_info><runtime_options /></rt_info>', "rt_info without orders"),
    ("</net>", "</net><net/>", "the end of the net"),
    ("</net>", "", "the end of the net"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), DAMAGES)
def test_what_the_library_would_believe_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    graph, weights = written(SUM, tmp_path)
    with pytest.raises(BundleError, match=re.escape(message)) as refusal:
        check_ir(damaged(graph, old, new).encode(), weights)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("old", "new"), [('dilations="2, 2"', 'dilations=""'), ('kernel="3, 3"', 'kernel="3, 3, 3"')])
def test_a_window_has_one_number_for_each_of_its_axes(old: str, new: str, tmp_path: Path) -> None:
    graph, weights = written(WINDOW, tmp_path)
    check_ir(graph.encode(), weights)
    with pytest.raises(BundleError, match="a layer AvgPool whose window is of"):
        check_ir(damaged(graph, old, new).encode(), weights)


RESIZED = "a layer Interpolate to sizes that are numbers of a call"


@pytest.mark.parametrize(("text", "message"), [
    ("g (float[1,1,4,4] x, int64[4] s) => (float[A,B,C,D] y) { y = Resize(x, , , s) }", RESIZED),
    ("g (float[1,1,4,4] x, float[4] s) => (float[A,B,C,D] y) { t = Abs(s) y = Resize(x, , t) }", RESIZED),
    ("g (float[1,1,4,4] x, float[N,1,M,3] z) => (float[A,B,C,D] y) { s = Shape(z) y = Resize(x, , , s) }", ""),
    ("g (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1,1,2,2}> { y = Resize(x, , s) }", ""),
    ("g (float[2,3] x) => (float[K,3] y) { y = Unique<axis=0>(x) }", "a layer Unique with 2 inputs"),
    ("g (int32 a, int32 b, int32 c) => (int32[K] y) { y = Range(a, b, c) }",
     "a layer Range with an input 2 that is no constant"),
    ("g (float[2] x, int64[1] r) => (float[K] y) { y = Tile(x, r) }",
     "a layer Tile with an input 1 that is no constant"),
])  # fmt: skip
def test_numbers_of_a_call_that_would_end_the_process_are_refused(text: str, message: str, tmp_path: Path) -> None:
    graph, weights = written(text, tmp_path)
    with pytest.raises(BundleError, match=message) if message else nullcontext():
        check_ir(graph.encode(), weights)


BODIES = [
    (LOOP, 'external_port_id="-1" internal', 'external_port_id="7" internal', "for 'current_iteration'"),
    (LOOP, 'purpose="current_iteration"', 'purpose="execution_condition"', "for 'execution_condition'"),
    (LOOP, ' purpose="current_iteration"', "", "the port -1 of a body for ''"),
    (LOOP, '<input external_port_id="2"', '<input external_port_id="5"', "inputs of the layer that there are not"),
    (LOOP, 'stride="1"', 'stride="0"', "a slice from 0 to -1 by 0"),
    (LOOP, 'to-layer="', 'to-layer="77', "back edges of body that lead nowhere"),
    (LOOP, '<back_edges>\n\t\t\t\t<edge from-layer="', '<back_edges><edge from-layer="77', "that come from nowhere"),
    (CHOICE, 'internal_layer_id="0"', 'internal_layer_id="1"', "has other inputs than its port map"),
    (CHOICE, '<output external_port_id="3" internal_layer_id="', '<output external_port_id="3" internal_layer_id="7',
     "has other outputs than its port map"),
    (CHOICE, '<output external_port_id="3"', '<output external_port_id="4"', "outputs of the layer that there are not"),
    (CHOICE, "<then_body>", "<else_body>", "then_body was expected"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "message"), BODIES)
def test_bodies_that_are_connected_to_nothing_are_refused(
    text: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    graph, weights = written(text, tmp_path)
    with pytest.raises(BundleError, match=re.escape(message)):
        check_ir(damaged(graph, old, new).encode(), weights)


def test_bodies_in_bodies_without_end_are_refused(tmp_path: Path) -> None:
    graph, weights = written(SUM, tmp_path)
    begin = graph[: graph.index("<layers>")] + "<layers>"
    choice = (
        '<layer id="0" name="n" type="If" version="opset8"><else_port_map /><then_port_map />'
        '<input><port id="0" precision="BOOL" /></input><then_body><layers>'
    )
    with pytest.raises(BundleError, match=f"bodies in bodies, {MAX_DEPTH + 1} deep"):
        check_ir((begin + choice * 5000).encode(), weights)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('num_splits="2"', 'num_splits="99999999"', "a split into 99999999 with 2 outputs"),
    ('shape="2"', 'shape="1"', "2 outputs and other lengths"),
])  # fmt: skip
def test_a_split_into_more_than_its_outputs_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    graph, weights = written(SPLIT, tmp_path)
    graph = graph.replace('size="16"', 'size="8"') if "shape" in new else graph
    with pytest.raises(BundleError, match=message):
        check_ir(damaged(graph, old, new).encode(), weights)


AXES = {
    "instances": (
        "g (float[1,2,4] x, float[2] s) => (float[1,2,4] y) { y = InstanceNormalization(x, s, s) }", "MVN", 1,
    ),
    "layers": ("g (float[2,3,4] x, float[4] s) => (float[2,3,4] y) { y = LayerNormalization(x, s, s) }", "MVN", 1),
    "from an axis": (
        "g (float[2,3] x, float[2,3] s) => (float[2,3] y) { y = LayerNormalization<axis=0>(x, s, s) }", "MVN", 1,
    ),
    "picked": ("g (float[2,3] x, int64[2] i) => (float[2,2] y) { y = Gather<axis=1>(x, i) }", "Gather", 2),
    "reduced": ("g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }", "ReduceMax", 1),
    "cut": ("""g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}, int64[1] b = {2}>
        { y = Slice(x, a, b, a) }""", "Slice", 4),
    "added": ("g (float[2,3] x) => (float[2,1,3] y) <int64[1] a = {1}> { y = Unsqueeze(x, a) }", "Unsqueeze", 1),
    "summed": ("g (float[2,3] x) => (float[2,3] y) <int64 a = {1}> { y = CumSum(x, a) }", "CumSum", 1),
    "turned": ("g (float[2,3] x) => (float[3,2] y) { y = Transpose(x) }", "Transpose", 1),
}  # fmt: skip
"""ONNX text, a layer that it makes, and the input of its axes."""


@pytest.mark.parametrize(("text", "kind", "port"), AXES.values(), ids=AXES)
def test_an_axis_that_ends_the_process_is_refused(text: str, kind: str, port: int, tmp_path: Path) -> None:
    graph, weights = written(text, tmp_path)
    check_ir(graph.encode(), weights)
    layer = re.search(rf'<layer id="(\d+)" name="[^"]*" type="{kind}"', graph)
    assert layer
    axes = re.search(rf'from-layer="(\d+)" from-port="\d+" to-layer="{layer[1]}" to-port="{port}"', graph)
    assert axes
    edge = f'to-layer="{layer[1]}" to-port="{port}"'
    computed = re.sub(rf'from-layer="\d+" from-port="\d+" {edge}', f'from-layer="0" from-port="0" {edge}', graph)
    with pytest.raises(BundleError, match=f"a layer {kind} with axes that are no small constants"):
        check_ir(computed.encode(), weights)
    begin = re.search(rf'from-layer="(\d+)" from-port="\d+" to-layer="{axes[1]}" to-port="0"', graph) or axes
    at = re.search(rf'<layer id="{begin[1]}" [^>]*>\s*<data element_type="i64" [^>]* offset="(\d+)"', graph)
    assert at
    changed = bytearray(weights)
    changed[int(at[1]) : int(at[1]) + 8] = packed(2**63 - 1)
    with pytest.raises(BundleError, match=f"a layer {kind} with axes that are no small constants"):
        check_ir(graph.encode(), bytes(changed))


def test_a_constant_whose_axes_a_call_takes_away_is_none(tmp_path: Path) -> None:
    text = """g (int64[1] a, int64 b) => (int64[K] y) <int64[1] d = {2}, int64[1] e = {0}>
        { s = Squeeze(d, e) y = Range(b, b, s) }"""
    graph, weights = written(text, tmp_path)
    check_ir(graph.encode(), weights)
    squeeze = re.search(r'<layer id="(\d+)" name="[^"]*" type="Squeeze"', graph)
    assert squeeze
    port = f'to-layer="{squeeze[1]}" to-port="1"'
    graph, count = re.subn(rf'from-layer="\d+" from-port="0" {port}', f'from-layer="0" from-port="0" {port}', graph)
    assert count == 1
    with pytest.raises(BundleError, match="a layer Range with an input 2 that is no constant"):
        check_ir(graph.encode(), weights)


def packed(*pads: int) -> bytes:
    return b"".join(pad.to_bytes(8, "little", signed=True) for pad in pads)


DIVIDED = "g (float[N,4] x) => (int64[2] y) <int64 d = {7}> { s = Shape(x) y = Div(s, d) }"
PLACE = "g (float[N,4] x) => (int64[1] y) <int64[1] i = {1}> { s = Shape(x) y = Gather<axis=0>(s, i) }"
ONE_SIDE = "a layer Pad with an axis cut at one end and padded at the other, by "


def of_pads(*pads: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {(2, 0): pads[:2], (1, 0): pads[2:]}


@pytest.mark.parametrize(("text", "changed", "message"), [
    (DIVIDED, {(7,): (2,)}, ""), (DIVIDED, {(7,): (0,)}, "a layer Divide by constants"),
    (DIVIDED, {(7,): (-1,)}, "a layer Divide by constants"),
    (PLACE, {(1,): (10**6,)}, "a layer Gather with places in a shape that are no small constants"),
    (LOOP, {(3,): (-2,)}, "a layer Loop that joins the pieces of rounds"),
    (PADS, of_pads(-4, 0, 2, 0), f"{ONE_SIDE}-4 and 2"), (PADS, of_pads(0, 100, 0, -98), f"{ONE_SIDE}100 and -98"),
    (PADS, of_pads(2, 0, -1, 0), f"{ONE_SIDE}2 and -1"),
    (PADS, of_pads(2**31 - 1, 0, 2**31 - 1, 0), "a layer Pad with a pad of 2147483647"),
    (PADS, of_pads(0, 0, 0, -(2**32)), "a layer Pad with a pad of -4294967296"), (PADS, of_pads(-1, 0, 1, 0), ""),
    (PADS, of_pads(1, 1, -1, -1), ""), (PADS, of_pads(-3, 0, -4, 0), ""), (PADS, of_pads(2**28, 0, 0, 0), ""),
])  # fmt: skip
def test_constants_with_which_the_library_would_end_the_process_are_refused(
    text: str, changed: dict[tuple[int, ...], tuple[int, ...]], message: str, tmp_path: Path
) -> None:
    graph, weights = written(text, tmp_path)
    check_ir(graph.encode(), weights)
    assert all(packed(*old) in weights for old in changed)
    for old, new in changed.items():
        weights = weights.replace(packed(*old), packed(*new))
    with pytest.raises(BundleError, match=re.escape(message)) if message else nullcontext():
        check_ir(graph.encode(), weights)


def test_pads_of_more_axes_at_one_side_are_refused() -> None:
    assert unsafe_pads([1], [1, 1]) == "1 pads before axes and 2 behind"


@pytest.mark.parametrize(("ends", "is_refused"), [(packed(1, 0), True), (packed(0, 0), False)])
def test_pads_that_a_call_tells_pass_where_there_are_none_at_the_other_end(
    ends: bytes, is_refused: bool, tmp_path: Path
) -> None:
    graph, weights = written(PADS, tmp_path)
    begins = re.search(r'<edge from-layer="(\d+)" from-port="0" to-layer="(\d+)" to-port="1" />', graph)
    assert begins
    other = f'<edge from-layer="0" from-port="0" to-layer="{begins[2]}" to-port="1" />'
    changed = graph.replace(begins[0], other).encode(), weights.replace(packed(1, 0), ends)
    if is_refused:
        with pytest.raises(BundleError, match="a layer Pad with pads that only a call tells"):
            check_ir(*changed)
    else:
        check_ir(*changed)


@pytest.mark.parametrize(
    "begin",
    [b"", b"<net>", b'<?xml version="1.0"?><!DOCTYPE net><net name="m" version="11">', b"\x08\x07", b"\xff\xfe<"],
)
def test_what_is_no_ir_is_refused_by_policy(begin: bytes, tmp_path: Path) -> None:
    graph, weights = written(SUM, tmp_path)
    with pytest.raises(PolicyError, match="is not OpenVINO's IR"):
        check_ir(begin + graph[graph.index("<layers>") :].encode(), weights)


def test_no_layer_that_reads_files_keeps_state_or_brings_code_is_known() -> None:
    known = {kind for kind, _ in KINDS}
    assert not known & {"ReadValue", "Assign", "FrameworkNode", "StringTensorPack", "StringTensorUnpack", "Proposal"}
    assert all(re.fullmatch(r"opset\d+", version) for _, version in KINDS)
