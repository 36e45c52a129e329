# SPDX-License-Identifier: Apache-2.0
"""One graph through a default compile: compiled, compared, raced; and the file that keeps every result.

`nndeploy compile MODEL -o BUNDLE` runs as a user types it, without samples or options, in a child with a time limit.
The bundle and both libraries are told the model alone: no sizes, no inputs; the libraries trade no more numbers for
speed than in our bundles (docs/reference/backends.md).
"""

import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from commands import NNDEPLOY, ran
from figures import ROOT
from interleaved import Engine, EngineDiedError, Pace, Race, race
from kept_results import append, newest
from model_sets import Subject, shares_of
from roof_shares import benched, paced, reached

from nndeploy.bundle.manifest import Tolerance
from nndeploy.comparison.compare import compare_values
from nndeploy.errors import NndeployError

PEERS = ("onnxruntime", "openvino")
AGREEMENT_SECONDS = 300.0
ROOF_SECONDS = 0.5
ROUGH = Tolerance(rtol=2e-2, atol=1e-3, span=2e-2)
"""OpenVINO counts as an engine of a model where its outputs are not plainly other ones than ONNX Runtime's."""


@dataclass(frozen=True)
class Times:
    """Median milliseconds by engine on some threads, and the faster peer over the bundle; None without a peer.

    On one thread they are milliseconds of processor time. `resident` has the bytes of each engine's process in memory.
    """

    threads: int
    ms: dict[str, float]
    ratio: float | None
    resident: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What was found of a graph; `exit_code` None: no end within the limit; `notes` say what an engine refused.

    `roof_ms` is what the processor takes at least for the operators on one thread, None where it is not known;
    `below_roof` names those that stay far above that.
    """

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
    roof_ms: float | None = None
    below_roof: str = ""

    @property
    def roof(self) -> float | None:
        """The share of the roof that the bundle reaches on one thread."""
        ms = next((times.ms["bundle"] for times in self.times if times.threads == 1), None)
        return None if self.roof_ms is None or ms is None else self.roof_ms / ms


def measured(one: Subject, tree: str, pace: Pace, threads: Sequence[int], seconds_limit: float) -> Result:
    """Compiles, compares and races one graph, on each number of threads."""
    with tempfile.TemporaryDirectory(prefix="nndeploy-zoo-") as name:
        bundle, began = Path(name) / "model.nnd", time.monotonic()
        done = ran([*NNDEPLOY, "compile", one.path, "-o", bundle, "--json"], seconds_limit)
        seconds = round(time.monotonic() - began, 1)
        if done.code != 0:
            said = done.last_words.replace(f"{one.path.parent}/", "")[:300]
            return Result(one.name, one.group, one.about, tree, done.code, seconds, "", notes=(said,))
        agrees, note = _agreement(one, bundle, Path(name))
        notes, times = [note] if not agrees else [], []
        for count in threads:
            try:
                times.append(_times(one, bundle, count, pace, notes))
            except EngineDiedError as err:
                notes.append(str(err)[:200])
        roof_ms, below_roof = _roof(one, Path(name))
        made_of, shown = shares_of(json.loads(done.out)), tuple(dict.fromkeys(notes))
        return Result(
            one.name, one.group, one.about, tree, 0, seconds, made_of, agrees, tuple(times), shown, roof_ms, below_roof
        )  # fmt: skip


def _agreement(one: Subject, bundle: Path, folder: Path) -> tuple[bool, str]:
    np.savez(folder / "inputs.npz", **one.inputs)  # type: ignore[arg-type]  # none is called allow_pickle
    script = ROOT / "tests" / "zoo" / "zoo_agreement.py"
    command = [sys.executable, str(script), str(one.path), str(bundle), str(folder / "inputs.npz")]
    done = ran(command, AGREEMENT_SECONDS)
    if done.code != 0:
        return False, f"not right: exit {done.code}: {done.last_words[:300]}"
    found = json.loads(done.out.splitlines()[-1])
    return bool(found["agrees"]), f"not right: {found['note']}"


def _times(one: Subject, bundle: Path, threads: int, pace: Pace, notes: list[str]) -> Times:
    told = {"threads": threads, "knows_sizes": False, "exact": True, "model": str(one.path)}
    engines = [Engine("bundle", "engines:whole", {"engine": "bundle", "model": str(bundle), "threads": threads})]
    engines += [Engine(name, "engines:whole", {**told, "engine": name}) for name in PEERS]
    found = race(engines, one.inputs, replace(pace, by_processor=threads == 1), spared=PEERS)
    notes += [f"{name} refuses: {reason[:120]}" for name, reason in found.refused.items()]
    if set(PEERS) <= found.outputs.keys() and not _roughly_same(found):
        notes.append("openvino's numbers are others and do not count")
        del found.outputs["openvino"]
    ms = {name: _rounded(found.ms(name)) for name in found.outputs}
    ratio = _rounded(found.ratio("bundle", PEERS)) if len(ms) > 1 else None
    return Times(threads, ms, ratio, {name: found.resident[name] for name in ms})


def _roof(one: Subject, folder: Path) -> tuple[float | None, str]:
    try:
        found = benched(paced(one, folder), one, 1, ROOF_SECONDS)
    except (NndeployError, SystemExit) as err:
        return None, str(err)[:200]
    sums = reached(found["operators"])
    return None if sums.roof is None else _rounded(sums.roof * sums.ms), sums.below


def _roughly_same(found: Race) -> bool:
    got, want = found.outputs["openvino"], found.outputs["onnxruntime"]
    if len(got) != len(want):
        return False
    return all(compare_values(a.astype(b.dtype), b, ROUGH).ok for a, b in zip(got, want, strict=True))


def _rounded(figure: float) -> float:
    return float(f"{figure:.4g}")


def keep(path: Path, result: Result) -> None:
    append(path, dataclasses.asdict(result))


def kept(path: Path) -> dict[str, Result]:
    """Returns the newest result of each graph, by name."""
    return {name: _result(fields) for name, fields in newest(path).items()}


def _result(fields: dict[str, Any]) -> Result:
    times = tuple(Times(**one) for one in fields["times"])
    return Result(**{**fields, "times": times, "notes": tuple(fields["notes"])})
