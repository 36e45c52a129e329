# SPDX-License-Identifier: Apache-2.0
"""A network with an open batch, compiled here without a range: right at every size, each backend alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from gpu_backends import TIERS, check_alike, ort_outputs, ort_session, why_unusable

from nndeploy.compiler.flow import compile_model
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.target.target import host_target

NETWORK = """<ir_version: 8, opset_import: ["": 18]> digits (float[N,4,16,16] image) => (float[N,10] scores)
<int64[2] rows = {-1,8}, int64[4] apart = {-1,16,16,8}> {
    a = Conv<pads=[1,1,1,1]>(image, w)  b = Relu(a)  t = Transpose<perm=[0,2,3,1]>(b)  r = Reshape(t, rows)
    m = MatMul(r, u)  e = Reshape(m, apart)  n = LayerNormalization(e, s)  f = Flatten(n)  scores = Gemm(f, v)
}"""


def network() -> onnx.ModelProto:
    found, dice = onnx.parser.parse_model(NETWORK), np.random.default_rng(0)
    for name, shape in {"w": (8, 4, 3, 3), "u": (8, 8), "s": (8,), "v": (2048, 10)}.items():
        weights = dice.standard_normal(shape).astype(np.float32) / 8
        found.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return found


@pytest.mark.parametrize("tier", TIERS)
def test_an_open_batch_is_right_at_every_size_and_beyond(tier: str, tmp_path: Path) -> None:
    if why := why_unusable(tier):
        pytest.skip(why)
    target, path = replace(host_target(), is_host=False), tmp_path / "m.nnd"
    report = compile_model(
        network(), path, backends=(tier, "onnxruntime", "reference"), targets=(target,), objective="priority",
        workers=InProcessWorkers(),
    )  # fmt: skip
    (chain,) = report.target_chains
    if not chain.share_of(tier):
        pytest.skip(chain.idle_gpu)
    assert not [reason for reason in chain.dropped if "wrong numbers" in reason]
    reference = ort_session(network())
    with load_bundle(str(path), LoadOptions()) as program:
        assert program.chain.ranges["N"].max == 8
        for rows in (*range(1, 10), 3):
            sample = {"image": np.random.default_rng(rows).standard_normal((rows, 4, 16, 16)).astype(np.float32)}
            for _ in range(3):  # queued, then recorded
                check_alike(program.run(sample), ort_outputs(reference, sample))
        assert "is 9" in program.outside_note
