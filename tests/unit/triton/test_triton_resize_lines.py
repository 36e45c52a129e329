# SPDX-License-Identifier: Apache-2.0
"""Resize by lines of places says what the tables say, at every size, for every way that both know."""

import itertools

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from nndeploy.backend_kit.kernels.resize_lines import PlaceLine, resize_lines
from nndeploy.backend_kit.kernels.resize_tables import resize_tables
from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import symbol

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def resize(mode: str, coordinates: str, rounding: str, scales: tuple[float, ...] = ()) -> ir.Node:
    """Returns a Resize of images with given scales of height and width, or with given sizes."""
    text = f"""<ir_version: 10, opset_import: ["": 20]> g (float[1,1,A,B] x, int64[4] k) => (float[1,1,C,D] y) {{
        y = Resize <mode = "{mode}", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{rounding}">
        (x, , {"s" if scales else ", k"}) }}"""
    proto = onnx.parser.parse_model(text)
    if scales:
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array((1, 1, *scales), np.float32), "s"))
    (node,) = ir.from_proto(proto).graph
    return node


def matrix_of_line(kind: str, line: PlaceLine, size: int, out_size: int) -> np.ndarray:
    """Returns how much of each input place an output place takes, as the kernel computes it."""
    found = np.zeros((out_size, size))
    for i in range(out_size):
        place, divisor = max(0, line.factor * i + line.offset), line.divisor
        if kind == "linear":
            first, rest = divmod(place, divisor)
            found[i, min(first, size - 1)] += 1 - rest / divisor
            found[i, min(first + 1, size - 1)] += rest / divisor
        else:
            shifted = {
                "floor": place // divisor,
                "ceil": -(-place // divisor),
                "round_prefer_floor": -(-(2 * place - divisor) // (2 * divisor)),
                "round_prefer_ceil": (2 * place + divisor) // (2 * divisor),
            }[kind]
            found[i, min(max(0, shifted), size - 1)] = 1
    return found


def matrix_of_table(places: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    found = np.zeros((len(places), size))
    for i, (row, factors) in enumerate(zip(places, weights, strict=True)):
        np.add.at(found[i], row, factors)
    return found


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("mode", "rounding"), [("linear", "floor"), *(("nearest", one) for one in ROUNDINGS)])
@pytest.mark.parametrize("scale", [2.0, 3.0, 0.5, 0.25, 1.0])
def test_given_scales(coordinates: str, mode: str, rounding: str, scale: float) -> None:
    node = resize(mode, coordinates, rounding, (scale, scale))
    for size in range(4, 13):
        sizes, out_sizes = (size, size), (int(size * scale), int(size * scale))
        kind, lines = resize_lines(node, 4, sizes, out_sizes)
        for line, table in zip(lines, resize_tables(node, 4, sizes, out_sizes), strict=True):
            got = matrix_of_line(kind, line, size, out_sizes[0])
            np.testing.assert_allclose(got, matrix_of_table(*table, size), atol=1e-12, err_msg=f"{size}")


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_given_sizes(coordinates: str) -> None:
    node = resize("linear", coordinates, "floor")
    for size, out_size in itertools.product((1, 2, 3, 7, 10, 40), (1, 2, 5, 9, 16, 33)):
        sizes, out_sizes = (size, 5), (out_size, 5)
        kind, lines = resize_lines(node, 4, sizes, out_sizes)
        table, _ = resize_tables(node, 4, sizes, out_sizes)
        got = matrix_of_line(kind, lines[0], size, out_size)
        np.testing.assert_allclose(got, matrix_of_table(*table, size), atol=1e-12, err_msg=f"{size} -> {out_size}")


def test_what_is_no_line_is_refused() -> None:
    h, o = symbol("h", 1, 2**15), symbol("o", 1, 2**15)
    for mode, coordinates, reason in [
        ("cubic", "half_pixel", "a Resize that is cubic or smoothed, of a size that is not fixed"),
        ("linear", "half_pixel_symmetric", "a Resize with coordinates 'half_pixel_symmetric' of a size that is not"),
        ("linear", "pytorch_half_pixel", "it depends on whether {o} is less than 2"),
        ("linear", "half_pixel", "a Resize of so long an axis"),
    ]:
        with pytest.raises(BuildRefusedError, match=reason):
            resize_lines(resize(mode, coordinates, "floor"), 4, (h, h), (o, o))
