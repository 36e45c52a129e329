# SPDX-License-Identifier: Apache-2.0
"""Products and pointwise convolutions of float32 by the bfloat16 tiles of AMX, each float cut in three, however small
they are: by its instructions where the processor has them, and by a model of them (tests/unit/kernels/amx_model.h).
"""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from exact_networks import exact_network
from kernel_library import ALONE, AMX, AMX_MODEL, HOST, LEVELS_HERE, on_each, told_steps
from native_models import Array, built, kernels_of, model_of, run
from nndeploy_native.plan import PLAN_FILE, WEIGHTS_FILE
from oracle.cases import wide
from oracle.compare import difference
from oracle.in_float64 import outputs_in_float64
from random_networks import network_of, wrong_numbers
from test_native_bits import nbits_model, unpacked

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact

LEVEL = AMX.split()[0]
pytestmark = pytest.mark.skipif(LEVEL not in LEVELS_HERE, reason=f"this machine lacks {LEVEL}")

has_amx = {"amx_tile", "amx_bf16"}.issubset(HOST.cpu_features)
every_amx = on_each([AMX_MODEL, AMX] if has_amx else [AMX_MODEL])
every_way = on_each([ALONE, AMX_MODEL, AMX] if has_amx else [ALONE, AMX_MODEL])
needs_amx = pytest.mark.skipif(not has_amx, reason="this machine lacks AMX for bfloat16")

SEEDS = range(12)
NETWORKS = {
    "rows": ((70, 100), "y = MatMul(x, w)", {"w": (100, 90)}),
    "a row": ((1, 300), "y = MatMul(x, w)", {"w": (300, 40)}),
    "some of a panel": ((3, 31), "a = MatMul(x, w) b = Add(a, c) y = Relu(b)", {"w": (31, 7), "c": (7,)}),
    "a column": ((50, 64), "y = MatMul(x, w)", {"w": (64, 1)}),
    "half a panel at the end": ((33, 40), "y = MatMul(x, w)", {"w": (40, 48)}),
    "a number of k": ((40, 1), "y = MatMul(x, w)", {"w": (1, 50)}),
    "one k more than a block": ((41, 33), "y = MatMul(x, w)", {"w": (33, 70)}),
    "parts of k": ((45, 5000), "y = MatMul(x, w)", {"w": (5000, 70)}),
    "many panels": ((64, 65), "y = MatMul(x, w)", {"w": (65, 700)}),
    "many groups of rows": ((900, 257), "y = MatMul(x, w)", {"w": (257, 96)}),
    "a matrix for each": ((3, 5, 64), "y = MatMul(x, w)", {"w": (3, 64, 33)}),
    "transposed": ((80, 33), "y = Gemm<transA=1,transB=1>(x, w, c)", {"w": (48, 80), "c": (48,)}),
    "residual of rows": ((20, 64), "a = MatMul(x, w) y = Add(a, x)", {"w": (64, 64)}),
    "residual of rows, parts of k": ((44, 3100), "a = MatMul(x, w) b = MatMul(x, v) y = Add(a, b)",
                                     {"w": (3100, 40), "v": (3100, 40)}),
    "two values": ((3, 45, 70), "z = Transpose<perm=[0,2,1]>(x) y = MatMul(x, z)", {}),
    "two values, the first transposed": ((2, 45, 70), "z = Transpose<perm=[0,2,1]>(x) y = MatMul(z, x)", {}),
    "two values as they lie": ((2, 60, 60), "y = MatMul(x, x)", {}),
    "activation": ((50, 40), "a = MatMul(x, w) y = Clip(a, low, high)", {"w": (40, 55)}),
    "pixels": ((2, 40, 9, 7), "y = Conv(x, w)", {"w": (50, 40, 1, 1)}),
    "few pixels": ((1, 16, 3, 2), "y = Conv(x, w)", {"w": (16, 16, 1, 1)}),
    "three vectors in the last panel": ((1, 33, 6, 6), "y = Conv(x, w)", {"w": (80, 33, 1, 1)}),
    "three vectors, many pixels": ((1, 72, 12, 11), "y = Conv(x, w)", {"w": (48, 72, 1, 1)}),
    "half a vector": ((1, 24, 11, 13), "y = Conv(x, w)", {"w": (24, 24, 1, 1)}),
    "many channels": ((1, 1040, 4, 5), "y = Conv(x, w)", {"w": (100, 1040, 1, 1)}),
    "residual and bias of pixels": (
        (1, 48, 6, 11), "a = Conv(x, w, b) y = Add(a, x)", {"w": (48, 48, 1, 1), "b": (48,)},
    ),
    "activation of pixels": ((1, 20, 8, 8), "a = Conv(x, w) y = Clip(a, low, high)", {"w": (30, 20, 1, 1)}),
    "gathered": ((1, 64, 7, 6), "y = Conv<pads=[1,1,1,1]>(x, w)", {"w": (160, 64, 3, 3)}),
    "pair": ((1, 40, 12, 14), "d = Conv<group=40,pads=[1,1,1,1]>(x, w) y = Conv(d, v)",
             {"w": (40, 1, 3, 3), "v": (72, 40, 1, 1)}),
    "stem and pair": ((1, 3, 20, 22),
                      "a = Conv<pads=[1,1,1,1]>(x, u) d = Conv<group=32,pads=[1,1,1,1]>(a, w) y = Conv(d, v)",
                      {"u": (32, 3, 3, 3), "w": (32, 1, 3, 3), "v": (64, 32, 1, 1)}),
    "inverted residual": ((1, 24, 14, 13),
                          "e = Conv(x, u) d = Conv<group=96,pads=[1,1,1,1]>(e, w) p = Conv(d, v) y = Add(p, x)",
                          {"u": (96, 24, 1, 1), "w": (96, 1, 3, 3), "v": (24, 96, 1, 1)}),
}  # fmt: skip
"""The shape of x, what makes y of x, and the shapes of weights, of -1, 0 and 1: sums are exact."""
WITHOUT_TILES = ("a column", "inverted residual")


