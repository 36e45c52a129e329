# SPDX-License-Identifier: Apache-2.0
"""The parts of quantisation by themselves: figures, samples held out, the search for the fewest float layers."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nndeploy.quantisation.accuracy import MAX_DB, MIN_DB, worst_accuracy
from nndeploy.quantisation.float_layers import _least
from nndeploy.quantisation.held_out import MAX_HELD_OUT, split_samples
from nndeploy.quantisation.layers import Layer, all_layers, with_followers


def of(got, want) -> float:
    """Returns the ratio of signal to noise of one output on one sample."""
    return worst_accuracy([{"y": np.asarray(got)}], [{"y": np.asarray(want)}], ["y"]).sqnr_db


def test_an_error_of_a_tenth_is_20_db() -> None:
    want = np.full(1000, 2, np.float32)
    assert of(want * np.float32(1.1), want) == pytest.approx(20, abs=1e-4)


def test_equal_outputs_have_the_most() -> None:
    assert of([1.0, np.inf, np.nan], [1.0, np.inf, np.nan]) == MAX_DB
    assert of(np.zeros(0, np.float32), np.zeros(0, np.float32)) == MAX_DB


@pytest.mark.parametrize("got", [[np.nan, 1.0], [np.inf, 1.0], [1.0]])
def test_what_is_no_result_has_the_least(got) -> None:
    assert of(np.array(got, np.float32), np.ones(2, np.float32)) == MIN_DB


def test_noise_where_nothing_was_has_the_least() -> None:
    assert of([0.1], [0.0]) == MIN_DB


def test_of_integers_the_share_that_differs_counts() -> None:
    want = np.arange(100)
    assert of(np.where(want < 10, -1, want), want) == pytest.approx(20)


def test_the_worst_output_over_all_samples_decides() -> None:
    want = [{"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)}] * 2
    got = [want[0], {"a": np.ones(4, np.float32), "b": np.full(4, 1.5, np.float32)}]
    found = worst_accuracy(got, want, ["a", "b"])
    assert (found.output, found.max_abs, found.mean_abs) == ("b", 0.5, 0.25)
    assert found.sqnr_db == pytest.approx(10 * np.log10(8))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 30, 500])
def test_no_sample_is_calibrated_and_measured_with(count: int) -> None:
    samples = [{"x": np.array(i)} for i in range(count)]
    split = split_samples(samples)
    calibration, held_out = ({id(sample) for sample in part} for part in (split.calibration, split.held_out))
    assert calibration
    assert held_out
    assert count == 1 or not calibration & held_out
    assert len(held_out) <= MAX_HELD_OUT
    assert len(calibration) >= count // 2


@pytest.mark.parametrize("turns", [2, 3, 4, 5, 8])
def test_samples_that_take_turns_are_not_measured_by_one_of_them(turns: int) -> None:
    held_out = split_samples([{"x": np.array(i)} for i in range(16)]).held_out
    assert len(held_out) == 4
    assert len({int(sample["x"]) % turns for sample in held_out}) > 1


@pytest.mark.parametrize("most", [1, 2, 3, 7, 20])
def test_the_search_finds_the_least_count_in_few_trials(most: int) -> None:
    for enough in range(1, most + 1):
        asked: list[int] = []
        assert _least(lambda count: asked.append(count) or count >= enough, most) == enough  # noqa: B023
        assert len(asked) <= 2 + np.log2(most) + 1
    assert _least(lambda _count: False, most) is None
    assert _least(lambda _count: True, 0) is None


ACTIVATIONS = """<ir_version: 8, opset_import: ["": 18]> g (float[1,4,8,8] x) => (float[1,4,8,8] y)
    <float[4,4,1,1] w = {%s}, float three = {3.0}, float zero = {0.0}, float six = {6.0}> {
    a = Conv(x, w)  b = Sigmoid(a)  silu = Mul(a, b)  c = Conv(silu, w)  d = Add(c, three)  clip = Clip(d, zero, six)
    swish = Mul(c, clip)  e = Div(swish, six)  f = Conv(e, w)  relu = Relu(f)  residual = Add(relu, a)
    gate = Sigmoid(f)  gated = Mul(residual, gate)  last = Conv(gated, w)  y = Add(last, residual) }"""


def layers_of_activations() -> tuple[Layer, ...]:
    """Returns the layers of a network, each called as its output."""
    model = ir.from_proto(onnx.parser.parse_model(ACTIVATIONS % ",".join(["0.5"] * 16)))
    for node in model.graph:
        node.name = node.outputs[0].name
        node.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    return all_layers(model.graph)


def test_parts_of_an_activation_are_no_layers() -> None:
    """What several nodes make of one value; a Relu alone, a sum and a gate of another value are, before a product."""
    layers = [layer.name for layer in layers_of_activations()]
    assert layers == ["a", "c", "f", "relu", "residual", "gated", "last"]


@pytest.mark.parametrize(("floats", "all_floats"), [
    ((), ""), (("a",), "a"), (("f",), "f relu"), (("a", "f"), "a f gated relu residual"), (("last",), "last"),
])  # fmt: skip
def test_what_reads_floats_alone_and_is_no_product_stays_float(floats: tuple[str, ...], all_floats: str) -> None:
    """Products before an activation count as what makes its result."""
    assert sorted(with_followers(layers_of_activations(), floats)) == all_floats.split()
