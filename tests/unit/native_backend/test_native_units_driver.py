# SPDX-License-Identifier: Apache-2.0
"""Units in C alone (units_driver.c, rows_driver.c): under sanitizers, for aarch64, and their headers."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from native_models import needs_zig, runnable_isas
from native_programs import run_command, zig
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.library import HEADERS
from nndeploy_native.units import unit_list
from nndeploy_native.units.table import GOES_ON, GROWS, MAX_ROWS, Range, Tail
from nndeploy_native.units.unit_list import ACTIVATIONS, DOT_COLUMNS, NAMES, THIN_K, limits_of

DRIVERS = ("units_driver.c", "rows_driver.c")
EACH_DRIVER = pytest.mark.parametrize("driver", [str(Path(__file__).with_name(name)) for name in DRIVERS], ids=DRIVERS)
FP32 = [isa for isa in ISAS if isa.precision == "fp32"]
NOT_SHARED = ("-shared", "-O3", "-fno-sanitize=all", "-g0", "-s", "-Wl,--build-id=none")
LIBC = Path("/usr/aarch64-linux-gnu")


def _c_name(name: str) -> str:
    return f"NND_{name.upper().replace('-', '_')}"


@pytest.mark.parametrize("isa", FP32, ids=lambda isa: isa.name)
def test_the_lists_in_python_are_those_of_the_headers(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    pairs = {_c_name(name): number for number, name in NAMES.items()}
    pairs |= {_c_name(kind.name): kind for kind in Range} | {"NND_TABLE_ROWS": MAX_ROWS, "NND_GOES_ON": GOES_ON}
    pairs |= {_c_name(mark.name): mark for mark in Tail if mark != Tail.NONE} | {"NND_GROWS": GROWS}
    pairs["NND_ACTIVATIONS"] = len(ACTIVATIONS)
    pairs |= {_c_name(name): number for number, name in enumerate(ACTIVATIONS) if number}
    asserts = [f'_Static_assert({name} == {int(value)}, "{name}");' for name, value in pairs.items()]
    checks = [
        f"if (nnd_most_rows({unit}, {columns}) != {limits_of(unit, columns, isa).rows}) return {unit};"
        for unit in NAMES
        if unit not in unit_list.PACKING
        for columns in ((1, 6) if unit == unit_list.DOT else (40,))
    ] + [f"if (NND_THIN_K != {THIN_K} || NND_DOT_COLUMNS != {DOT_COLUMNS}) return 1;"]
    source = "\n".join(('#include "units/library.h"', *asserts, "int main(void) {", *checks, "return 0; }\n"))
    (tmp_path / "lists.c").write_text(source)
    run_command(zig(isa, "lists.c", "-o", "lists", without=("-shared",)), tmp_path)
    if isa in runnable_isas():
        run_command(["./lists"], tmp_path)


@pytest.mark.parametrize("isa", FP32, ids=lambda isa: isa.name)
def test_every_header_of_units_compiles_alone(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    names = sorted(path.name for path in (HEADERS / "units").glob("*.h"))
    for name in names:
        (tmp_path / f"{name}.c").write_text(f'#include "units/{name}"\n')
    assert len(names) > 5
    run_command(zig(isa, *(f"{name}.c" for name in names if name != "library.h"), "-o", "all.so"), tmp_path)


@EACH_DRIVER
@pytest.mark.parametrize("isa", runnable_isas(), ids=lambda isa: isa.name)
def test_nothing_outside_an_array_is_touched(driver: str, isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc here, whose libasan is AddressSanitizer's runtime")
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    if subprocess.run(
        [gcc, "-fsanitize=address", "empty.c"], cwd=tmp_path, capture_output=True, check=False
    ).returncode:
        pytest.skip("gcc has no libasan here")
    address = ("-O0", "-g", "-fsanitize=address", "-fno-sanitize=undefined")
    run_command(zig(isa, *address, "-c", driver, "-o", "driver.o", without=NOT_SHARED), tmp_path)
    run_command([gcc, "-fsanitize=address", "driver.o", "-o", "driver", "-pthread", "-lm"], tmp_path)
    run_command(["./driver"], tmp_path)


@EACH_DRIVER
@pytest.mark.parametrize("isa", runnable_isas()[-1:], ids=lambda isa: isa.name)
def test_nothing_undefined_is_done(driver: str, isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    undefined = ("-O0", "-fsanitize=undefined", "-fsanitize-trap=undefined", "-fno-delete-null-pointer-checks")
    run_command(zig(isa, *undefined, driver, "-lm", "-o", "driver", without=NOT_SHARED), tmp_path)
    run_command(["./driver"], tmp_path)


@EACH_DRIVER
def test_aarch64_gives_the_same_numbers(driver: str, tmp_path: Path) -> None:
    needs_zig()
    before = []
    if platform.machine() != "aarch64":
        found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
        if found is None or not LIBC.exists():
            pytest.skip("no qemu-aarch64 with an aarch64 libc (Debian: qemu-user-static, libc6-arm64-cross)")
        before = [found, "-L", str(LIBC)]
    isa = next(isa for isa in ISAS if isa.name == "aarch64")
    run_command(zig(isa, driver, "-lm", "-o", "driver", without=("-shared",)), tmp_path)
    run_command([*before, "./driver"], tmp_path)
