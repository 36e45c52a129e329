# SPDX-License-Identifier: Apache-2.0
"""Plans that are made here compute on aarch64, under qemu where this machine is none: `make arm64-root` fetches it."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from arm64_root import before_arm64_program
from c_library import zig_missing
from kernel_library import DTYPE_NAMES
from native_models import Array, built, model_of, reals, run
from nndeploy_kernels.build import LIBRARIES, SOURCES, build
from nndeploy_kernels.levels import LEVELS
from nndeploy_native.plan import DOCUMENT_FILE, DTYPES, PLAN_FILE, WEIGHTS_FILE, document_from_json
from oracle.cases import wide
from oracle.cases.case import Case
from oracle.compare import difference
from random_networks import network_of

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact

pytestmark = pytest.mark.slow

AARCH64 = next(level for level in LEVELS if level.name == "aarch64")
SEEDS = range(40, 80)
OF_BYTES = [
    case for case in wide.cases() if case.operator in ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
]
WAYS = {"plain": "cortex-a53", "dotprod": "neoverse-n1", "i8mm": "max"}
"""How bytes are multiplied, and a processor of qemu's that has no better way."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns plan_driver.c, built for aarch64."""
    if reason := zig_missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("driver")
    library = build(AARCH64)
    source = Path(__file__).with_name("plan_driver.c")
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", AARCH64.zig_target, "-O1", "-I", str(SOURCES), str(source),
        str(library), f"-Wl,-rpath,{LIBRARIES}", "-o", str(folder / "driver"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "driver"


@pytest.fixture
def driver(program: Path) -> list[str]:
    """Returns the command that runs it; skips where nothing does."""
    return [*before_arm64_program(), str(program)]


def test_random_networks_give_the_same_there(driver: list[str], tmp_path: Path) -> None:
    checked = 0
    for seed in SEEDS:
        network = network_of(seed)
        try:
            artifact = built(network.model, network.ranges)
        except BuildRefusedError:
            continue
        if PLAN_FILE not in artifact.files:
            continue  # several plans around a choice: the driver runs one
        inputs, wanted = network.samples[-1]
        for name, found in _run(driver, artifact, inputs, {k: v.shape for k, v in wanted.items()}, tmp_path).items():
            scale = max(1.0, float(np.abs(wanted[name].astype(np.float64)).max(initial=0)))
            np.testing.assert_allclose(
                found.astype(np.float64), wanted[name], rtol=0, atol=2e-4 * scale, err_msg=network.name
            )
        checked += 1
    assert checked > len(SEEDS) * 0.6


@pytest.mark.parametrize("way", WAYS)
def test_bytes_are_multiplied_in_the_best_way_of_the_processor(way: str, program: Path, tmp_path: Path) -> None:
    driver, ways = [*before_arm64_program(WAYS[way]), str(program)], set[str]()
    for number, case in enumerate(OF_BYTES):
        found = _run_case(driver, case, tmp_path, threads=1 + number % 2)
        assert difference(case.wanted or {}, found, steps=case.steps) == "", case.name
        ways |= _ways(tmp_path)
    assert ways == {way}


def test_ways_that_the_user_does_without_are_not_taken(
    driver: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for without, way in {"": "i8mm", "i8mm": "dotprod", "dotprod,i8mm": "plain", "dotprod": "i8mm"}.items():
        monkeypatch.setenv("NNDEPLOY_KERNELS_WITHOUT", without)
        _run_case(driver, OF_BYTES[0], tmp_path)
        assert _ways(tmp_path) == {way}


def test_conversions_and_functions_are_the_same_there(driver: list[str], tmp_path: Path) -> None:
    """What a type cannot hold is the same on every machine; so are large angles."""
    text = """g (float[9] x) => (int32[9] i, int64[9] l, uint8[9] u, int8[9] b, bool[9] t, float[9] s,
        float[9] p, float[9] m) <float e = {1.5}> { i = Cast<to=6>(x) l = Cast<to=7>(x) u = Cast<to=2>(x)
        b = Cast<to=3>(x) t = Cast<to=9>(x) s = Sin(x) p = Pow(x, e) m = Mod<fmod=1>(x, e) }"""
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -1e20, 300.7, -1.9, 0, 1e37], np.float32)
    names = dict.fromkeys("ilubtspm", (9,))
    found = _run(driver, built(model_of(text)), {"x": x}, names, tmp_path)
    here = run(built(model_of(text)), {"x": x})
    low = [-(2**31), -(2**63)]
    np.testing.assert_array_equal(found["i"], [low[0]] * 5 + [300, -1, 0, low[0]])
    np.testing.assert_array_equal(found["l"], [low[1]] * 3 + [3 * 10**9, low[1], 300, -1, 0, low[1]])
    for name in names:
        np.testing.assert_allclose(found[name], here[name], rtol=3e-7, err_msg=name)


