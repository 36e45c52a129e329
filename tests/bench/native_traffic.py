# SPDX-License-Identifier: Apache-2.0
"""Bytes that the kernels of a block move past a cache of a given size, simulated by valgrind.

callgrind's cache model (that of cachegrind: a first level and a last one, least recently used, 64-byte lines, no
prefetch) with write-back on: a miss brings a line in, a miss that puts out a changed line also writes it back. Stores
past the caches are taken for ordinary ones, whose lines are brought in first, so a real machine moves less there.
Valgrind knows no AVX-512 and takes long for fused multiply-adds: the kernels are built for x86-64-v3 without them,
which reads and writes the same memory. Each variant runs twice in the product's session, its layout conversions too;
counted is what the block's own steps do in the second run.

This file is also what runs under valgrind.
"""

import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from interleaved import Array

from nndeploy.plugin.interface import Artifact, OpenOptions

HEADER = Path("/usr/include/valgrind/callgrind.h")
LINE_BYTES = 64
HEAD = f"""#define _GNU_SOURCE
#include "{HEADER}"
#define BENCH_EXPORT __attribute__((visibility("default")))
BENCH_EXPORT int nnd_bench_collects[64];
BENCH_EXPORT void nnd_bench_start(void) {{ CALLGRIND_START_INSTRUMENTATION; }}
BENCH_EXPORT void nnd_bench_dump(const char *name) {{ CALLGRIND_DUMP_STATS_AT(name); }}
#define NND_BEFORE_STEP(step, worker) if (nnd_bench_collects[step]) CALLGRIND_TOGGLE_COLLECT;
#define NND_AFTER_STEP(step, worker) NND_BEFORE_STEP(step, worker)
"""
Made = tuple[Artifact, tuple[int, ...]]
"""An artifact made with `HEAD`, and the numbers of the steps that count."""
_MISSES = ("ILmr", "DLmr", "DLmw")
_WRITTEN_BACK = ("ILdmr", "DLdmr", "DLdmw")


def unavailable() -> str:
    """Returns why nothing can be simulated here, or ""."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    return "" if HEADER.exists() else f"{HEADER} is not there"


def simulated(
    variants: Mapping[str, tuple[Artifact, tuple[int, ...]]],
    inputs: Mapping[str, Array],
    l1_bytes: int,
    last_bytes: int,
) -> dict[str, int]:
    """Returns the bytes that cross the last cache for each variant.

    Raises:
        RuntimeError: valgrind failed.
    """
    with tempfile.TemporaryDirectory(prefix="nndeploy-traffic-") as name:
        folder = Path(name)
        named: dict[str, Array] = dict(inputs)
        np.savez(folder / "inputs.npz", allow_pickle=False, **named)
        index = [_written(folder, number, one, steps) for number, (one, steps) in enumerate(variants.values())]
        (folder / "index.json").write_text(json.dumps(index))
        done = subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--cache-sim=yes", "--simulate-wb=yes", "--instr-atstart=no",
                "--collect-atstart=no", f"--D1={_cache(l1_bytes)}", f"--LL={_cache(last_bytes)}",
                f"--callgrind-out-file={folder / 'out'}", sys.executable, "-B", __file__, str(folder),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        found = dict(_dumped(path) for path in folder.glob("out.*"))
        missing = [name for number, name in enumerate(variants) if str(number) not in found]
        if done.returncode or missing:
            raise RuntimeError(f"valgrind ended with {done.returncode}, without {missing}: {done.stderr[-500:]}")
        return {name: found[str(number)] for number, name in enumerate(variants)}


def _cache(num_bytes: int) -> str:
    """Returns a cache as valgrind takes it: so many ways that the number of sets is a power of two."""
    lines = num_bytes // LINE_BYTES
    ways = lines // (lines & -lines)
    while ways <= 8:
        ways *= 2
    return f"{num_bytes},{ways},{LINE_BYTES}"


def _written(folder: Path, number: int, artifact: Artifact, steps: tuple[int, ...]) -> dict[str, object]:
    for name, data in artifact.files.items():
        (folder / f"{number}-{name}").write_bytes(data)
    return {"files": list(artifact.files), "metadata": dict(artifact.metadata), "steps": steps}


def _dumped(path: Path) -> tuple[str, int]:
    """Returns the name of a dump, and the bytes that its events stand for."""
    lines = [line.partition(": ") for line in path.read_text().splitlines()]
    name = next((text.rpartition(" ")[2] for key, _, text in lines if key == "desc" and "Client Request" in text), "")
    events = next(text.split() for key, _, text in lines if key == "events")
    totals = next(text.split() for key, _, text in lines if key == "totals")
    counts = dict(zip(events, map(int, totals), strict=False))  # zeros at the end are left out
    return name, LINE_BYTES * sum(counts.get(event, 0) for event in (*_MISSES, *_WRITTEN_BACK))


def _run_under_valgrind(folder: Path) -> None:
    from nndeploy_native.plugin import Plugin

    from nndeploy.files.shared_object import library_from_bytes

    with np.load(folder / "inputs.npz") as arrays:
        inputs = {key: arrays[key] for key in arrays.files}
    for number, one in enumerate(json.loads((folder / "index.json").read_text())):
        files = {name: memoryview((folder / f"{number}-{name}").read_bytes()) for name in one["files"]}
        session = Plugin().open(files, one["metadata"], OpenOptions(threads=1))
        library = library_from_bytes(bytes(files["kernels.so"]))
        collects = (ctypes.c_int * 64).in_dll(library, "nnd_bench_collects")
        library.nnd_bench_start()
        session.run(inputs)
        for step in one["steps"]:
            collects[step] = 1
        session.run(inputs)
        library.nnd_bench_dump(str(number).encode())
        session.close()


if __name__ == "__main__":
    _run_under_valgrind(Path(sys.argv[1]))
