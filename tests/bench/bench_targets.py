# SPDX-License-Identifier: Apache-2.0
"""One bundle for several devices, built here without their GPUs: every real network and ONNX's light ones.

One row a network and target: which share of the compute each backend took and in how many submodels; seconds and bytes
of the whole bundle, and whether a second build, in another process and folder, gave the same bytes, or which members
differ. The command is the one that a user types; a real network gets its recorded sample, and sizes from it. With
--split a network with one operator that TensorRT refuses, and what `nndeploy inspect` says of it.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from commands import NNDEPLOY, ran
from model_sets import ANY_SIZES, Subject, real_model, real_names, shares_of
from report import Report, add_models, bench_parser

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TARGETS = ("rtx4090", "t4", "x86-64-v3")
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


def main() -> None:
    parser = bench_parser(__doc__)
    add_models(parser)
    parser.add_argument("--target", action="append", help=f"may be repeated; none: {' '.join(TARGETS)}")
    parser.add_argument("--only", nargs="*", help="networks by name")
    parser.add_argument("--real", action="store_true", help="without ONNX's light networks")
    parser.add_argument("--split", action="store_true")
    options = parser.parse_args()
    targets = options.target or TARGETS
    if options.split:
        print(_split(targets))
        return
    networks = [real_model(options.models, name) for name in real_names(options.models)]
    networks += [] if options.real else [Subject(path.stem, path, {}) for path in sorted(LIGHT.glob("light_*.onnx"))]
    with Report(options, "speed.md", "Targets built without a GPU") as report:
        table = report.table("network", "target", "compute by backend (submodels)", "s:", "bytes:", "second build")
        for one in networks:
            for row in _rows(one, targets) if not options.only or one.name in options.only else ():
                table.row(*row)


def _rows(one: Subject, targets: Sequence[str]) -> Iterator[Sequence[object]]:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "a" / "m.nnd", Path(folder) / "elsewhere" / "m.nnd"
        began = time.perf_counter()
        report, refusal = _compile(one, targets, first)
        seconds = time.perf_counter() - began
        if report is None:
            yield one.name, "", refusal, "", "", ""
            return
        _compile(one, targets, second)
        chains = [("portable", report), *((chain["target"], chain) for chain in report["target_chains"])]
        whole = (f"{seconds:.1f}", f"{first.stat().st_size:,}", _compared(first, second))
        for i, (target, chain) in enumerate(chains):
            yield "" if i else one.name, target, shares_of(chain), *(("", "", "") if i else whole)


def _compile(one: Subject, targets: Sequence[str], out: Path) -> tuple[dict[str, Any] | None, str]:
    out.parent.mkdir()
    command = [*NNDEPLOY, "compile", one.path, "-o", out, "--json", *_sample(one, out.parent / "samples")]
    caches = {"XDG_CACHE_HOME": str(out.parent / "caches")}  # nothing that was compiled before
    done = ran([*command, *(f"--target={target}" for target in targets)], env=caches)
    if done.code != 0:
        return None, f"refused, exit {done.code}: {done.last_words.replace(str(one.path.parent), '')[:160]}"
    return json.loads(done.out), ""


def _sample(one: Subject, folder: Path) -> list[str]:
    """Returns the options that give the sample and its sizes; writes the sample into a new folder."""
    if not one.inputs:
        return []
    folder.mkdir()
    np.savez(folder / "sample.npz", **one.inputs)  # type: ignore[arg-type]  # none is called allow_pickle
    sizes = {} if one.name in ANY_SIZES else {name: value.shape for name, value in one.inputs.items() if value.ndim}
    return ["--samples", str(folder), *(f"--shape={name}={','.join(map(str, size))}" for name, size in sizes.items())]


def _compared(first: Path, second: Path) -> str:
    if not second.exists():
        return "FAILED"
    if first.read_bytes() == second.read_bytes():
        return "same bytes"
    a, b = (json.loads(_inspected(path, "--json"))["manifest"]["members"] for path in (first, second))
    return "differs: " + ", ".join(sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name)))


def _inspected(path: Path, *more: str) -> str:
    return ran([*NNDEPLOY, "inspect", path.name, *more], cwd=path.parent).answer


def _split(targets: Sequence[str]) -> str:
    """Returns what `nndeploy inspect` says of a network whose middle TensorRT refuses, compiled for the targets."""
    model, random = onnx.parser.parse_model(SPLIT), np.random.default_rng(0)
    for value in list(model.graph.input)[1:]:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weights = (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, value.name))
        model.graph.input.remove(value)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "antialias.onnx"
        onnx.save(model, path)
        report, refusal = _compile(Subject("antialias", path, {}), targets, path.parent / "out" / "m.nnd")
        if report is None:
            raise SystemExit(refusal)
        shown = _inspected(path.parent / "out" / "m.nnd")
    return shown[shown.index("submodels of") : shown.index("error against")].rstrip()


if __name__ == "__main__":
    main()
