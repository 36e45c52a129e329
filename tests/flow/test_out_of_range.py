# SPDX-License-Identifier: Apache-2.0
"""An index out of range is an error of that input, which names the index; `--out-of-range clamp` takes the nearest."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import nndeploy
from nndeploy.errors import DataError, UsageError

MODEL = """g (float[A,2] x, int64[N,1] i) => (float[N,2] p, float[N,2] q, float[A,2] r, float[N,1,2] s, float[A,2] t)
<int64 one = {1}, int64[1] last = {1}> {
  p = GatherND(x, i)
  j = Sub(i, one)
  k = Squeeze(j, last)
  q = Gather(x, k)
  u = Cast<to = 1>(q)
  r = ScatterND(x, i, u)
  c = If (yes) <then_branch = a () => (float[N,1,2] d) { d = Gather(x, i) },
                else_branch = b () => (float[N,1,2] e) { e = Gather(x, i) }>
  s = Neg(c)
  v = Squeeze(i, last)
  w = Expand(i, two)
  t = ScatterElements(x, w, q)
}"""


def model(opset: int = 20) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> ' + MODEL)
    for name, array in (("yes", np.array(True)), ("two", np.array([1, 2]))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return proto


def numbers(i: Any) -> dict[str, Any]:
    return {"x": np.arange(10, dtype=np.float32).reshape(5, 2), "i": np.array(i).reshape(-1, 1)}


def wanted(x: Any, i: Any) -> dict[str, Any]:
    """Returns what a model gives whose indices are clamped."""
    at, before = (np.clip(some, -5, 4)[:, 0] for some in (i, i - 1))
    scattered, by_element = x.copy(), x.copy()
    for number in range(len(i)):
        scattered[at[number]] = by_element[at[number]] = x[before[number]]
    return {"p": x[at], "q": x[before], "r": scattered, "s": -x[at][:, None], "t": by_element}


def compiled(path: Path, backends: tuple[str, ...] | None = None, **options: Any) -> Path:
    asked = nndeploy.CompileOptions(
        backends=backends, samples=[numbers([1, 4, -3])], objective="priority", keep_fallback=False, **options
    )
    nndeploy.compile_model(model(), path, asked)
    return path


@pytest.mark.parametrize("backends", [None, ("onnxruntime",)])
def test_an_index_out_of_range_is_an_error_of_that_input(backends, tmp_path) -> None:
    with nndeploy.load_bundle(compiled(tmp_path / "m.nnd", backends)) as program:
        right = numbers([1, 4, -3])
        for _ in range(2):
            for name, value in wanted(**right).items():
                np.testing.assert_array_equal(program.run(right)[name], value)
            with pytest.raises(DataError, match="77"):
                program.run(numbers([1, 77, 0]))


@pytest.mark.parametrize("backends", [None, ("onnxruntime",), ("reference",)])
def test_clamped_it_is_the_nearest(backends, tmp_path) -> None:
    with nndeploy.load_bundle(compiled(tmp_path / "m.nnd", backends, out_of_range="clamp")) as program:
        given = numbers([1, 77, -(2**62)])
        for name, value in wanted(**given).items():
            np.testing.assert_array_equal(program.run(given)[name], value)


def test_what_else_it_may_be_is_no_option() -> None:
    with pytest.raises(UsageError):
        nndeploy.CompileOptions(out_of_range="wrap")
