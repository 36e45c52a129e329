# SPDX-License-Identifier: Apache-2.0
"""Builds the driver of plan_mutants.c with AddressSanitizer, writes plans of small networks, and runs it on them.

ziglang instruments, gcc's libasan is the runtime: both speak version 8 of the interface.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nndeploy_kernels.build import FLAGS, SOURCES, TILES, WAYS
from nndeploy_kernels.levels import LEVELS, Level
from nndeploy_native.build import build
from nndeploy_native.plan import PLAN_FILE, WEIGHTS_FILE

from nndeploy.errors import BuildRefusedError

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "native_backend"))

from random_networks import Network, network_of
from seed_models import RANGES, seed_models

DRIVER = Path(__file__).with_name("plan_mutants.c")
_WATCH = ("-O1", "-g", "-fsanitize=address", "-fno-sanitize=undefined", "-DNND_SEPARATE", "-Wno-error")
_INCLUDED = "model/table.c"
"""The driver includes it."""
MOST_WEIGHTS, MOST_INPUTS = 64 << 10, 16 << 10
"""Bytes of a small network: the driver runs a mutant of little memory alone."""


def small_plans(count: int) -> list[tuple[bytes, bytes]]:
    """Returns plans of the seed models and of small random networks, every fifth of open sizes, with their weights."""
    written = [build(model, RANGES).files for model in seed_models()]
    plans, seed = [(files[PLAN_FILE], files[WEIGHTS_FILE]) for files in written], 0
    while len(plans) < len(written) + count:
        network, seed = network_of(seed), seed + 1
        if _input_bytes(network) > MOST_INPUTS * (1 + 15 * bool(network.ranges)):
            continue
        try:
            files = build(network.model, network.ranges).files
        except BuildRefusedError:
            continue
        if len(files[WEIGHTS_FILE]) <= MOST_WEIGHTS:
            plans.append((files[PLAN_FILE], files[WEIGHTS_FILE]))
    return plans


def _input_bytes(network: Network) -> int:
    return min(sum(array.nbytes for array in inputs.values()) for inputs, _ in network.samples)


def sanitizer_missing(folder: Path) -> str:
    """Returns why no program can be linked with AddressSanitizer here, or ""."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return "no gcc here, whose libasan is AddressSanitizer's runtime"
    (folder / "empty.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    tried = subprocess.run([gcc, "-fsanitize=address", "empty.c"], cwd=folder, capture_output=True, check=False)
    return "gcc has no libasan here" if tried.returncode else ""


def sanitized_driver(folder: Path, level_name: str) -> Path:
    """Returns the driver for a level, made in a folder.

    Raises:
        RuntimeError: the compiler refuses a source.
    """
    level = next(one for one in LEVELS if one.name == level_name)
    names = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.c"))
    units: list[tuple[str, tuple[str, ...]]] = [(TILES, (f"-DNND_WAY={way}",)) for way in range(WAYS)]
    units += [(name, ()) for name in names if name not in (TILES, _INCLUDED)]
    units.append((str(DRIVER.resolve()), ()))
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda unit: _compiled(unit, level, folder), units))
    driver = folder / "plan_mutants"
    command = ["gcc", "-fsanitize=address", *map(str, objects), "-o", str(driver), "-pthread", "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    return driver


def _compiled(unit: tuple[str, tuple[str, ...]], level: Level, folder: Path) -> Path:
    source, flags = unit
    made = folder / f"{Path(source).parent.name}-{Path(source).stem}{''.join(flags).replace('=', '-')}.o"
    arguments = [
        "-target", level.zig_target, f"-mcpu={level.zig_cpu}", f'-DNND_LEVEL="{level.name}"', *FLAGS, *_WATCH, *flags,
        *(["-DNND_BF16"] if level.precision == "bf16" else []), "-I", ".", "-c", source, "-o", str(made),
    ]  # fmt: skip
    command = [sys.executable, "-m", "ziglang", "cc", *arguments]
    done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the compiler refuses {source}: {done.stderr[:2000]}")
    return made


def run_mutants(driver: Path, plans: Sequence[tuple[bytes, bytes]], folder: Path, *, seed: int, count: int) -> str:
    """Returns what the driver says of so many mutants of plans with their weights.

    Raises:
        AssertionError: one crashed, touched what is not its own, or did not end.
    """
    names = []
    for number, plan in enumerate(plans):
        for kind, data in zip(("plan", "weights"), plan, strict=True):
            path = folder / f"{number}.{kind}"
            path.write_bytes(data)
            names.append(str(path))
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1"}
    command = [str(driver), str(seed), str(count), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[:3000]}"
    return done.stdout.strip()
