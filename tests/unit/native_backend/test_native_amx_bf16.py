# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products of bfloat16 by the tiles of AMX, however small they are: by its instructions where the
processor has them, and by a model of them in C, which ends where a processor would fault
(tests/unit/kernels/amx_model.h).
"""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from exact_networks import exact_network
from kernel_library import BF16_ALONE, BF16_AMX, BF16_AMX_MODEL, HOST, LEVELS_HERE, on_each, told_steps
from native_models import Array, built, kernels_of, model_of, run
from nndeploy_native.plan import PLAN_FILE, WEIGHTS_FILE
from oracle.cases import wide
from oracle.compare import difference
from oracle.in_float64 import outputs_in_float64
from random_networks import network_of, wrong_numbers
from test_native_specification import BF16_STEPS

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact

LEVEL = BF16_AMX.split()[0]
pytestmark = pytest.mark.skipif(LEVEL not in LEVELS_HERE, reason=f"this machine lacks {LEVEL}")

has_amx = {"amx_tile", "amx_bf16"}.issubset(HOST.cpu_features)
every_amx = on_each([BF16_AMX_MODEL, BF16_AMX] if has_amx else [BF16_AMX_MODEL])
every_way = on_each([BF16_ALONE, BF16_AMX_MODEL, BF16_AMX] if has_amx else [BF16_ALONE, BF16_AMX_MODEL])
needs_amx = pytest.mark.skipif(not has_amx, reason="this machine lacks AMX for bfloat16")

SEEDS = range(12)
DENSE, PAIR, TRIPLE, PRODUCT = "convolution", "separable", "inverted_residual", "fully_connected"
NETWORKS = {
    "pixels side by side": ((1, 40, 9, 7), DENSE, "y = Conv(x, w)", {"w": (50, 40, 1, 1)}),
    "channels of a block, one pair of strips": ((2, 16, 5, 5), DENSE, "y = Conv(x, w)", {"w": (16, 16, 1, 1)}),
    "three vectors in the last panel": ((1, 33, 6, 6), DENSE, "y = Conv(x, w)", {"w": (80, 33, 1, 1)}),
    "more panels than are multiplied at once": ((1, 1040, 4, 5), DENSE, "y = Conv(x, w)", {"w": (500, 1040, 1, 1)}),
    "residual and bias": ((1, 48, 6, 11), DENSE, "a = Conv(x, w, b) y = Add(a, x)", {"w": (48, 48, 1, 1), "b": (48,)}),
    "activation": ((1, 20, 8, 8), DENSE, "a = Conv(x, w) y = Clip(a, low, high)", {"w": (30, 20, 1, 1)}),
    "windows": ((2, 24, 9, 35), DENSE, "y = Conv<pads=[1,1,1,1]>(x, w)", {"w": (40, 24, 3, 3)}),
    "every second pixel": (
        (1, 36, 15, 22), DENSE, "y = Conv<strides=[2,2],pads=[1,1,1,1]>(x, w)", {"w": (33, 36, 3, 3)},
    ),
    "taps apart": ((1, 17, 12, 20), DENSE, "y = Conv<dilations=[2,3],pads=[2,3,1,4]>(x, w)", {"w": (16, 17, 3, 3)}),
    "no zeros around": ((1, 32, 11, 40), DENSE, "y = Conv(x, w)", {"w": (64, 32, 2, 5)}),
    "gathered": ((1, 64, 7, 6), DENSE, "y = Conv<pads=[1,1,1,1]>(x, w)", {"w": (160, 64, 3, 3)}),
    "pair": (
        (1, 40, 12, 14), PAIR, "d = Conv<group=40,pads=[1,1,1,1]>(x, w) y = Conv(d, v)",
        {"w": (40, 1, 3, 3), "v": (72, 40, 1, 1)},
    ),
    "triple": (
        (1, 24, 14, 13), TRIPLE,
        "e = Conv(x, u) d = Conv<group=96,pads=[1,1,1,1]>(e, w) p = Conv(d, v) y = Add(p, x)",
        {"u": (96, 24, 1, 1), "w": (96, 1, 3, 3), "v": (24, 96, 1, 1)},
    ),
    "rows": ((70, 100), PRODUCT, "y = MatMul(x, w)", {"w": (100, 90)}),
    "a row": ((1, 300), PRODUCT, "y = MatMul(x, w)", {"w": (300, 40)}),
    "some of a panel": ((3, 31), PRODUCT, "a = MatMul(x, w) b = Add(a, c) y = Relu(b)", {"w": (31, 7), "c": (7,)}),
    "a matrix for each": ((3, 5, 64), PRODUCT, "y = MatMul(x, w)", {"w": (3, 64, 33)}),
    "transposed": ((80, 33), PRODUCT, "y = Gemm<transA=1,transB=1>(x, w, c)", {"w": (48, 80), "c": (48,)}),
    "residual of rows": ((20, 64), PRODUCT, "a = MatMul(x, w) y = Add(a, x)", {"w": (64, 64)}),
}  # fmt: skip
"""The shape of x, the kernel, what makes y of x, and the shapes of weights, of -1, 0 and 1: sums are exact."""


def network(name: str) -> tuple[ir.Model, Artifact, dict[str, Array]]:
    """Returns a network, its plan, and inputs."""
    shape, kernel, body, weights = NETWORKS[name]
    model, artifact, inputs = exact_network(len(name), shape, body, weights)
    assert kernel in "".join(kernels_of(artifact)), kernels_of(artifact)
    return model, artifact, inputs


@pytest.mark.parametrize("name", NETWORKS)
@every_way
def test_sums_are_exact(level: str, name: str) -> None:
    model, artifact, inputs = network(name)
    told = told_steps(level, (artifact.files[PLAN_FILE], artifact.files[WEIGHTS_FILE]), list(inputs.values()))
    assert any("by amx" in step for step in told) == (level != BF16_ALONE), told
    wanted = outputs_in_float64(ir.to_proto(model), inputs)["y"]
    assert 3 < np.abs(wanted).max() <= 256
    for threads, buffer_bytes in ((1, 0), (2, 0), (1, 20_000)):
        found = run(artifact, inputs, level, threads=threads, buffer_bytes=buffer_bytes)["y"]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("window", [1, 3])
@every_amx
def test_lanes_behind_the_last_channel_are_left_out(level: str, window: int) -> None:
    """They hold infinity here, which times a weight of zero would be no number."""
    numbers = np.random.default_rng(window)
    x, w = (numbers.choice([-1, 1], size).astype(np.float32) for size in ((1, 42, 9, 12), (24, 42, window, window)))
    constants = {"u": np.eye(42, dtype=np.float32)[:, :, None, None], "w": w}
    model = model_of(
        "g (float[1,42,9,12] x) => (float[n,c,h,w] y) { a = Conv(x, u) r = Reciprocal(a) y = Conv(r, w) }", constants
    )
    found = run(built(model), {"x": x}, level)["y"]
    np.testing.assert_array_equal(found, outputs_in_float64(ir.to_proto(model), {"x": x})["y"])


@pytest.mark.parametrize("name", ["windows", "pair", "triple"])
@every_amx
def test_bits_are_those_of_any_windows_and_threads(level: str, name: str) -> None:
    """Numbers whose sums are rounded: each pixel's in the same order, wherever it stands in a strip."""
    _, artifact, inputs = network(name)
    inputs = {"x": np.random.default_rng(1).standard_normal(inputs["x"].shape, np.float32)}
    wanted = run(artifact, inputs, level)["y"]
    for threads, l2_bytes in ((2, 0), (1, 60_000), (2, 200_000)):
        np.testing.assert_array_equal(run(artifact, inputs, level, threads=threads, l2_bytes=l2_bytes)["y"], wanted)


