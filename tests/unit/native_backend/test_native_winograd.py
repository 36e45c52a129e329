# SPDX-License-Identifier: Apache-2.0
"""Convolutions by Winograd's products: how far they may be from sums of float64."""

import numpy as np
import onnx_ir as ir
import pytest
from native_models import built, each_float_level, model_of, reals, run
from nndeploy_native.session import open_session
from oracle.in_float64 import outputs_in_float64

from nndeploy.plugin.interface import Artifact, OpenOptions

MOST = 2.5e-7
"""Errors as a part of the largest output and of the square root of the channels, at most: some twice those of a direct
sum. Interpolation at whole numbers is several times as far off."""
CASES = [
    ("whole tiles", (1, 64, 24, 24), 64, "pads=[1,1,1,1]"),
    ("parts of tiles, no padding", (2, 48, 19, 22), 40, "pads=[0,0,0,0]"),
    ("many channels", (1, 256, 14, 14), 128, "pads=[1,1,1,1]"),
    ("padding on two sides", (1, 96, 16, 17), 64, "pads=[1,0,0,1]"),
]


def artifact_of(shape: tuple[int, ...], channels: int, pads: str) -> tuple[ir.Model, Artifact]:
    sizes = ",".join(map(str, shape))
    text = f"g (float[{sizes}] x) => (float[n,o,p,q] y) {{ y = Conv<{pads}>(x, w) }}"
    model = model_of(text, {"w": reals(channels, shape[1], 3, 3, seed=1)})
    return model, built(model)


@pytest.mark.parametrize(("shape", "channels", "pads"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@each_float_level
def test_errors_are_within_some_twice_those_of_a_direct_sum(
    level: str, shape: tuple[int, ...], channels: int, pads: str
) -> None:
    model, artifact = artifact_of(shape, channels, pads)
    x = reals(*shape, seed=2)
    wanted = outputs_in_float64(ir.to_proto(model), {"x": x})["y"]
    found = run(artifact, {"x": x}, level)["y"]
    assert np.abs(found - wanted).max() <= MOST * np.sqrt(shape[1]) * np.abs(wanted).max()


@pytest.mark.parametrize(("shape", "channels", "pads"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_these_are_done_so(shape: tuple[int, ...], channels: int, pads: str) -> None:
    _, artifact = artifact_of(shape, channels, pads)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = open_session(files, artifact.metadata, OpenOptions(threads=1))
    assert "by Winograd" in str(session.steps_here({"x": shape}))
    session.close()
