# SPDX-License-Identifier: Apache-2.0
"""One graph measured, and the file that keeps every result: one line of JSON a graph and tree, the newest counts."""

import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Engine, EngineDiedError, Pace, Race, race
from zoo_compile import Compiled, compiled
from zoo_graphs import Subject

from nndeploy.bundle.manifest import Tolerance
from nndeploy.comparison.compare import compare_values

PEERS = ("onnxruntime", "openvino")
AGREEMENT_SECONDS = 300.0
_ROUGH = Tolerance(rtol=2e-2, atol=1e-3, span=2e-2)
"""OpenVINO counts as an engine of a model where its outputs are not plainly other ones than ONNX Runtime's."""


@dataclass(frozen=True)
class Times:
    """Medians in milliseconds on some threads, None where it did not run; `ratio` is the faster peer over ours."""

    threads: int
    bundle_ms: float | None = None
    onnxruntime_ms: float | None = None
    openvino_ms: float | None = None
    ratio: float | None = None

    @property
    def peers_ms(self) -> list[float]:
        """The milliseconds of the peers that ran."""
        return [time for time in (self.onnxruntime_ms, self.openvino_ms) if time is not None]


@dataclass(frozen=True)
class Result:
    """What was found of one graph, with the times on each number of threads that was asked for."""

    name: str
    group: str
    about: str
    tree: str
    date: str
    exit_code: int | None
    compile_seconds: float
    said: str
    made_of: str
    comparisons: int
    agrees: bool | None = None
    agreement: str = ""
    times: tuple[Times, ...] = ()
    notes: tuple[str, ...] = ()


def measured(subject: Subject, tree: str, pace: Pace, threads: Sequence[int], seconds_limit: float) -> Result:
    """Compiles, compares and races one graph, on each number of threads."""
    with tempfile.TemporaryDirectory(prefix="nndeploy-zoo-") as name:
        bundle = Path(name) / "model.nnd"
        made = compiled(subject.path, bundle, seconds_limit)
        result = _started(subject, tree, made)
        if made.exit_code != 0:
            return result
        agrees, note = _agreement(subject, bundle, Path(name))
        result = dataclasses.replace(result, agrees=agrees, agreement=note)
        for count in threads:
            result = _with_times(result, subject, bundle, count, pace)
        return result


def _started(subject: Subject, tree: str, made: Compiled) -> Result:
    return Result(
        subject.name, subject.group, subject.about, tree, time.strftime("%Y-%m-%d"), made.exit_code,
        round(made.seconds, 1), made.said, made.made_of, made.comparisons,
    )  # fmt: skip


def _agreement(subject: Subject, bundle: Path, folder: Path) -> tuple[bool, str]:
    np.savez(folder / "inputs.npz", **subject.inputs)  # type: ignore[arg-type]  # one called allow_pickle is none of ours
    command = [sys.executable, str(Path(__file__).resolve().parents[1] / "zoo" / "zoo_agreement.py")]
    command += [str(subject.path), str(bundle), str(folder / "inputs.npz")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=AGREEMENT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False, f"no end within {AGREEMENT_SECONDS:g} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        return False, f"ended with {done.returncode}: {lines[-1][:300]}"
    found = json.loads(done.stdout.splitlines()[-1])
    return bool(found["agrees"]), str(found["note"])


def _with_times(result: Result, subject: Subject, bundle: Path, threads: int, pace: Pace) -> Result:
    engines = [Engine("bundle", "zoo_engines:bundle", {"path": str(bundle), "threads": threads})]
    asked = {"model": str(subject.path), "threads": threads}
    engines += [Engine(name, f"zoo_engines:{name}", asked) for name in PEERS]
    notes: list[str] = []
    found: Race | None = None
    while found is None:
        try:
            found = race(engines, subject.inputs, pace)
        except EngineDiedError as err:
            dead = str(err).split(" ")[0].rstrip(":")
            notes.append(str(err)[:200])
            if dead not in PEERS:
                return _noted(result, notes)
            engines = [one for one in engines if one.name != dead]
    notes += [f"{name} refuses: {reason[:120]}" for name, reason in found.refused.items()]
    peers = [name for name in PEERS if name in found.outputs]
    if len(peers) == 2 and not _roughly_same(found):
        notes.append("openvino's numbers are others and do not count")
        peers.remove("openvino")
    medians = {f"{name}_ms": _rounded(found.ms(name)) for name in ("bundle", *peers)}
    ratio = _rounded(found.ratio("bundle", peers)) if peers else None
    times = (*result.times, Times(threads, **medians, ratio=ratio))
    return dataclasses.replace(_noted(result, notes), times=times)


def _noted(result: Result, notes: Sequence[str]) -> Result:
    """Returns the result with notes that it does not have yet."""
    return dataclasses.replace(result, notes=tuple(dict.fromkeys([*result.notes, *notes])))


def _roughly_same(found: Race) -> bool:
    got, want = found.outputs["openvino"], found.outputs["onnxruntime"]
    if len(got) != len(want):
        return False
    return all(compare_values(a.astype(b.dtype), b, _ROUGH).ok for a, b in zip(got, want, strict=True))


def _rounded(figure: float) -> float:
    return float(f"{figure:.4g}")


def append(path: Path, result: Result) -> None:
    """Adds a line to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lines:
        lines.write(json.dumps(dataclasses.asdict(result)) + "\n")


def newest(path: Path) -> dict[str, Result]:
    """Returns the last result of every graph in the file."""
    if not path.exists():
        return {}
    found = [_result(json.loads(line)) for line in path.read_text().splitlines()]
    return {one.name: one for one in found}


def _result(fields: dict[str, Any]) -> Result:
    times = tuple(Times(**one) for one in fields["times"])
    return Result(**{**fields, "times": times, "notes": tuple(fields["notes"])})


def geometric_mean(ratios: list[float]) -> float:
    """Returns the geometric mean; NaN of nothing."""
    return statistics.geometric_mean(ratios) if ratios else float("nan")
