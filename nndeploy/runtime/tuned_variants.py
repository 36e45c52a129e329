# SPDX-License-Identifier: Apache-2.0
"""Which variant of a submodel is the fastest on this machine, where `nndeploy tune --fast` measured it.

    variants.json in the cache folder:
    {"format": 1, "tables": [{"bundle_sha256": "...", "box": {...}, "variants": {"s0": "v1-openvino"},
      "rule_us": 950.0, "tuned_us": 810.0}]}

`box` is all that the choice depends on beside the bundle: processor, caches, threads, versions of the backends. Laws:
variants that are code, or run elsewhere than on the CPU, are not chosen so; what is malformed, or of another bundle or
machine, is as if it were not there.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import PORTABLE, Manifest, Variant
from nndeploy.errors import DataError, InputOutputError, NndeployError
from nndeploy.plugin.cache_file import read_cache, write_cache
from nndeploy.plugin.interface import LAST_RESORT_TIER
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.runtime.select import VARIANTS_FILE, why_not
from nndeploy.target.cpu_name import cpu_name
from nndeploy.target.target import host_target
from nndeploy.values.types import Value
from nndeploy.version import __version__

FORMAT = 1
MAX_BYTES = 1 << 20
MAX_TABLES = 256
"""Tables of one file; the oldest go first."""
LEAST_ROUNDS, MOST_ROUNDS = 7, 101
FAR_BEHIND = 1.5
"""A variant whose first calls take so many times as long is not timed any further."""
LEAST_GAIN = 0.03
"""Another variant is taken if it saves this share of the time, by the median of rounds."""

Run = Callable[[Mapping[str, Value]], object]


def kept_variants(folder: str, manifest: Manifest, options: LoadOptions) -> tuple[dict[str, str], str]:
    """Returns the variants that were measured to be the fastest, by submodel; and why those of a file are not taken."""
    path = Path(folder, VARIANTS_FILE)
    data = read_cache(path, MAX_BYTES) if folder else b""
    if not data:
        return {}, ""
    try:
        tables = [_checked(one) for one in _tables(json.loads(data))]
    except (ValueError, RecursionError) as err:
        return {}, f"{path}: {err}"
    own = [one for one in tables if one["bundle_sha256"] == bundle_sha256(manifest)]
    found = [one for one in own if one["box"] == _box(manifest, options)]
    if found:
        may = {
            (one.id, variant.id) for one in manifest.submodels for variant in one.variants if _may_be_chosen(variant)
        }
        return {one: variant for one, variant in found[-1]["variants"].items() if (one, variant) in may}, ""
    return {}, f"{path}: variants were chosen on another machine, or with other threads" if own else ""


def keep_variants(program: Program, options: LoadOptions, tables: Sequence[Mapping[str, Any]]) -> None:
    """Writes tables beside those that are in the cache folder, in the place of those of the same bundle and machine.

    Raises:
        InputOutputError: the file cannot be written.
    """
    if not tables:
        return
    path = Path(f"{program.path}.cache" if options.cache_dir is None else options.cache_dir, VARIANTS_FILE)
    try:
        before = [_checked(one) for one in _tables(json.loads(read_cache(path, MAX_BYTES) or b"null"))]
    except (ValueError, RecursionError):
        before = []
    new = [(one["bundle_sha256"], one["box"]) for one in tables]
    kept = [one for one in before if (one["bundle_sha256"], one["box"]) not in new]
    text = json.dumps({"format": FORMAT, "tables": [*kept, *tables][-MAX_TABLES:]}, indent=1)
    if options.cache_dir != "" and write_cache(path, (text + "\n").encode("ascii"), ".variants-"):
        return
    hint = "name a folder that can be written with --cache FOLDER"
    raise InputOutputError("what is measured cannot be kept", where=str(path), hint=hint)


def replayed_variants(data: Sequence[Any], program: Program, options: LoadOptions) -> list[dict[str, Any]]:
    """Returns the tables of plain data, which must be of this bundle and machine.

    Raises:
        DataError: they are malformed, or of another bundle or machine.
    """
    try:
        tables = [_checked(one) for one in data]
    except ValueError as err:
        raise DataError(str(err)) from err
    for one in tables:
        if one["bundle_sha256"] != bundle_sha256(program.manifest) or one["box"] != _box(program.manifest, options):
            raise DataError("the variants were chosen for another bundle or machine, or with other threads")
    return tables


def other_variants(program: Program, options: LoadOptions) -> list[tuple[str, str]]:
    """Returns what may be taken instead of the variants that a program runs: pairs of submodel and variant."""
    choices = {choice.submodel: choice for choice in program.choices}
    if program.chain.id != PORTABLE or program.stages or any(choice.is_isolated for choice in program.choices):
        return []
    host = host_target()
    return [
        (one.id, variant.id)
        for one in program.manifest.submodels
        for variant in one.variants
        if variant.id != choices[one.id].variant and _may_be_chosen(variant) and not why_not(variant, options, host)
    ]


def fastest_variants(
    program: Program,
    options: LoadOptions,
    others: Sequence[tuple[str, str]],
    samples: Sequence[Mapping[str, Value]],
    seconds: float,
) -> list[dict[str, Any]]:
    """Returns a table of those of `others` that make whole runs of a program faster; empty where there are none."""
    found = {choice.submodel: choice.variant for choice in program.choices}
    rule_us = tuned_us = 0.0
    for submodel, variant in others:
        try:
            with load_bundle(program.path, options, variants={**found, submodel: variant}) as other:
                mine, its = _raced(program.run, other.run, samples, seconds / len(others), options.threads == 1)
        except NndeployError:  # it does not open here, or does not take these values
            continue
        rule_us = rule_us or mine
        if its < (1 - LEAST_GAIN) * (tuned_us or mine):
            found[submodel], tuned_us = variant, its
    if not rule_us:
        return []
    return [
        {
            "bundle_sha256": bundle_sha256(program.manifest),
            "box": _box(program.manifest, options),
            "variants": found,
            "rule_us": rule_us,
            "tuned_us": tuned_us or rule_us,
        }
    ]


def bundle_sha256(manifest: Manifest) -> str:
    """Returns the SHA-256 of what the portable chain is: its submodels, their variants and the files of these."""
    told = [
        (one.id, variant.id, variant.backend, name, manifest.members[member].sha256)
        for one in manifest.submodels
        for variant in one.variants
        for name, member in sorted(variant.files.items())
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _may_be_chosen(variant: Variant) -> bool:
    if variant.native_code or not is_installed(variant.backend):
        return False
    plugin = backend(variant.backend)
    return plugin.device_kind == "cpu" and plugin.tier < LAST_RESORT_TIER


def _raced(
    run: Run, other: Run, samples: Sequence[Mapping[str, Value]], seconds: float, is_alone: bool
) -> tuple[float, float]:
    """Returns the microseconds of a run of each sample by one and by the other, called in turn; medians.

    Of processor time where one thread does it all, else of the clock.
    """
    clock = time.process_time if is_alone else time.perf_counter
    times: tuple[list[float], list[float]] = ([], [])
    until = time.perf_counter() + seconds

    def timed(way: Run) -> float:
        began = clock()
        for sample in samples:
            way(sample)
        return 1e6 * (clock() - began)

    for way in (run, other):
        timed(way)  # which also makes pages
    for number in range(MOST_ROUNDS):
        for one in (0, 1) if number % 2 else (1, 0):
            times[one].append(timed((run, other)[one]))
        is_slow = number >= 2 and min(times[1]) > FAR_BEHIND * min(times[0])
        if is_slow or (number + 1 >= LEAST_ROUNDS and time.perf_counter() > until):
            break
    mine, others = np.array(times)
    return float(np.median(mine)), float(np.median(mine) * np.median(others / np.maximum(1e-9, mine)))


def _box(manifest: Manifest, options: LoadOptions) -> dict[str, Any]:
    """Returns all of this machine that the choice depends on."""
    host = host_target()
    names = sorted({variant.backend for one in manifest.submodels for variant in one.variants})
    return {
        "processor": cpu_name(),
        "caches": dict(host.caches),
        "threads": options.threads or host.num_cores,
        "version": __version__,
        "backends": {name: _version(name) for name in names},
    }


def _version(name: str) -> str:
    try:
        return backend(name).probe(host_target()).version
    except Exception:  # a third party's probe may fail in any way, or the backend may not be here
        return ""


def _tables(data: Any) -> list[Any]:
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("tables"), list):
        raise ValueError(f"not chosen variants of format {FORMAT}")
    return list(data["tables"][:MAX_TABLES])


def _checked(data: Any) -> dict[str, Any]:
    """Returns a table, once it is seen to be one."""
    is_table = isinstance(data, dict) and all(isinstance(data.get(name), dict) for name in ("box", "variants"))
    if not is_table or not isinstance(data.get("bundle_sha256"), str):
        raise ValueError("malformed: a table without a bundle, a box or variants")
    if not all(isinstance(one, str) for one in data["variants"].values()):
        raise ValueError("malformed: a variant that is no text")
    if not all(type(data.get(name)) in (int, float) and data[name] >= 0 for name in ("rule_us", "tuned_us")):
        raise ValueError("malformed: a time that is none")
    return {**data}