def test_two_threads_give_the_same_bytes_as_one_there(driver: list[str], tmp_path: Path) -> None:
    text = """g (float[1,3,37,41] x) => (float[1,10,1,1] y) { a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, u)
        b = HardSwish(a) c = Conv<pads=[1,1,1,1]>(b, v) y = GlobalAveragePool(c) }"""
    artifact = built(model_of(text, {"u": reals(19, 3, 3, 3), "v": 0.1 * reals(10, 19, 3, 3, seed=1)}))
    x = {"x": reals(1, 3, 37, 41, seed=9)}
    alone, shared = (_run(driver, artifact, x, {"y": (1, 10, 1, 1)}, tmp_path, threads)["y"] for threads in (1, 2))
    assert np.isfinite(alone).all()
    np.testing.assert_array_equal(alone, shared)


def _run_case(driver: list[str], case: Case, folder: Path, threads: int = 2) -> dict[str, Array]:
    model = ir.from_proto(onnx.shape_inference.infer_shapes(case.model, data_prop=True))
    optimise(model, {})
    shapes = {name: array.shape for name, array in (case.wanted or {}).items()}
    return _run(driver, built(model), case.inputs, shapes, folder, threads)


def _run(
    driver: list[str], artifact: Artifact, inputs: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]],
    folder: Path, threads: int = 2,
) -> dict[str, Array]:  # fmt: skip
    document = document_from_json(artifact.files[DOCUMENT_FILE])
    names = [one.name for one in document.inputs]
    arrays = [np.ascontiguousarray(inputs[name]) for name in names]
    symbols = [one.value(names, [array.shape for array in arrays]) for one in document.symbols]
    sizes = [number for one in arrays for number in (DTYPE_NAMES.index(one.dtype.name), one.ndim, *one.shape)]
    plan, weights = artifact.files[PLAN_FILE], artifact.files[WEIGHTS_FILE]
    data = [plan, weights, b"".join(_whole_words(array.tobytes()) for array in arrays)]
    words = [*map(len, data), threads, len(symbols), *symbols, len(sizes), *sizes]
    (folder / "request").write_bytes(np.array(words, np.int64).tobytes() + b"".join(map(_whole_words, data)))
    command = [*driver, "request", "result"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command[-3]} ended with {done.returncode}: {done.stderr[:1000]}"
    (folder / "steps").write_text(done.stdout)
    made, found, at = (folder / "result").read_bytes(), {}, 0
    for one in document.outputs:
        dtype, shape = np.dtype(DTYPES[one.element]), shapes[one.name]
        end = at + int(np.prod(shape)) * dtype.itemsize
        found[one.name] = np.frombuffer(made[at:end], dtype).reshape(shape)
        at = end
    assert at == len(made)
    return found


def _ways(folder: Path) -> set[str]:
    """Returns how the steps of the last plan multiply bytes."""
    return set(re.findall(r" by (\w+)", (folder / "steps").read_text()))


def _whole_words(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
