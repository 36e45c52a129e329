# SPDX-License-Identifier: Apache-2.0
"""One graph from its entry to its files: seeded, exported, run once, noted."""

import fcntl
import json
import os
import random
import statistics
import time
import zlib
from pathlib import Path

import numpy as np
import onnx
import torch
from exporting.families import listed, of_usual_sizes
from exporting.feed import session_of
from exporting.graphs import Array, Graph, Inputs, Scale

_TIMED_SECONDS = 0.4


def export_one(name: str, out: Path, scale: Scale) -> None:
    """Writes NAME.onnx and inputs/NAME.npz below `out`; for the usual size its line in index.json and README.md too."""
    entry = {**listed(), **of_usual_sizes()}[name]
    _seed(name)
    path = out / f"{name}.onnx"
    inputs = entry.make(path, scale)
    if scale.small:
        _strip(path)
    (out / "inputs").mkdir(exist_ok=True)
    np.savez(out / "inputs" / f"{name}.npz", **inputs)
    found = _checked(path, inputs)
    if not scale.small:
        _note(out, entry, found)


def _strip(path: Path) -> None:
    """Takes away what the exporter says of where in the source a node comes from: most of a small file."""
    model = onnx.load(path)
    graphs = [model.graph, *model.functions]
    for owner in (model, model.graph):
        del owner.metadata_props[:]
    while graphs:
        graph = graphs.pop()
        for one in (*graph.node, *graph.value_info):
            del one.metadata_props[:]
            one.doc_string = ""
        graphs += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    onnx.save(model, path)


def _seed(name: str) -> None:
    number = zlib.crc32(name.encode())
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)
    torch.set_num_threads(1)


def _checked(path: Path, inputs: Inputs) -> dict[str, object]:
    """Returns what the index says of a file, after a run by ONNX Runtime.

    Raises:
        SystemExit: an output is not finite, or all of them are constant.
    """
    onnx.checker.check_model(str(path))
    session = session_of(path)
    feed = dict(inputs)
    results = session.run(None, feed)
    arrays = [np.asarray(one) for one in results if isinstance(one, np.ndarray) and one.dtype != object]
    if any(not np.isfinite(one).all() for one in arrays if one.dtype.kind == "f"):
        raise SystemExit(f"{path.name}: an output is not finite")
    if arrays and not any(_varies(one) for one in arrays):
        raise SystemExit(f"{path.name}: every output is constant or empty")
    milliseconds = _milliseconds(lambda: session.run(None, feed))
    data = path.with_name(path.name + ".data")
    size = path.stat().st_size + (data.stat().st_size if data.exists() else 0)
    shapes = [f"{name} {_shape_text(one.shape)} {one.dtype}" for name, one in inputs.items()]
    said = f"{milliseconds:8.2f} ms, {size / 2**20:7.2f} MiB, outputs {[one.shape for one in arrays][:4]}"
    print(f"{path.stem:32} {said}", flush=True)
    return {"bytes": size, "ort_ms": round(milliseconds, 3), "inputs": shapes}


def _varies(array: Array) -> bool:
    return bool(array.size == 1 or (array.size and array.max() != array.min()))


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _milliseconds(call: object) -> float:
    times: list[float] = []
    end = time.perf_counter() + _TIMED_SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()  # type: ignore[operator]
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def _note(out: Path, entry: Graph, found: dict[str, object]) -> None:
    index = out / "index.json"
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _add(index, entry, found)


def _add(index: Path, entry: Graph, found: dict[str, object]) -> None:
    out = index.parent
    noted = json.loads(index.read_text()) if index.exists() else {}
    noted[entry.name] = {"kind": entry.kind, "exporter": entry.exporter} | found
    noted = dict(sorted(noted.items()))
    _replaced(index, json.dumps(noted, indent=1) + "\n")
    _replaced(out / "README.md", _readme(noted))


def _readme(noted: dict[str, dict[str, object]]) -> str:
    lines = [
        "Graphs with random weights, exported by `tests/zoo/export.py`; inputs that run are in `inputs/NAME.npz`.",
        "",
        "| name | kind | exporter | MiB | ONNX Runtime ms | inputs |",
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    for name, one in noted.items():
        size = int(str(one["bytes"])) / 2**20
        inputs = one["inputs"]
        assert isinstance(inputs, list)
        shown = ", ".join(inputs[:4]) + (f" and {len(inputs) - 4} more" if len(inputs) > 4 else "")
        lines.append(f"| {name} | {one['kind']} | {one['exporter']} | {size:.1f} | {one['ort_ms']} | {shown} |")
    return "\n".join(lines) + "\n"


def _replaced(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)
