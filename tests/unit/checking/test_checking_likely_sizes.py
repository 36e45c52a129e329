# SPDX-License-Identifier: Apache-2.0
"""Made-up inputs fit: open sizes follow from weights, from sums of names, and from why a library refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.likely_sizes import LENGTH, WAVE, enlarged, kind_of, sizes_from_weights, terms_of
from nndeploy.checking.samples import generated_samples
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import load_model
from nndeploy.jobs.tasks import evaluate
from nndeploy.plugin.interface import BuildOptions
from nndeploy.values.types import TensorType


def graph_of(text: str) -> ir.Graph:
    return ir.from_proto(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')).graph


def first_that_runs(text: str) -> Mapping[str, Any]:
    """Returns the first made-up input that ONNX Runtime takes, told each time why it refused."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    graph = ir.from_proto(model).graph
    inputs = [
        NamedType(v.name or "", TensorType("float32", tuple(_dim(d) for d in v.shape or ()))) for v in graph.inputs
    ]
    attempts = generated_samples(graph, inputs, {}, 0)
    sample = next(attempts)
    while True:
        try:
            evaluate("onnxruntime", model.SerializeToString(), [sample], BuildOptions())
        except BuildRefusedError as err:
            sample = attempts.send(str(err))
        else:
            return sample


@pytest.mark.parametrize("name", ["silero_vad_v2_mini", "silero_vad_v5", "ppocr_rec_en_mobile_v2", "nnsplit_en"])
def test_a_real_network_gets_an_input_that_runs(models_folder: Path, name: str) -> None:
    loaded = load_model(models_folder / f"{name}.onnx")
    attempts = generated_samples(loaded.model.graph, loaded.inputs, {}, 0)
    sample = next(attempts)
    while True:  # ends with StopIteration where none runs
        try:
            evaluate("onnxruntime", loaded.original.SerializeToString(), [sample], BuildOptions())
        except BuildRefusedError as err:
            sample = attempts.send(str(err))
        else:
            return


def _dim(dim: Any) -> Any:
    return dim if isinstance(dim, int) else dim.value


def test_a_weight_tells_the_channels_through_a_cast_and_a_transpose() -> None:
    graph = graph_of(
        "g (float[N, H, W, C] x, float[8, 5, 3, 3] w) => (float[N, 8, A, B] y)"
        " { c = Cast<to = 1>(x) t = Transpose<perm = [0, 3, 1, 2]>(c) y = Conv(t, w) }"
    )
    assert sizes_from_weights(graph) == {("x", 3): 5}


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ("y = Conv<group = 2>(x, w)", {("x", 1): 12}),
        ("y = ConvTranspose(x, w)", {("x", 1): 4}),
        ("y = LayerNormalization(x, v)", {("x", 3): 7}),
    ],
)
def test_what_a_weight_tells(node: str, told: Mapping[tuple[str, int], int]) -> None:
    text = f"g (float[a, b, c, d] x, float[4, 6, 3, 3] w, float[7] v) => (float[a, b, c, d] y) {{ {node} }}"
    assert sizes_from_weights(graph_of(text)) == told


def test_a_sum_of_symbols_is_the_sum_of_their_sizes() -> None:
    inputs = [
        NamedType("past_key", TensorType("float32", ("batch", 2, "past_sequence_length", 4))),
        NamedType("input_ids", TensorType("int64", ("batch", "sequence_length"))),
        NamedType("attention_mask", TensorType("int64", ("batch", "past_sequence_length + sequence_length"))),
    ]
    for sample in generated_samples(graph_of("g (float[1] x) => (float[1] y) { y = Relu(x) }"), inputs, {}, 0):
        assert sample["attention_mask"].shape[1] == sample["past_key"].shape[2] + sample["input_ids"].shape[1]
        assert sample["attention_mask"].all()


def test_positions_stand_behind_the_past_and_within_the_table() -> None:
    graph = graph_of(
        "g (int64[B, S] position_ids, float[20, 3] t) => (float[B, S, 3] y) { y = Gather(t, position_ids) }"
    )
    inputs = [NamedType("position_ids", TensorType("int64", ("B", "S")))]
    first = next(generated_samples(graph, inputs, {}, 0))["position_ids"]
    assert first[0, :4].tolist() == [16, 17, 18, 19]
    assert first.max() < 20


@pytest.mark.parametrize(
    ("dims", "axis", "kind"),
    [
        (("N", "num_channels", "H", "W"), 1, "channels"),
        ((2, None, 128), 1, "batch"),
        (("batch_size", "sequence_length"), 1, "length"),
        ((None, 3, None, None), 2, "image"),
    ],
)
def test_what_an_axis_probably_is(dims: tuple[Any, ...], axis: int, kind: str) -> None:
    assert kind_of(dims[axis], axis, dims) == kind


def test_only_sums_have_terms() -> None:
    assert terms_of("past + 1") == ["past", "1"]
    assert terms_of("past") is None
    assert terms_of("a + (b") is None


def test_a_refusal_says_how_much_longer_an_axis_must_be() -> None:
    larger = enlarged(
        {"batch": 1, "image": 64, LENGTH: 64, WAVE: 4096, "past": 8, "channels": 3},
        "pre-pad (160) exceeds maximum allowed (63)",
    )
    assert larger is not None
    assert larger[LENGTH] > 160
    assert enlarged({LENGTH: 1, "image": 1}, "another reason") is None


def test_an_input_is_made_long_enough_for_a_reflecting_pad() -> None:
    sample = first_that_runs(
        'g (float[1, N] x) => (float[1, M] y) <int64[4] p = {0, 30000, 0, 0}> { y = Pad<mode = "reflect">(x, p) }'
    )
    assert sample["x"].shape[1] > 30000


@pytest.mark.parametrize(("rows", "side"), [(65, 8), (64, 8), (18, 4)], ids=["with-class", "patches-only", "with-two"])
def test_positions_tell_how_large_an_image_of_patches_is(rows: int, side: int) -> None:
    graph = graph_of(
        f"g (float[N,3,H,W] x, float[8,3,16,16] w, float[N,{rows - side * side},8] first, float[1,{rows},8] where)"
        " => (float[N,M,8] y) { patches = Conv<strides=[16,16]>(x, w) shape = Constant<value_ints=[0,8,-1]>()"
        " flat = Reshape(patches, shape) rows = Transpose<perm=[0,2,1]>(flat)"
        " all = Concat<axis=1>(first, rows) y = Add(all, where) }"
    )
    told = sizes_from_weights(graph)
    assert (told["x", 2], told["x", 3]) == (16 * side, 16 * side)


def test_a_convolution_whose_windows_overlap_says_nothing_of_the_image() -> None:
    graph = graph_of(
        "g (float[N,3,H,W] x, float[8,3,16,16] w, float[1,64,8] where) => (float[N,64,8] y)"
        " { patches = Conv<strides=[8,8]>(x, w) shape = Constant<value_ints=[0,8,-1]>()"
        " flat = Reshape(patches, shape) rows = Transpose<perm=[0,2,1]>(flat) y = Add(rows, where) }"
    )
    assert ("x", 2) not in sizes_from_weights(graph)
