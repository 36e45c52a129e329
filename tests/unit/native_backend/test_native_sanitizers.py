# SPDX-License-Identifier: Apache-2.0
"""The kernels under Clang's sanitizers: nothing outside an array is touched, nothing undefined is done.

AddressSanitizer: ziglang instruments, gcc's libasan is the runtime (both speak version 8 of the interface). Each array
is an allocation of its own (driver.c). Undefined behaviour traps: no runtime is needed. An absent residual is a null
pointer that offsets are added to but that nobody reads, which one flag allows.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from native_cases import KINDS, Draw
from native_models import needs_zig, runnable_isas
from native_programs import DRIVER, Program, run_command, run_driver, zig
from nndeploy_native.isa import Isa

pytestmark = pytest.mark.slow
HERE = [*runnable_isas(), *runnable_isas("bf16")]
ADDRESS = ("-O1", "-g", "-fsanitize=address", "-fno-sanitize=undefined")
UNDEFINED = ("-O0", "-fsanitize=undefined", "-fsanitize-trap=undefined", "-fno-delete-null-pointer-checks")
REPLACED = ("-O3", "-fno-sanitize=all", "-g0", "-s", "-Wl,--build-id=none")


@pytest.fixture(scope="module")
def gcc(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns gcc; skips where it cannot link AddressSanitizer."""
    found, folder = shutil.which("gcc"), tmp_path_factory.mktemp("asan")
    if found is None:
        pytest.skip("no gcc here, whose libasan is AddressSanitizer's runtime")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    tried = subprocess.run([found, "-fsanitize=address", "empty.c"], cwd=folder, capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("gcc has no libasan here")
    return found


def _program(isa: Isa, seed: int) -> Program:
    """Returns a step of each kind; other seeds take other turns of kernels, strides, ends and capacities."""
    draw = Draw(isa, seed)
    return Program([make(draw, seed + number) for number, make in enumerate(KINDS.values())])


@pytest.mark.parametrize("isa", HERE, ids=lambda isa: isa.name)
def test_nothing_outside_an_array_is_touched(isa: Isa, gcc: str, tmp_path: Path) -> None:
    needs_zig()
    program = _program(isa, 3)
    (tmp_path / "kernels.c").write_text(program.source)
    compiled = zig(isa, *ADDRESS, "-c", "kernels.c", "-o", "kernels.o", without=(*REPLACED, "-shared"))
    run_command(compiled, tmp_path)
    run_command([gcc, "-g", *ADDRESS[2:3], "-shared", "kernels.o", "-o", "kernels.so", "-pthread"], tmp_path)
    run_command([gcc, "-g", *ADDRESS[2:3], str(DRIVER), "-o", "driver", "-ldl"], tmp_path)
    for workers in (1, 3):
        program.check(run_driver(["./driver"], program, tmp_path, workers))


@pytest.mark.parametrize("isa", runnable_isas()[-1:], ids=lambda isa: isa.name)
def test_nothing_undefined_is_done(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    program = _program(isa, 4)
    (tmp_path / "kernels.c").write_text(program.source)
    run_command(zig(isa, *UNDEFINED, "kernels.c", "-o", "kernels.so", without=REPLACED), tmp_path)
    run_command(zig(isa, str(DRIVER), "-o", "driver", "-ldl", without=("-shared",)), tmp_path)
    program.check(run_driver(["./driver"], program, tmp_path, 3))
