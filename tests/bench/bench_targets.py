# SPDX-License-Identifier: Apache-2.0
"""One bundle for several boxes, built here without their GPUs: every real network and ONNX's light ones.

    python tests/bench/bench_targets.py [--models FOLDER] [--target BOX ...] [--only NAME ...] [--real]
    python tests/bench/bench_targets.py --split [--target BOX ...]

One row a network and target: which share of the compute each backend took and in how many submodels; then seconds and
bytes of the whole bundle, and whether a second build, in another process and folder, gave the same bytes, or which
members differ. The command is the one that a user types; a real network gets its recorded sample, and sizes from it.
With --split a network with one operator that TensorRT refuses, and what `nndeploy inspect` says of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.parser
from real_models import MODELS, names_in, real_model

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TARGETS = ("rtx4090", "t4", "x86-64-v3")
ANY_SIZES = ("silero_vad_v5",)
"""Networks that are malformed at fixed sizes: a branch for another sampling rate fits other ones."""


class Network(NamedTuple):
    """A model file and its recorded inputs, by name; none means generated ones."""

    name: str
    path: Path
    sample: dict[str, Any]

    def options(self, folder: Path) -> list[str]:
        """Returns the options that tell the sample and its sizes; writes the sample into a new folder."""
        if not self.sample:
            return []
        folder.mkdir()
        np.savez(folder / "sample.npz", **self.sample)
        sizes = {name: value.shape for name, value in self.sample.items() if value.ndim and self.name not in ANY_SIZES}
        shapes = [f"--shape={name}={','.join(map(str, shape))}" for name, shape in sizes.items()]
        return ["--samples", str(folder), *shapes]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="one bundle for several boxes, without their GPUs")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--target", action="append")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--real", action="store_true", help="without ONNX's light networks")
    parser.add_argument("--split", action="store_true")
    options = parser.parse_args()
    targets = options.target or TARGETS
    if options.split:
        print(_split(targets))
        return
    print("| network | target | compute by backend (submodels) | seconds | bytes | second build |")
    print("| --- | --- | --- | ---: | ---: | --- |")
    for network in _networks(options.models):
        is_wanted = network.sample or not options.real
        if is_wanted and (not options.only or network.name in options.only):
            for row in _rows(network, targets):
                print(row, flush=True)


SPLIT = """<ir_version: 9, opset_import: ["": 19]>
antialias (float[1,3,128,128] x, float[32,3,3,3] w1, float[64,32,3,3] w2, float[64,64,3,3] w3, float[8,64,3,3] w4)
    => (float[1,8,32,32] y) <float[4] scales = {1, 1, 0.5, 0.5}> {
  [conv1] a = Conv <pads = [1,1,1,1]> (x, w1)
  [relu1] b = Relu (a)
  [conv2] c = Conv <pads = [1,1,1,1], strides = [2,2]> (b, w2)
  [relu2] d = Relu (c)
  [shrink] e = Resize <mode = "cubic", antialias = 1> (d, , scales)
  [conv3] f = Conv <pads = [1,1,1,1]> (e, w3)
  [relu3] g = Relu (f)
  [conv4] y = Conv <pads = [1,1,1,1]> (g, w4)
}"""
"""A network whose middle TensorRT refuses."""


def _split(targets: tuple[str, ...]) -> str:
    """Returns what `nndeploy inspect` says of `SPLIT`, compiled for the targets."""
    model, random = onnx.parser.parse_model(SPLIT), np.random.default_rng(0)
    for value in list(model.graph.input)[1:]:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weights = random.standard_normal(shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]))
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights.astype(np.float32), value.name))
        model.graph.input.remove(value)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "antialias.onnx"
        onnx.save(model, path)
        report, refusal = _compile(Network("antialias", path, {}), targets, path.parent / "out" / "m.nnd")
        if report is None:
            raise SystemExit(refusal)
        command = [sys.executable, "-m", "nndeploy", "inspect", "m.nnd"]
        shown = subprocess.run(command, cwd=path.parent / "out", capture_output=True, text=True, check=True).stdout
    first, last = shown.index("submodels of"), shown.index("error against")
    return shown[first:last].rstrip()


def _networks(models: Path) -> Iterator[Network]:
    for name in names_in(models):
        model = real_model(models, name)
        yield Network(name, model.path, model.inputs)
    for path in sorted(LIGHT.glob("light_*.onnx")):
        yield Network(path.stem, path, {})


def _rows(network: Network, targets: tuple[str, ...]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "a" / "m.nnd", Path(folder) / "elsewhere" / "m.nnd"
        began = time.perf_counter()
        report, refusal = _compile(network, targets, first)
        seconds = time.perf_counter() - began
        if report is None:
            yield f"| {network.name} | | {refusal} | | | |"
            return
        _compile(network, targets, second)
        same = _compared(first, second)
        chains = [("portable", report), *((chain["target"], chain) for chain in report["target_chains"])]
        for i, (target, chain) in enumerate(chains):
            whole = f"{seconds:.1f} | {first.stat().st_size:,} | {same}" if i == 0 else "| |"
            yield f"| {network.name if i == 0 else ''} | {target} | {_shares(chain)} | {whole} |"


def _compile(network: Network, targets: tuple[str, ...], out: Path) -> tuple[dict[str, Any] | None, str]:
    out.parent.mkdir()
    line = [sys.executable, "-m", "nndeploy", "compile", str(network.path), "-o", str(out), "--json"]
    line += network.options(out.parent / "samples")
    line += [word for target in targets for word in ("--target", target)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(out.parent / "caches")}  # nothing that was compiled before
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["?"])[-1].replace(str(network.path.parent), "")
        return None, f"refused, exit {done.returncode}: {last[:160]}"
    return json.loads(done.stdout), ""


def _compared(first: Path, second: Path) -> str:
    if not second.exists():
        return "FAILED"
    if first.read_bytes() == second.read_bytes():
        return "same bytes"
    a, b = _members(first), _members(second)
    differing = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    return "differs: " + ", ".join(differing)


def _members(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "nndeploy", "inspect", str(path), "--json"], capture_output=True, text=True, check=True
    )
    members: dict[str, Any] = json.loads(done.stdout)["manifest"]["members"]
    return members


def _shares(chain: dict[str, Any]) -> str:
    shares: dict[str, list[float]] = {}
    for submodel in chain["submodels"]:
        shares.setdefault(submodel["backend"], []).append(submodel["share"])
    ordered = sorted(shares.items(), key=lambda item: -sum(item[1]))
    return ", ".join(f"{backend} {sum(parts):.1%} ({len(parts)})" for backend, parts in ordered)


if __name__ == "__main__":
    main()
