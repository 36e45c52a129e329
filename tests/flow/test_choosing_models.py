# SPDX-License-Identifier: Apache-2.0
"""Bundles of models that choose (If): our own kernels run them, whichever branch a call takes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from separable_model import needs_native

import nndeploy
from nndeploy.bundle.reader import open_bundle

BY_VALUE = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,4] x, int64 rate) => (float[m,4] y) <int64 slow = {8000}, float[4] k = {1, 2, 3, 4}> {
    c = Equal(rate, slow) q = If(c) <
        then_branch = t () => (float[n,4] a) { s = Add(k, k) a = Mul(x, s) },
        else_branch = e () => (float[p,4] b) { r = Neg(x) b = Concat<axis=0>(x, r) }> y = Exp(q) }"""
BY_PRODUCT = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,512] x, bool c) => (float[n,640] y) { y = If(c) <
        then_branch = t () => (float[n,640] a) { a = MatMul(x, w) },
        else_branch = e () => (float[n,640] b) { r = Tanh(x) b = MatMul(r, w) }> }"""
BY_SIZE = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,t] x) => (float[n,t] y) <int64 i = {1}, int64 one = {1}> {
    s = Shape(x) e = Gather(s, i) d = Equal(e, one) q = If(d) <
        then_branch = f () => (float[n,t] a) { r = Abs(x) a = Exp(r) },
        else_branch = o () => (float[n,t] b) { k = NonZero(x) h = Cast<to=1>(k) m = ReduceMax<keepdims=0>(h)
            b = Add(x, m) }>
    y = Neg(q) }"""
"""No kernel of ours does NonZero."""


def compiled(model: onnx.ModelProto, folder: Path, **options: Any) -> Path:
    """Returns a bundle in which our own kernels come first."""
    needs_native()
    onnx.save(model, folder / "m.onnx")
    wanted = nndeploy.CompileOptions(backends=("native", "onnxruntime"), objective="priority", **options)
    nndeploy.compile_model(folder / "m.onnx", folder / "m.nnd", wanted)
    return folder / "m.nnd"


def backends(bundle: Path) -> Sequence[Sequence[str]]:
    """Returns the backends of the variants of each submodel."""
    with open_bundle(bundle) as opened:
        return [[variant.backend for variant in submodel.variants] for submodel in opened.manifest.submodels]


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_take_the_branch_that_their_input_says(tmp_path, threads) -> None:
    bundle = compiled(onnx.parser.parse_model(BY_VALUE), tmp_path)
    assert backends(bundle) == [["native", "onnxruntime"]]
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=threads)) as program:
        for call, rate in enumerate((8000, 16000, 16000, 8000, 16000)):
            x = np.random.default_rng(call).standard_normal((1 + call, 4)).astype(np.float32)
            wanted = np.exp(x * np.array([2, 4, 6, 8])) if rate == 8000 else np.exp(np.concatenate([x, -x]))
            found = program.run({"x": x, "rate": np.array(rate)})["y"]
            np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_branches_share_weights_that_both_pack(tmp_path) -> None:
    """What one branch has packed is still there for the other."""
    model = onnx.parser.parse_model(BY_PRODUCT)
    w = np.random.default_rng(5).standard_normal((512, 640)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    bundle = compiled(model, tmp_path)
    assert backends(bundle)[0][0] == "native"
    assert bundle.stat().st_size < 1.5 * w.nbytes
    x = np.random.default_rng(6).standard_normal((3, 512)).astype(np.float32)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=2)) as program:
        for c in (True, False):
            wanted = (x if c else np.tanh(x)) @ w
            np.testing.assert_allclose(program.run({"x": x, "c": np.array(c)})["y"], wanted, rtol=1e-3, atol=1e-3)


def test_sizes_whose_branch_was_not_built_run_on_the_next_backend(tmp_path) -> None:
    bundle = compiled(onnx.parser.parse_model(BY_SIZE), tmp_path, samples=[{"x": np.ones((2, 1), np.float32)}])
    assert backends(bundle) == [["native", "onnxruntime"]]
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        for size in (1, 3, 1, 2):
            x = np.full((2, size), 0.5, np.float32)
            wanted = -np.exp(x) if size == 1 else -(x + max(1, size - 1))
            np.testing.assert_allclose(program.run({"x": x})["y"], wanted, rtol=1e-5)