@pytest.mark.parametrize("operator", ["Conv", "Gemm", "MatMul"])
@every_way
def test_odd_and_large_sizes(level: str, operator: str) -> None:
    for number, case in enumerate(one for one in wide.cases() if one.operator == operator):
        model = ir.from_proto(onnx.shape_inference.infer_shapes(case.model, data_prop=True))
        optimise(model, {})
        found = run(built(model), case.inputs, level, threads=1 + number % 2)
        assert difference(case.wanted or {}, found, steps=case.steps * BF16_STEPS) == "", case.name


@every_way
def test_random_networks_touch_their_own_memory_and_are_right(level: str) -> None:
    wrong = []
    for seed in SEEDS:
        try:
            wrong += wrong_numbers(network_of(seed), level)
        except BuildRefusedError:
            continue
    assert wrong == []


@needs_amx
def test_tiles_are_taken_where_they_are_wanted() -> None:
    """On the level as it is: of few multiplications by nobody, and by nobody where the user does without."""
    source = """
import numpy as np
from native_models import PLAN_FILE, WEIGHTS_FILE, built, model_of
from kernel_library import told_steps
for size in (1, 28):
    shape = (1, 64, size, size)
    artifact = built(model_of(f"g (float[{','.join(map(str, shape))}] x) => (float[n,c,h,w] y) {{ y = Conv(x, w) }}",
                              {"w": np.ones((64, 64, 1, 1), np.float32)}))
    plan = artifact.files[PLAN_FILE], artifact.files[WEIGHTS_FILE]
    print(any("amx" in one for one in told_steps("x86-64-v4-bf16", plan, [np.ones(shape, np.float32)])))
"""
    for without, wanted in (("", ["False", "True"]), ("amx", ["False", "False"])):
        environment = {**os.environ, "NNDEPLOY_KERNELS_WITHOUT": without, "PYTHONPATH": os.pathsep.join(sys.path)}
        called = [sys.executable, "-c", source]
        done = subprocess.run(called, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == wanted
