# SPDX-License-Identifier: Apache-2.0
"""What a box pays: the base install in time and disk, a bundle installed, updated over a registry and rolled back."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import figures
import numpy as np
from native_engines import machine_name

sys.path += [str(figures.ROOT / "tests" / folder) for folder in ("", "packaging", "unit", "unit/registry")]

from registry_server import RegistryServer
from weighty_bundles import write_weights
from wheel_builds import wheelhouse_of_this_machine

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import write_bundle
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push

DIGITS = figures.ROOT / "examples" / "digits" / "digits.onnx"
ROUNDS = 3
LAYER_BYTES, NUM_LAYERS = 4_000_000, 25

PAGE = """{header}# A box: figures

`make bench-box ARGS=--write` ([tests/bench/bench_box.py](../../tests/bench/bench_box.py)). Medians of {rounds}.

| the base install, by the script of a wheelhouse, without a network | figure | goal |
| --- | ---: | ---: |
| files that it brings beside NumPy | {ours:.0f} MB | 60 |
| the same on this disk, in whole blocks | {blocks:.0f} MB | |
| NumPy | {numpy:.0f} MB | |
| time, most of it Python's own for a new environment and pip's | {install:.1f} s | |

| the digit reader, each a command of its own | seconds |
| --- | ---: |
| `nndeploy install`, the first of a name | {first:.2f} |
| `nndeploy install` of the next one | {second:.2f} |
| `nndeploy rollback` | {rollback:.2f} |
| `nndeploy run NAME@` of one input | {run:.2f} |

A bundle of {size:.1f} MB whose {layers} layers lie in one member, pushed to a registry on this machine; then one layer
of {layer:.0f} MB has other weights. What was pulled is the new bundle, byte for byte.

| | MB |
| --- | ---: |
| sent at first | {sent:.1f} |
| sent of the next version | {sent_next:.1f} |
| fetched by a box that has the version before | {fetched_next:.1f} |
"""


def seconds_of(call: Callable[[int], object]) -> float:
    """Returns the median time of a call, which is told the number of the round."""
    times = []
    for number in range(ROUNDS):
        start = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def megabytes(*folders: Path) -> np.ndarray:
    """Returns how large the files below folders are together, and what they occupy of the disk."""
    files = [path.lstat() for folder in folders for path in folder.rglob("*")]
    return np.array([sum(file.st_size for file in files), sum(file.st_blocks * 512 for file in files)]) / 1e6


def base_install(folder: Path) -> dict[str, float]:
    """Returns what the script of a wheelhouse takes, and what it leaves, without what every new environment has."""
    house = wheelhouse_of_this_machine(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "empty")], check=True)
    environment = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    environment["PYTHON"] = sys.executable

    def install(number: int) -> None:
        command = ["sh", str(house / "install.sh"), str(folder / f"box{number}")]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    seconds = seconds_of(install)
    (numpy,) = (folder / "box0").glob("lib/python*/site-packages/numpy")
    numpys = megabytes(numpy, numpy.with_name("numpy.libs"))
    ours, blocks = megabytes(folder / "box0") - megabytes(folder / "empty") - numpys
    return {"install": seconds, "numpy": numpys[0], "ours": ours, "blocks": blocks}


def commands(folder: Path) -> dict[str, float]:
    """Returns the times of commands on an installed name, by the base install of `folder`."""
    options = nndeploy.CompileOptions(backends=("native",), objective="priority", keep_fallback=False)
    nndeploy.compile_model(DIGITS, folder / "one.nnd", options)
    with open_bundle(folder / "one.nnd") as bundle:
        members = {path: bundle.member(path) for path in bundle.manifest.members if path != "report.json"}
        write_bundle(folder / "two.nnd", bundle.manifest, members, {**bundle.report(), "model": "another"})

    def call(*words: str) -> None:
        command = [str(folder / "box0" / "bin" / "nndeploy"), *words]
        places = {"NNDEPLOY_STORE": str(folder / "store"), "XDG_CONFIG_HOME": str(folder / "config")}
        subprocess.run(command, env=places, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    line = DIGITS.with_name("lines.jsonl").read_text().splitlines()[0]
    (folder / "line.jsonl").write_text(line + "\n")
    return {
        "first": seconds_of(lambda number: call("install", f"digits{number}", "one.nnd")),
        "second": seconds_of(lambda number: call("install", f"digits{number}", "two.nnd")),
        "rollback": seconds_of(lambda number: call("rollback", f"digits{number}")),
        "run": seconds_of(lambda number: call("run", f"digits{number}@", "--input", "line.jsonl", "--output", "-")),
    }


def update(folder: Path) -> dict[str, float]:
    """Returns how many megabytes travel when one layer of a large bundle changes."""
    path, box = folder / "large.nnd", folder / "box.nnd"
    write_weights(path, (77,), size=LAYER_BYTES * NUM_LAYERS)
    with RegistryServer() as server:
        first = push(path, server.reference("1"))
        pull(server.reference("1"), box)
        with open_bundle(path) as bundle:
            weights = bytearray(bundle.member("weights/0.bin"))
            begin = NUM_LAYERS // 2 * LAYER_BYTES
            weights[begin : begin + LAYER_BYTES] = bytes(LAYER_BYTES)
            members = {"submodels/s0/plan": b"plan", "weights/0.bin": bytes(weights)}
            write_bundle(path, bundle.manifest, members, bundle.report())
        second = push(path, server.reference("2"))
        pulled = pull(server.reference("2"), box)
    assert box.read_bytes() == path.read_bytes()
    return {
        "size": first.size_bytes / 1e6,
        "sent": first.sent_bytes / 1e6,
        "sent_next": second.sent_bytes / 1e6,
        "fetched_next": pulled.fetched_bytes / 1e6,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/figures/box-results.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = base_install(folder) | commands(folder) | update(folder)
    header = figures.header(figures.figure("box-results.md"), machine_name())
    text = PAGE.format(header=header, rounds=ROUNDS, layers=NUM_LAYERS, layer=LAYER_BYTES / 1e6, **found)
    print(text)
    if options.write:
        (figures.FIGURES / "box-results.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
