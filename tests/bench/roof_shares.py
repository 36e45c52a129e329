# SPDX-License-Identifier: Apache-2.0
"""How close the operators of models come to the roof of the processor, by `nndeploy bench --operators`."""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import model_sets
import numpy as np
from commands import NNDEPLOY, ran
from model_sets import Subject
from report import Report, matching

from nndeploy.errors import NndeployError

BACKENDS = ("native", "onnxruntime", "reference")
GOAL, LEAST_SHARE = 0.7, 0.02
"""Operators that operations limit are named where they stay below the goal and take at least this share of the time."""
NAMED = 3


def roof_table(report: Report, options: argparse.Namespace) -> None:
    """Adds a row for each model, buffer of windows and number of threads, and what the processor does at most."""
    heads = ("model", "threads:", "buffer:", "ms:", "roof:", "limited by operations:", "their roof:")
    table = report.table(*heads, "below 70%: of the time, roof")
    roofs = {}
    with tempfile.TemporaryDirectory() as folder:
        asked = options.only or model_sets.real_names(options.models)
        for name in matching(model_sets.all_names(options.zoo, options.models), asked):
            one = model_sets.subject(name, options.zoo, options.models)
            for kib in options.buffers:
                try:
                    bundle = paced(one, Path(folder), kib << 10)
                except NndeployError as err:
                    table.row(name, *[""] * (len(heads) - 1), f"refused: {err.what:.80}")
                    break
                for threads in options.threads:
                    found = benched(bundle, one, threads, options.seconds * options.rounds)
                    roofs[threads] = found["roof"]
                    told = f"{kib} KiB" if kib else "rule"
                    table.row(name, threads, told, *_cells(reached(found["operators"])))
                    report.sample(model=name, buffer_kib=kib, **found)
    report.line()
    for threads, roof in roofs.items():
        memory = ", ".join(f"{one['gbytes_per_s']:.0f} GB/s of {one['bytes'] >> 10:,} KiB" for one in roof["memory"])
        report.line(
            f"* {threads} threads, at most: {roof['float32_gflops_per_s']:.0f} GFLOP/s, int8 "
            f"{roof['int8_gops_per_s']:.0f} Gop/s, {memory}"
        )


def paced(one: Subject, folder: Path, buffer_bytes: int = 0) -> Path:
    """Returns a new bundle that tells the time of its operators, for the sizes of the sample.

    `buffer_bytes` are those of its windows, 0: as the rule says.
    """
    bundle = folder / f"{one.name}.nnd"
    sizes: dict[str, Any] = {} if one.name in model_sets.ANY_SIZES else {"shapes": model_sets.fixed_shapes(one.inputs)}
    if buffer_bytes:
        sizes["cache_buffer"] = buffer_bytes
    how = {"backends": BACKENDS, "objective": "priority", "pace": True, "samples": [one.inputs], **sizes}
    model_sets.compiled(one.path, bundle, **how)
    return bundle


def benched(bundle: Path, one: Subject, threads: int, seconds: float) -> Any:
    """Returns what `nndeploy bench --operators` says of a paced bundle on the model's inputs."""
    inputs = bundle.with_suffix(".npz")
    np.savez(inputs, allow_pickle=False, **one.inputs)
    how = ["--operators", "--threads", threads, "--duration", seconds, "--input", inputs, "--json"]
    return json.loads(ran([*NNDEPLOY, "bench", bundle, *how]).answer)


class Reached(NamedTuple):
    """What the operators of a model take, and which share of the roof they reach; None where nothing has a roof.

    `limited` is the share of the time of those that operations limit, and not memory, and `limited_roof` their roof;
    `below` names those of them that stay below the goal.
    """

    ms: float
    roof: float | None
    limited: float
    limited_roof: float | None
    below: str


def reached(rows: Sequence[Mapping[str, Any]]) -> Reached:
    """Sums up the rows of `bench --operators`."""
    us, parts = sum(row["us"] for row in rows), list(_parts(rows))
    limited = [part for part in parts if part.is_limited]
    limited_us = sum(part.us for part in limited)
    below = [part for part in limited if part.roof_us < GOAL * part.us and part.us >= LEAST_SHARE * us]
    below.sort(key=lambda part: part.us, reverse=True)
    named = "; ".join(f"{part.what} {part.us / us:.0%}, {part.roof_us / part.us:.0%}" for part in below[:NAMED])
    more = f"; {len(below) - NAMED} more" if len(below) > NAMED else ""
    return Reached(us / 1e3, _share(parts, us), limited_us / us, _share(limited, limited_us), named + more)


class _Part(NamedTuple):
    """Operators that count together: what the longest is, without the name of its value, their time and their roof."""

    what: str
    us: float
    roof_us: float
    is_limited: bool
    """Whether operations limit it, and not memory."""


def _parts(rows: Sequence[Mapping[str, Any]]) -> Iterator[_Part]:
    """Yields the operators of each row that has a roof, with those before it that have none."""
    together: list[Mapping[str, Any]] = []
    for row in rows:
        together.append(row)
        if row["roof_us"] is not None:
            longest = max(together, key=lambda one: one["us"])
            us, is_limited = sum(one["us"] for one in together), row["bound"] != "memory" and row["flops"] > 0
            yield _Part(str(longest["operator"]).rsplit(" ", 1)[0], us, row["roof_us"], is_limited)
            together = []


def _cells(found: Reached) -> list[str]:
    shares = [f"{one:.0%}" if one is not None else "" for one in found[1:4]]
    return [f"{found.ms:.3f}", *shares, found.below]


def _share(parts: Sequence[_Part], us: float) -> float | None:
    return sum(part.roof_us for part in parts) / us if us and parts else None
