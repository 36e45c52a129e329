# SPDX-License-Identifier: Apache-2.0
"""One graph through a default compile: compiled, compared, raced; and the file that keeps every result.

`nndeploy compile MODEL -o BUNDLE` runs as a user types it, without samples or options, in a child with a time limit.
The bundle and both libraries are told the model alone: no sizes, no inputs; the libraries trade no more numbers for
speed than in our bundles (docs/reference/backends.md).
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from figures import ROOT
from interleaved import Engine, EngineDiedError, Pace, Race, race
from model_sets import Subject, shares_of

from nndeploy.bundle.manifest import Tolerance
from nndeploy.comparison.compare import compare_values

PEERS = ("onnxruntime", "openvino")
AGREEMENT_SECONDS = 300.0
ROUGH = Tolerance(rtol=2e-2, atol=1e-3, span=2e-2)
"""OpenVINO counts as an engine of a model where its outputs are not plainly other ones than ONNX Runtime's."""


@dataclass(frozen=True)
class Times:
    """Median milliseconds by engine on some threads, and the faster peer over the bundle; None without a peer."""

    threads: int
    ms: dict[str, float]
    ratio: float | None


@dataclass(frozen=True)
class Result:
    """What was found of a graph; `exit_code` None: no end within the limit; `notes` say what an engine refused."""

    name: str
    group: str
    about: str
    tree: str
    exit_code: int | None
    compile_seconds: float
    made_of: str
    agrees: bool | None = None
    times: tuple[Times, ...] = ()
    notes: tuple[str, ...] = ()


def measured(one: Subject, tree: str, pace: Pace, threads: Sequence[int], seconds_limit: float) -> Result:
    """Compiles, compares and races one graph, on each number of threads."""
    with tempfile.TemporaryDirectory(prefix="nndeploy-zoo-") as name:
        bundle, began = Path(name) / "model.nnd", time.monotonic()
        exit_code, out, said = _compiled(one.path, bundle, seconds_limit)
        seconds = round(time.monotonic() - began, 1)
        if exit_code != 0:
            return Result(one.name, one.group, one.about, tree, exit_code, seconds, "", notes=(said,))
        agrees, note = _agreement(one, bundle, Path(name))
        notes, times = [note] if not agrees else [], []
        for count in threads:
            try:
                times.append(_times(one, bundle, count, pace, notes))
            except EngineDiedError as err:
                notes.append(str(err)[:200])
        shown = dict.fromkeys(notes)
        made_of = shares_of(json.loads(out))
        return Result(
            one.name, one.group, one.about, tree, 0, seconds, made_of, agrees, tuple(times), tuple(shown)
        )  # fmt: skip


def _compiled(model: Path, bundle: Path, seconds_limit: float) -> tuple[int | None, str, str]:
    """Returns the exit code, standard output, and the line that says why it failed."""
    command = [str(Path(sys.executable).with_name("nndeploy")), "compile", str(model), "-o", str(bundle), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"},
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=seconds_limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, "", f"no end within {seconds_limit:g} s"
    lines = [line.strip() for line in err.splitlines() if line.strip()] or [""]
    return process.returncode, out, lines[-1].replace(f"{model.parent}/", "")[:300]


def _agreement(one: Subject, bundle: Path, folder: Path) -> tuple[bool, str]:
    np.savez(folder / "inputs.npz", **one.inputs)  # type: ignore[arg-type]  # none is called allow_pickle
    script = ROOT / "tests" / "zoo" / "zoo_agreement.py"
    command = [sys.executable, str(script), str(one.path), str(bundle), str(folder / "inputs.npz")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=AGREEMENT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False, f"not right: no end within {AGREEMENT_SECONDS:g} s"
    if done.returncode != 0:
        return False, f"not right: ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:300]}"
    found = json.loads(done.stdout.splitlines()[-1])
    return bool(found["agrees"]), f"not right: {found['note']}"


def _times(one: Subject, bundle: Path, threads: int, pace: Pace, notes: list[str]) -> Times:
    told = {"threads": threads, "knows_sizes": False, "exact": True, "model": str(one.path)}
    engines = [Engine("bundle", "engines:whole", {"engine": "bundle", "model": str(bundle), "threads": threads})]
    engines += [Engine(name, "engines:whole", {**told, "engine": name}) for name in PEERS]
    found = race(engines, one.inputs, pace, spared=PEERS)
    notes += [f"{name} refuses: {reason[:120]}" for name, reason in found.refused.items()]
    if set(PEERS) <= found.outputs.keys() and not _roughly_same(found):
        notes.append("openvino's numbers are others and do not count")
        del found.outputs["openvino"]
    ms = {name: _rounded(found.ms(name)) for name in found.outputs}
    ratio = _rounded(found.ratio("bundle", PEERS)) if len(ms) > 1 else None
    return Times(threads, ms, ratio)


def _roughly_same(found: Race) -> bool:
    got, want = found.outputs["openvino"], found.outputs["onnxruntime"]
    if len(got) != len(want):
        return False
    return all(compare_values(a.astype(b.dtype), b, ROUGH).ok for a, b in zip(got, want, strict=True))


def _rounded(figure: float) -> float:
    return float(f"{figure:.4g}")


def append(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lines:
        lines.write(json.dumps(dataclasses.asdict(result)) + "\n")


def newest(path: Path) -> dict[str, Result]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {one.name: one for one in map(_result, map(json.loads, lines))}


def _result(fields: dict[str, Any]) -> Result:
    times = tuple(Times(**one) for one in fields["times"])
    return Result(**{**fields, "times": times, "notes": tuple(fields["notes"])})