def network(name: str) -> tuple[ir.Model, Artifact, dict[str, Array]]:
    """Returns a network, its plan, and inputs."""
    return exact_network(len(name), *NETWORKS[name])


def product(x: Array, w: Array) -> Artifact:
    """Returns the product of an input by constant weights."""
    return built(model_of(f"g (float[{len(x)},{len(w)}] x) => (float[n,m] y) {{ y = MatMul(x, w) }}", {"w": w}))


def product_of_values(x: Array, w: Array) -> Artifact:
    """Returns the product of two inputs."""
    given = f"float[{len(x)},{len(w)}] x, float[{len(w)},{w.shape[1]}] w"
    return built(model_of(f"g ({given}) => (float[n,m] y) {{ y = MatMul(x, w) }}"))


def multiplied(x: Array, w: Array, level: str, *, is_constant: bool = True, threads: int = 1) -> Array:
    """Returns x w on a level, w being a constant or an input."""
    if is_constant:
        return run(product(x, w), {"x": x}, level, threads=threads)["y"]
    return run(product_of_values(x, w), {"x": x, "w": w}, level, threads=threads)["y"]


@pytest.mark.parametrize("name", NETWORKS)
@every_way
def test_sums_are_exact(level: str, name: str) -> None:
    model, artifact, inputs = network(name)
    told = told_steps(level, (artifact.files[PLAN_FILE], artifact.files[WEIGHTS_FILE]), list(inputs.values()))
    assert any("by amx" in step for step in told) == (level != ALONE and name not in WITHOUT_TILES), told
    wanted = outputs_in_float64(ir.to_proto(model), inputs)["y"]
    assert 0 < np.abs(wanted).max() < 1 << 20
    for threads, l2_bytes in ((1, 0), (2, 0), (1, 20_000), (2, 200_000)):
        found = run(artifact, inputs, level, threads=threads, l2_bytes=l2_bytes)["y"]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", NETWORKS)
