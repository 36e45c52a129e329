# SPDX-License-Identifier: Apache-2.0
"""Operators that find elements, between plans: what they give, sizes that follow from it, and what is refused."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from native_models import Array, dynamic, kernels_of, made, opened, run
from nndeploy_native.course import course_from_json
from nndeploy_native.plan import DOCUMENT_FILE
from oracle.in_float64 import outputs_in_float64

from nndeploy.errors import BuildRefusedError, BundleError, InputError

F32 = np.float32
DRAWN = np.random.default_rng(3)
BOXES = "g (float[2,n,4] b, float[2,3,n] s)"
CUT = (
    "{a} = NonZero({x}) {a}s = Shape<start=1>({a}) {a}m = Concat<axis=0>({a}s, five)"
    " {a}k = ReduceMin<keepdims=1>({a}m) "
)


def suppressed(more: str = "", **attributes: Any) -> str:
    """Returns a network that chooses boxes and sums them."""
    said = ",".join(f"{key}={value}" for key, value in attributes.items())
    return (
        f"{BOXES} => (int64[f,3] y, float[2,n,4] z) "
        f"{{ p = Relu(s) y = NonMaxSuppression{f'<{said}>' if said else ''}(b, p{more}) z = Add(b, b) }}"
    )


NETWORKS: dict[str, tuple[str, dict[str, Array]]] = {
    "places, and what is there": (
        "g (float[n,m] x) => (int64[2,f] p, float[f] y) {"
        " h = Relu(x) p = NonZero(h) t = Transpose(p) e = GatherND(h, t) y = Sqrt(e) }",
        {},
    ),
    "kept rows": (
        "g (float[n,4] x, float[n] s) => (float[f,3] y) {"
        " k = Greater(s, zero) r = Compress<axis=0>(x, k) y = MatMul(r, w) }",
        {"zero": np.array(0, F32), "w": DRAWN.standard_normal((4, 3)).astype(F32)},
    ),
    "kept elements of all": (
        "g (float[n,4] x, float[n] s) => (float[f] y) { k = Less(s, zero) r = Compress(x, k) y = Neg(r) }",
        {"zero": np.array(0, F32)},
    ),
    "the best of what is there": (
        "g (float[n] x) => (float[f] y, int64[f] p) {"
        f" h = Relu(x) {CUT.format(a='a', x='h')} q = Squeeze(a, zero) e = Gather(h, q) y, p = TopK(e, ak) }}",
        {"zero": np.array([0]), "five": np.array([5])},
    ),
    "lists of unknown length, one behind the other": (
        "g (float[n] x, float[n] v) => (float[f] y, int64[1,f] p) {"
        f" {CUT.format(a='a', x='x')} {CUT.format(a='b', x='v')} aq = Squeeze(a, zero) bq = Squeeze(b, zero)"
        " ax = Gather(x, aq) bx = Gather(v, bq) w, wp = TopK(ax, ak) u, up = TopK(bx, bk)"
        " c = Concat<axis=0>(w, u) h = Relu(c) p = NonZero(h) r = Squeeze(p, zero) g = Gather(h, r) y = Exp(g) }",
        {"zero": np.array([0]), "five": np.array([5])},
    ),
}  # fmt: skip
BOUNDS: dict[str, tuple[str, dict[str, Array]]] = {
    "all bounds": (
        suppressed(", most, iou, least"),
        {"most": np.array([4]), "iou": np.array(0.3, F32), "least": np.array(0.2, F32)},
    ),
    "every score": (suppressed(", most, iou"), {"most": np.array([1 << 40]), "iou": np.array(0.5, F32)}),
    "none of them": (suppressed(", most"), {"most": np.array([2])}),
    "no box": (suppressed(), {}),
    "centres": (suppressed(", most, iou", center_point_box=1), {"most": np.array([5]), "iou": np.array(0.1, F32)}),
}


def drawn(model: ir.Model, seed: int, size: int) -> dict[str, Array]:
    """Returns inputs, a third of them zero, with so many elements along axes of any size."""
    numbers = np.random.default_rng(seed)
    shapes = [[dim if isinstance(dim, int) else size for dim in value.shape or ()] for value in model.graph.inputs]
    arrays = [numbers.standard_normal(shape) * (numbers.random(shape) < 2 / 3) for shape in shapes]
    return {value.name or "": array.astype(F32) for value, array in zip(model.graph.inputs, arrays, strict=True)}


def assert_right(network: tuple[str, dict[str, Array]], seed: int, size: int) -> dict[str, Array]:
    model = dynamic(network[0], {}, network[1])
    inputs = drawn(model, seed, size)
    found, wanted = run(made(model, {}), inputs), outputs_in_float64(ir.to_proto(model), inputs)
    for output in model.graph.outputs:
        value = found[output.name or ""]
        assert value.dtype == (output.dtype or ir.DataType.FLOAT).numpy()
        np.testing.assert_allclose(value, wanted[output.name or ""], rtol=1e-5, atol=1e-6)
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_found_goes_on_through_plans(name: str) -> None:
    for seed, size in enumerate((1, 2, 7, 40)):
        assert_right(NETWORKS[name], seed, size)


@pytest.mark.parametrize("name", BOUNDS)
def test_boxes_that_overlap_a_better_one_are_left_out(name: str) -> None:
    counts = [len(assert_right(BOUNDS[name], seed, size)["y"]) for seed, size in enumerate((1, 3, 30, 100))]
    assert (max(counts) > 0) == (name != "no box")


def test_elements_of_every_type_are_found_where_they_are_not_zero() -> None:
    for dtype in ("float", "double", "int32", "int64", "uint8", "int8", "bool", "float16"):
        model = dynamic(f"g ({dtype}[n] x) => (int64[1,f] y) {{ y = NonZero(x) }}", {})
        x = np.array([0.0, -0.0, 1, np.nan if dtype.startswith(("float", "double")) else 3, 0]).astype(
            ir.DataType[dtype.upper()].numpy()
        )
        assert run(made(model, {}), {"x": x})["y"].tolist() == [[2, 3]], dtype


def test_nothing_found_is_a_result() -> None:
    model = dynamic(*NETWORKS["places, and what is there"][:1], {})
    found = run(made(model, {}), {"x": -np.ones((3, 2), F32)})
    assert (found["p"].shape, found["y"].shape) == ((2, 0), (0,))


def test_a_size_that_follows_from_one_that_an_input_tells_is_none_of_its_own() -> None:
    text = """g (float[n] x) => (float[all] y, float[n] w) {
        k = Greater(x, zero) h = Slice(x, start, end, axis, step) r = Relu(h) p = NonZero(k) q = Squeeze(p, axis)
        f = Gather(x, q) y = Concat<axis=0>(f, r, x) w = Exp(x) }"""
    slices = {"start": np.array([0]), "end": np.array([1 << 60]), "axis": np.array([0]), "step": np.array([2])}
    constants = {"zero": np.array(0, F32), **slices}
    model = dynamic(text, {}, constants)
    document = course_from_json(made(model, {}).files[DOCUMENT_FILE])
    assert len(document.plans[-1].inputs) == 3
    assert len(document.plans[-1].symbols) == 2
    assert_right((text, constants), 0, 9)


def test_what_does_not_fit_is_an_error_of_the_input() -> None:
    model = dynamic("g (float[n] x, bool[m] k) => (float[f] y) { y = Compress<axis=0>(x, k) }", {})
    with closing(opened(made(model, {}))) as session:
        assert session.run({"x": np.arange(3, dtype=F32), "k": np.array([True])})["y"].tolist() == [0]
        with pytest.raises(InputError):
            session.run({"x": np.arange(3, dtype=F32), "k": np.array([False, False, False, True])})


@pytest.mark.parametrize(("text", "constants"), [
    (suppressed(", most, iou"), {"most": np.array([4]), "iou": np.array(1.5, F32)}),
    (suppressed(", most, zero, least"), {
        "most": np.array([4]), "zero": np.array(0, F32), "least": np.array(np.inf, F32),
    }),
    ("g (float x) => (int64[0,f] y) { y = NonZero(x) }", {}),
    (f"{BOXES[:-1]}, int64[1] most) => (int64[f,3] y) {{ y = NonMaxSuppression(b, s, most) }}", {}),
])  # fmt: skip
def test_what_has_no_rule_is_refused(text: str, constants: Mapping[str, Array]) -> None:
    with pytest.raises(BuildRefusedError):
        made(dynamic(text, {}, constants), {})


@pytest.mark.parametrize(("key", "value"), [
    ("overlap", 2.0), ("overlap", 1), ("overlap", None), ("most", -1), ("most", 0.5), ("least", "0"), ("is_centred", 1),
    ("another", 1),
])  # fmt: skip
def test_malformed_bounds_are_no_bundle(key: str, value: object) -> None:
    text, constants = BOUNDS["all bounds"]
    artifact = made(dynamic(text, {}, constants), {})
    assert "python" in kernels_of(artifact)
    document = json.loads(artifact.files[DOCUMENT_FILE])
    (step,) = (part for part in document["course"]["parts"] if type(part) is dict)
    step["with"][key] = value
    files = {**artifact.files, DOCUMENT_FILE: json.dumps(document).encode()}
    with pytest.raises(BundleError):
        opened(replace(artifact, files=files))
