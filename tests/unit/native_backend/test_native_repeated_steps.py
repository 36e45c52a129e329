# SPDX-License-Identifier: Apache-2.0
"""Steps that differ only in their arrays and sizes share one function; each still works on its own."""

import re
from collections.abc import Sequence
from pathlib import Path

import nndeploy_native.build as build_module
import pytest
from native_models import needs_zig, reals
from nndeploy_native.isa import Isa
from nndeploy_native.library import library_from_source
from test_native_any_shape import EACH_ISA, check, compiled, dynamic, opened

from nndeploy.values.types import DimRange

CONSTANTS = {
    f"{kind}{layer}": 0.1 * reals(*shape, seed=9 * layer + len(shape))
    for layer in range(4)
    for kind, shape in (("w", (18, 18, 3, 3)), ("b", (18,)))
}
LAYERS = """{ c0 = Conv<pads=[1,1,1,1]>(x, w0, b0) r0 = Relu(c0) c1 = Conv<pads=[1,1,1,1]>(r0, w1, b1) r1 = Relu(c1)
    p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r1) c2 = Conv<pads=[1,1,1,1]>(p, w2, b2) r2 = Relu(c2)
    y = Conv<pads=[1,1,1,1]>(r2, w3, b3) }"""
"""Two layers alike at one size, a third at half the size, and one that ends in another way."""


@EACH_ISA
@pytest.mark.parametrize(
    ("borders", "shapes", "alike"),
    [
        ("float[n,18,h,w] x) => (float[n,18,p,q] y", [(1, 18, 4, 6), (2, 18, 20, 35), (1, 18, 40, 18)], 3),
        ("float[n,18,14,20] x) => (float[n,18,7,10] y", [(1, 18, 14, 20), (3, 18, 14, 20)], 2),
        ("float[1,18,14,20] x) => (float[1,18,7,10] y", [(1, 18, 14, 20)], 2),
    ],
    ids=["any shape", "any number of images", "one shape"],
)
def test_steps_that_are_alike_are_compiled_once(
    isa: Isa, borders: str, shapes: Sequence[tuple[int, ...]], alike: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    needs_zig()
    sources: list[str] = []

    def noted(texts: Sequence[str], *rest: object) -> bytes:
        sources.extend(texts)
        return library_from_source(texts, *rest)

    monkeypatch.setattr(build_module, "library_from_source", noted)
    ranges = {"n": DimRange(1, 3, 1), "h": DimRange(4, 40, 40), "w": DimRange(4, 40, 40)}
    model = dynamic(f"g ({borders}) {LAYERS}", ranges, CONSTANTS)
    session = opened(compiled(model, ranges, isa, tmp_path))
    (first, *others) = re.findall(r"\b(step\d+_like_run)\(", "".join(sources))
    assert others == [first] * alike, "the function, and a call of each"
    assert len(re.findall(r"\bnnd_convolution_step\(", "".join(sources))) == 1 + 4 - alike
    for shape in shapes:
        check(model, session, {"x": reals(*shape, seed=3)})