@every_amx
def test_bits_are_those_of_any_number_of_threads(level: str, name: str) -> None:
    _, artifact, inputs = network(name)
    inputs = {"x": np.random.default_rng(1).standard_normal(inputs["x"].shape, np.float32)}
    wanted = run(artifact, inputs, level)["y"]
    for threads in (2, 3):
        np.testing.assert_array_equal(run(artifact, inputs, level, threads=threads)["y"], wanted)


@every_way
def test_weights_of_four_bits(level: str) -> None:
    """More rows than are multiplied by bits as they are: the weights become floats, panel by panel."""
    numbers, (rows, k, n, block) = np.random.default_rng(4), (70, 96, 75, 32)
    q = numbers.integers(0, 256, (n, k // block, block // 2)).astype(np.uint8)
    constants = {"q": q, "s": np.full((n, k // block), 0.5, np.float32)}
    attributes = {"K": k, "N": n, "bits": 4, "block_size": block}
    artifact = built(nbits_model(rows, attributes, constants, "x, q, s"))
    assert kernels_of(artifact) == ["bits_connected"]
    x = numbers.choice([-1, 0, 1], (rows, k)).astype(np.float32)
    wanted = x @ ((unpacked(q.reshape(n, -1), 4, k).astype(np.float64) - 8) / 2).T
    for threads in (1, 2):
        np.testing.assert_array_equal(run(artifact, {"x": x}, level, threads=threads)["y"], wanted)


@pytest.mark.parametrize("operator", ["Gemm", "MatMul"])
@every_amx
def test_odd_and_large_sizes(level: str, operator: str) -> None:
    for number, case in enumerate(one for one in wide.cases() if one.operator == operator):
        model = ir.from_proto(onnx.shape_inference.infer_shapes(case.model, data_prop=True))
        optimise(model, {})
        found = run(built(model), case.inputs, level, threads=1 + number % 2)
        assert difference(case.wanted or {}, found, steps=case.steps) == "", case.name


@every_amx
def test_random_networks_touch_their_own_memory_and_are_right(level: str) -> None:
    wrong = []
    for seed in SEEDS:
        try:
            wrong += wrong_numbers(network_of(seed), level)
        except BuildRefusedError:
            continue
    assert wrong == []


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("inner", [64, 768, 3072])
@every_amx
def test_errors_are_at_most_those_of_multiply_adds(level: str, inner: int, sign: int, is_constant: bool) -> None:
    """Numbers of one sign, and of both; one number that is added in the wrong order, or left out, would show."""
    numbers = np.random.default_rng(inner)
    x, w = (numbers.uniform(min(0, sign), 1, size).astype(np.float32) for size in ((96, inner), (inner, 100)))
    truth = x.astype(np.float64) @ w.astype(np.float64)
    ours, theirs = (
        np.abs(multiplied(x, w, one, is_constant=is_constant) - truth) / (np.abs(x) @ np.abs(w))
        for one in (level, ALONE)
    )
    assert 0 < ours.max() <= 1.1 * theirs.max()
    assert np.sqrt(np.mean(ours**2)) <= 1.1 * np.sqrt(np.mean(theirs**2))
    assert not np.array_equal(ours, theirs), "tiles round in another order"


@every_amx
def test_single_products_err_by_few_roundings_of_either_sign(level: str) -> None:
    numbers = np.random.default_rng(5)
    x, w = (numbers.uniform(1, 2, size).astype(np.float32) for size in ((300, 1), (1, 300)))
    errors = multiplied(x, w, level) / (x.astype(np.float64) @ w.astype(np.float64)) - 1
    assert np.abs(errors).max() < 2**-22
    assert abs(errors.mean()) < 2**-27


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("where", ["x", "w", "both"])
@every_amx
def test_what_is_not_finite_comes_out_as_without_tiles(level: str, where: str, is_constant: bool) -> None:
    """In a row, in a column, at the ends of matrices, in the last part of k, and in one of several panels."""
    numbers = np.random.default_rng(len(where))
    for rows, inner, columns in ((70, 90, 130), (45, 3000, 70), (1, 33, 40)):
        x, w = (numbers.standard_normal(size, np.float32) for size in ((rows, inner), (inner, columns)))
        for number, odd in enumerate((np.inf, -np.inf, np.nan)):
            if where != "w":
                x[(number * 7 - 1) % rows, (number * 31 - 1) % inner] = odd
            if where != "x":
                w[(number * 17 - 1) % inner, (number * 33 + 9) % columns] = odd
        found, wanted = (multiplied(x, w, one, is_constant=is_constant, threads=2) for one in (level, ALONE))
        assert not np.isfinite(wanted).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("where", ["x", "w", "v"])
@pytest.mark.parametrize("name", ["pixels", "pair"])
@every_amx
def test_pixels_that_are_not_finite_come_out_as_without_tiles(level: str, name: str, where: str) -> None:
    shape, body, weights = NETWORKS[name]
    numbers = np.random.default_rng(len(where))
    drawn = {key: numbers.standard_normal(size, np.float32) for key, size in {"x": shape, **weights}.items()}
    changed = drawn[where if where in drawn else "w"].reshape(-1)
    changed[[7, -5]] = np.inf, np.nan
    x = drawn.pop("x")
    artifact = built(model_of(f"g (float[{','.join(map(str, shape))}] x) => (float[h,i,j,k] y) {{ {body} }}", drawn))
    found, wanted = (run(artifact, {"x": x}, one, threads=2)["y"] for one in (level, ALONE))
    assert not np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("size", "other"), [(3e38, 1e-3), (1e-30, 1.0), (1e-18, 1e-15), (3e38, 1e-38)])
@every_amx
def test_huge_and_tiny_numbers(level: str, size: float, other: float) -> None:
    """Tiles take what is below the least normal number for zero: of a third, and of a product."""
    numbers = np.random.default_rng(3)
    x = (numbers.uniform(0.5, 1, (60, 70)) * size).astype(np.float32)
    w = (numbers.uniform(0.5, 1, (70, 50)) * other).astype(np.float32)
    truth = x.astype(np.float64) @ w.astype(np.float64)
    lost = 70 * 2.0**-125 * (float(x.max()) + float(w.max()) + 8)
    for left, right, wanted in ((x, w, truth), (w.T, x.T, truth.T)):
        np.testing.assert_allclose(multiplied(left, right, level), wanted, rtol=1e-6, atol=lost)


@every_amx
def test_sums_beyond_the_largest_number_are_infinite(level: str) -> None:
    x, w = np.full((50, 40), 3e38, np.float32), np.ones((40, 60), np.float32)
    for sign in (1, -1):
        np.testing.assert_array_equal(multiplied(x * np.float32(sign), w, level), np.full((50, 60), sign * np.inf))


@needs_amx
def test_tiles_are_taken_where_they_are_wanted() -> None:
    """On the level as it is: of few rows by nobody, and by nobody where the user does without."""
    source = """
import numpy as np
from native_models import run
from kernel_library import ALONE
from test_native_amx_thirds import multiplied
for rows in (8, 64):
    numbers = np.random.default_rng(rows)
    x, w = (numbers.standard_normal(size, np.float32) for size in ((rows, 300), (300, 64)))
    print(not np.array_equal(*(multiplied(x, w, level) for level in ("x86-64-v4", ALONE))))
"""
    for without, wanted in (("", ["False", "True"]), ("amx", ["False", "False"])):
        environment = {**os.environ, "NNDEPLOY_KERNELS_WITHOUT": without, "PYTHONPATH": os.pathsep.join(sys.path)}
        called = [sys.executable, "-c", source]
        done = subprocess.run(called, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == wanted
