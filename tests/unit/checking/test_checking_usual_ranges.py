# SPDX-License-Identifier: Apache-2.0
"""Ranges for sizes that a model leaves open: usual ones, that hold the samples and at whose ends the model runs."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nndeploy.checking.usual_ranges import usual_ranges
from nndeploy.frontend.load import load_model
from nndeploy.values.types import DimRange

IMAGES = "(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu(x) }"
CONVOLVED = "(float[N,3,H,W] x) => (float[N,4,p,q] y) { y = Conv(x, w) }"
BATCH, SIDE = DimRange(1, 8, 1), DimRange(32, 640, 224, 32)


def loaded(text: str, **weights: np.ndarray) -> ir.Model:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return load_model(model).model


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


def images(*sizes: tuple[int, int, int]) -> list[dict[str, np.ndarray]]:
    return [{"x": zeros(n, 3, h, w)} for n, h, w in sizes]


def test_each_kind_has_its_usual_sizes_tuned_for_the_first_sample() -> None:
    assert usual_ranges(loaded(IMAGES), {}, images((1, 224, 224))) == {"N": BATCH, "H": SIDE, "W": SIDE}
    text = "(int64[B,S] ids) => (float[B,S,4] y) { y = Gather(w, ids) }"
    found = usual_ranges(loaded(text, w=zeros(50, 4)), {}, [{"ids": zeros(2, 64, dtype="int64")}])
    assert found == {"B": DimRange(1, 8, 2), "S": DimRange(1, 512, 64)}


def test_an_axis_without_a_name_has_that_of_its_input() -> None:
    assert usual_ranges(loaded("(float[?,4] x) => (float[?,4] y) { y = Relu(x) }"), {}, []) == {"x.0": BATCH}


@pytest.mark.parametrize("sizes", [[(20, 300, 48), (3, 7, 1000)], [(1, 1, 1)], [(9, 224, 640)]], ids=str)
def test_all_samples_are_in_the_ranges(sizes: list[tuple[int, int, int]]) -> None:
    found = usual_ranges(loaded(IMAGES), {}, images(*sizes))
    for sample in sizes:
        assert all(found[symbol].holds(size) for symbol, size in zip("NHW", sample, strict=True))
    assert [found[symbol].best for symbol in "NHW"] == list(sizes[0])
    for limits in found.values():
        assert limits.holds(limits.best)
        assert limits.holds(limits.max)


def test_an_end_at_which_the_model_cannot_run_is_the_sample_s_own() -> None:
    model = loaded(CONVOLVED, w=zeros(4, 3, 70, 9))  # an image of 32 rows is too low for a window of 70
    assert usual_ranges(model, {}, images((1, 224, 224))) == {"N": BATCH, "H": DimRange(224, 640, 224, 32), "W": SIDE}


def test_a_size_that_weights_decide_is_that_one() -> None:
    text = """(float[N,3,H,W] x) => (float[N,8,1369] y) { a = Conv<strides=[14,14]>(x, w) f = Reshape(a, s)
    y = Add(f, p) }"""
    model = loaded(text, w=zeros(8, 3, 14, 14), s=np.array([0, 8, -1]), p=zeros(1, 8, 1369))
    fixed = DimRange(518, 518, 518)
    assert usual_ranges(model, {}, images((1, 518, 518))) == {"N": BATCH, "H": fixed, "W": fixed}


def test_sizes_that_must_be_equal_move_together() -> None:
    model = loaded("(float[N,H,W] x) => (float[N,H,W] y) { t = Transpose<perm=[0,2,1]>(x) y = Add(x, t) }")
    found = usual_ranges(model, {}, [{"x": zeros(1, 64, 64)}])
    assert found["H"] == found["W"]
    assert found["H"].min < 64 < found["H"].max


def test_what_is_declared_stays_and_the_rest_fits_to_it() -> None:
    declared = {"H": DimRange(96, 192, 96, 32)}
    assert usual_ranges(loaded(IMAGES), declared, images((1, 96, 224))) == {"N": BATCH, "W": SIDE}
    assert usual_ranges(loaded("(float[2,4] x) => (float[2,4] y) { y = Relu(x) }"), {}, []) == {}


def test_a_size_that_is_computed_from_others_has_their_ends() -> None:
    text = """(float[B,past,4] p, float[B,new,4] x, float[B,past + new] m) => (float[B,t,4] y) {
    c = Concat<axis=1>(p, x) u = Unsqueeze(m, l) y = Mul(c, u) }"""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g {text}'.replace("past + new", "both").replace("new", "seq")
    )
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "past + seq"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2]), "l"))
    sample = {"p": zeros(1, 16, 4), "x": zeros(1, 64, 4), "m": zeros(1, 80)}
    found = usual_ranges(load_model(model).model, {}, [sample])
    parts = [found["past"], found["seq"]]
    whole = found["past + seq"]
    assert (whole.min, whole.best, whole.max) == tuple(
        sum(getattr(one, end) for one in parts) for end in ("min", "best", "max")
    )


def test_an_input_of_unknown_rank_has_no_range() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert usual_ranges(load_model(model).model, {}, [{"x": zeros(3)}]) == {}


def test_what_would_be_too_large_is_not_in_the_range() -> None:
    model = loaded(CONVOLVED, w=zeros(4, 3, 3, 3))
    largest = usual_ranges(model, {}, images((1, 64, 64)), max_elements=8 * 3 * 640 * 640)
    assert (largest["N"].max, largest["H"].max, largest["W"].max) == (8, 640, 320)
    assert usual_ranges(model, {}, images((9, 64, 64)), max_elements=1)["N"] == DimRange(1, 9, 9)


def test_a_size_that_may_be_one_or_what_weights_say_is_that_of_the_sample() -> None:
    model = loaded("(float[N,D] x) => (float[N,12] y) { y = Add(x, w) }", w=zeros(12))
    assert usual_ranges(model, {}, [{"x": zeros(1, 12)}]) == {"N": BATCH, "D": DimRange(12, 12, 12)}
