# SPDX-License-Identifier: Apache-2.0
"""The kernels for aarch64, under qemu where this machine is none: as a library, and out of a bundle made here.

Needs qemu-aarch64 and an aarch64 libc: Debian's qemu-user-static and libc6-arm64-cross.
"""

import platform
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from native_cases import KINDS, Draw
from native_models import Array, needs_zig, reals
from native_programs import DRIVER, Program, request, run_command, run_driver, zig
from nndeploy_native.isa import ISAS
from nndeploy_native.library import library_from_source
from nndeploy_native.plan import CONSTANTS_FILE, LIBRARY_FILE, PLAN_FILE, plan_from_json
from onnx.reference import ReferenceEvaluator

from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command as nndeploy_command

AARCH64 = next(isa for isa in ISAS if isa.name == "aarch64")
LIBC = Path("/usr/aarch64-linux-gnu")
COUNTS = {
    "separable": 8, "planar_separable": 3, "stem": 2, "inverted_residual": 5, "pointwise": 4, "depthwise": 4,
    "dense": 5, "grouped": 3, "transposed": 3, "lstm": 5,
}  # fmt: skip
SEED = 5
MODEL = """<ir_version: 8, opset_import: ["": 17]>
small_mobilenet (float[1,3,37,41] x) => (float[1,10] y) <float zero = {0}, float six = {6}> {
  a1 = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w0)  a2 = Clip(a1, zero, six)
  b1 = Conv<group=19, pads=[1,1,1,1]>(a2, w1)  b2 = Clip(b1, zero, six)  b3 = Conv(b2, w2)
  c1 = Conv(b3, w3)  c2 = HardSwish(c1)
  c3 = Conv<group=66, pads=[2,2,2,2]>(c2, w4)  c4 = Relu(c3)  c5 = Conv(c4, w5)  c6 = Add(c5, b3)
  d1 = GlobalAveragePool(c6)  d2 = Flatten(d1)  y = Gemm<transB=1>(d2, w6)
}"""
SHAPES = ((19, 3, 3, 3), (19, 1, 3, 3), (22, 19, 1, 1), (66, 22, 1, 1), (66, 1, 5, 5), (22, 66, 1, 1), (10, 22))


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Returns the command that runs driver.c, built for aarch64; skips where nothing runs it."""
    needs_zig()
    folder, before = tmp_path_factory.mktemp("driver"), []
    if platform.machine() != "aarch64":
        found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
        if found is None or not LIBC.exists():
            pytest.skip("no qemu-aarch64 with an aarch64 libc (Debian: qemu-user-static, libc6-arm64-cross)")
        before = [found, "-L", str(LIBC)]
    run_command(zig(AARCH64, str(DRIVER), "-o", "driver", "-ldl", without=("-shared",)), folder)
    return [*before, str(folder / "driver")]


@pytest.mark.parametrize("kind", KINDS)
def test_kernel_equals_float64_however_many_threads_share_it(kind: str, driver: list[str], tmp_path: Path) -> None:
    draw = Draw(AARCH64, SEED)
    program = Program([KINDS[kind](draw, turn) for turn in range(COUNTS[kind])])
    library_from_source(program.source, AARCH64, tmp_path)
    alone, three = (run_driver(driver, program, tmp_path, workers) for workers in (1, 3))
    program.check(alone)
    program.check(three)
    for case, call, a, b in zip(program.cases, program.calls, alone, three, strict=True):
        assert call.shared_fields or np.array_equal(a, b), case.name


def test_bundle_made_here_computes_there(driver: list[str], tmp_path: Path) -> None:
    model = onnx.parser.parse_model(MODEL)
    for number, shape in enumerate(SHAPES):
        weights = reals(*shape, seed=number) / np.float32(np.sqrt(np.prod(shape[1:])))
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, f"w{number}"))
    onnx.save(model, tmp_path / "m.onnx")
    bundle = tmp_path / "m.nnd"
    arguments = [tmp_path / "m.onnx", "-o", bundle, "--target", "raspberry-pi-5", "--backends", "native,onnxruntime"]
    assert nndeploy_command(["compile", *map(str, arguments)]) == 0
    files = _native_files(bundle)
    (tmp_path / "kernels.so").write_bytes(files[LIBRARY_FILE])
    x = reals(1, 3, 37, 41, seed=9)
    wanted = ReferenceEvaluator(model).run(None, {"x": x})[0]
    for workers in (1, 2):
        found = _run(driver, files, x, workers, tmp_path)
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def _native_files(path: Path) -> dict[str, bytes]:
    """Returns the files of the one variant for aarch64, which is ours and holds the whole model."""
    with open_bundle(path) as bundle:
        (submodel,) = bundle.manifest.submodels
        native = [one for one in submodel.variants if one.backend == "native"]  # one is for this machine, for the check
        (variant,) = (one for one in native if one.requires["arch"] == "aarch64")
        return {name: bytes(bundle.member(member)) for name, member in variant.files.items()}


def _run(driver: list[str], files: dict[str, bytes], x: Array, workers: int, folder: Path) -> Array:
    """Returns the only output of an artifact of one input."""
    plan = plan_from_json(files[PLAN_FILE])
    (output,) = plan.outputs
    assert [border.shape for border in plan.inputs] == [x.shape]
    constants = np.frombuffer(files[CONSTANTS_FILE], np.uint8)
    size = 4 * int(np.prod(output.shape))
    (folder / "request").write_bytes(
        request(workers, [x.nbytes], [size], constants.nbytes, plan.arena_bytes, plan.scratch_bytes, [x, constants])
    )
    run_command([*driver, "./kernels.so", "request", "result"], folder)
    return np.frombuffer((folder / "result").read_bytes(), np.float32)
