# SPDX-License-Identifier: Apache-2.0
"""Builds the driver of plan_mutants.c with AddressSanitizer, writes plans of small networks, and runs it on them.

ziglang instruments, and counts the edges that a mutant reaches; gcc's libasan is the runtime: both speak version 8 of
the interface.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from nndeploy_kernels.build import FLAGS, SOURCES, units
from nndeploy_kernels.levels import LEVELS
from nndeploy_native.build import build
from nndeploy_native.plan import WEIGHTS_FILE

from nndeploy.errors import BuildRefusedError

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "native_backend"))

from kernel_library import TILES_FOR_ALL
from random_networks import Network, network_of
from sanitizer import FoundError
from seed_models import RANGES, seed_models

DRIVER = Path(__file__).with_name("plan_mutants.c")
_WATCH = ("-O1", "-gdwarf-4", "-fsanitize=address", "-fno-sanitize=undefined", "-DNND_SEPARATE", "-Wno-error")
_COUNT_EDGES = "-fsanitize-coverage=edge,inline-8bit-counters"
_LOOPS = "kernels/"
"""Edges of sources of this folder are not counted: what a plan says is read and checked elsewhere."""
_INCLUDED = "model/table.c"
"""The driver includes it."""
MOST_WEIGHTS, MOST_INPUTS = 64 << 10, 16 << 10
"""Bytes of a small network: the driver runs a mutant of little memory alone."""


def small_plans(count: int) -> list[tuple[bytes, bytes]]:
    """Returns plans of the seed models and of small random networks, every fifth of open sizes, with their weights."""
    plans = [plan for model in seed_models() for plan in _plans_of(build(model, RANGES).files)]
    num_seeds, seed = len(plans), 0
    while len(plans) < num_seeds + count:
        network, seed = network_of(seed), seed + 1
        if _input_bytes(network) > MOST_INPUTS * (1 + 15 * bool(network.ranges)):
            continue
        try:
            files = build(network.model, network.ranges).files
        except BuildRefusedError:
            continue
        if len(files[WEIGHTS_FILE]) <= MOST_WEIGHTS:
            plans += _plans_of(files)
    return plans


def _plans_of(files: Mapping[str, bytes]) -> list[tuple[bytes, bytes]]:
    names = [name for name in files if name.startswith("plan.") and name.endswith(".bin")]
    return [(files[name], files[WEIGHTS_FILE]) for name in names]


def _input_bytes(network: Network) -> int:
    return min(sum(array.nbytes for array in inputs.values()) for inputs, _ in network.samples)


class SanitizedLibrary:
    """The kernel library for a level and its driver, compiled into a folder."""

    def __init__(self, folder: Path, level_name: str, *, has_tiles_for_all: bool = False) -> None:
        """Compiles all sources; where asked, products take the processor's tiles of AMX however small they are."""
        self._folder = folder
        self._defines = TILES_FOR_ALL if has_tiles_for_all else ()
        self._level = next(one for one in LEVELS if one.name == level_name)
        sources = [unit for unit in units() if unit[0] != _INCLUDED]
        with ThreadPoolExecutor(2) as pool:
            made = pool.map(lambda unit: self._compiled(SOURCES / unit[0], unit[0], unit[1]), sources)
            self._objects = dict(zip(sources, made, strict=True))
        self._objects[_INCLUDED, ()] = self._compiled(DRIVER, _INCLUDED, ())

    def driver(self) -> Path:
        return self._linked(self._objects, "plan_mutants")

    def driver_without(self, source: str, check: str) -> Path:
        """Returns the driver of a library in whose source, as "ops/pad.c", a condition always holds."""
        text = (SOURCES / source).read_text(encoding="utf-8")
        assert check in text, f"{source} has no {check}"
        changed = self._folder / "changed.c"
        changed.write_text(text.replace(check, "1"), encoding="utf-8")
        objects = {**self._objects, (source, ()): self._compiled(changed, f"changed/{source}", ())}
        return self._linked(objects, "plan_mutants_without")

    def _linked(self, objects: dict[tuple[str, tuple[str, ...]], Path], name: str) -> Path:
        driver = self._folder / name
        command = ["gcc", "-fsanitize=address", *map(str, objects.values()), "-o", str(driver), "-pthread", "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        return driver

    def _compiled(self, source: Path, name: str, flags: tuple[str, ...]) -> Path:
        made = self._folder / f"{name.replace('/', '-').removesuffix('.c')}{''.join(flags).replace('=', '-')}.o"
        level = self._level
        arguments = [
            "-target", level.zig_target, f"-mcpu={level.zig_cpu}", f'-DNND_LEVEL="{level.name}"', *FLAGS, *_WATCH,
            *self._defines, *flags, *([] if name.startswith(_LOOPS) else [_COUNT_EDGES]),
            *(["-DNND_BF16"] if level.precision == "bf16" else []), "-I", ".", "-c", str(source), "-o", str(made),
        ]  # fmt: skip
        command = [sys.executable, "-m", "ziglang", "cc", *arguments]
        done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the compiler refuses {source}: {done.stderr[:2000]}")
        return made


class Outcome(NamedTuple):
    """What became of mutants, in the order in which the driver says it; `edges` are all that the library has."""

    mutants: int
    opened: int
    made: int
    ran: int
    reached: int
    edges: int
    reached_by_seeds: int
    corpus: int
    said: str


def run_mutants(
    driver: Path, plans: Sequence[tuple[bytes, bytes]], folder: Path, *, seed: int, count: int, is_guided: bool = True
) -> Outcome:
    """Returns what became of so many mutants of plans with their weights; one that is found is kept in the folder."""
    names = []
    for number, plan in enumerate(plans):
        for kind, data in zip(("plan", "weights"), plan, strict=True):
            path = folder / f"{number}.{kind}"
            path.write_bytes(data)
            names.append(str(path))
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1"}
    how = "guided" if is_guided else "blind"
    command = [str(driver), "run", str(seed), str(count), how, str(folder / "finding"), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise FoundError(f"exit {done.returncode}: {done.stderr[:3000]}{done.stderr[3000:][-400:]}")
    return Outcome(*map(int, re.findall(r"\d+", done.stdout)), done.stdout.strip())
