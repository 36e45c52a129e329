# SPDX-License-Identifier: Apache-2.0
"""What `nndeploy tune` gains over the rules: on this machine, and where the rules count with another machine.

Each model is compiled for `native` alone and tuned for `--seconds`. Programs by the rules and with tuned choices are
loaded side by side in one process, which packs their weights once, and called in turn, the first of a round being
another each time; three times, in memories of their own. One thread: processor time, medians, ratios taken within a
round, so that the machine may be shared. Two threads: the clock, the lower decile, for which the machine must have been
free a tenth of the time. Where no step is changed the programs are the same. Outputs must be equal to the bit, but of
`fast`, or the command ends. Models are the real ones, built ones and those of `make zoo`, or `--only` names.

    here     gain over the rules as they are
    fast     the same where last bits may change (`tune --fast`, without other variants)
    shared   the same with two threads
    moved    the rules count with a quarter of this machine's L2, and with four times of it: what that loses, and how
             much of the loss tuning wins back
    levels   gain over the rules on lower levels of the instruction set
    exhaustive   what a search finds that tries, of each step, all alternatives with each other, --samples times each
                 that is not far behind, for --search seconds at most: how close tuning comes to that
"""

import random
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from interleaved import largest_error
from model_sets import Subject, all_names, compiled, network_subject, subject
from nndeploy_kernels.levels import LEVELS
from nndeploy_native import kernel_library, plan_tuning, session, tuning
from nndeploy_native.step_choices import StepChoice
from nndeploy_native.tuning import FactsOf, Race, RaceOptions
from report import Report, add_models, bench_parser, geometric_mean, matching, run_parts

from nndeploy.errors import NndeployError
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.runtime.tune_program import tables_of, tune
from nndeploy.target.target import Target, host_target

BUILT = {"v1 224": ("v1", 224), "v2 224": ("v2", 224), "v1 640": ("v1", 640), "resnet 224": ("resnet", 224)}
"""Networks beside the real models."""
MEMORIES = 3
"""How often programs are loaded: the same program takes some percent more in one memory than in another."""
ROUNDED = 1e-4
"""Of the largest value of an output: Winograd's products beside direct sums, layer after layer."""
LEAST_MS = 0.05
"""Models that take less are left out: a step is some microseconds then, and nothing is raced."""


def main() -> int:
    parser = bench_parser(__doc__, ("here", "fast", "shared", "moved", "levels", "exhaustive"), ("here",))
    add_models(parser, zoo=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="models by name, with * and ?")
    parser.add_argument("--seconds", type=float, default=10.0, help="of tuning")
    parser.add_argument("--search", type=float, default=200.0, help="of `exhaustive`: seconds of the search")
    parser.add_argument("--samples", type=int, default=150, help="of `exhaustive`: of each alternative")
    parser.add_argument("--rounds", type=int, default=15, help="in each of three memories")
    return run_parts(
        parser.parse_args(),
        "speed.md",
        "Tuning",
        {
            "here": _here,
            "fast": _fast,
            "shared": _shared,
            "moved": _moved,
            "levels": _levels,
            "exhaustive": _exhaustive,
        },
    )


def _here(report: Report, options: Namespace) -> None:
    _gains(report, options, 1)


def _fast(report: Report, options: Namespace) -> None:
    _gains(report, options, 1, is_fast=True)


def _shared(report: Report, options: Namespace) -> None:
    _gains(report, options, 2)


def _gains(report: Report, options: Namespace, threads: int, *, is_fast: bool = False) -> None:
    table = report.table("model", "by the rules, ms:", "tuned, ms:", "faster by:", "steps changed:", "tuning, s:")
    gains = []
    for one in _subjects(options):
        bundle, cache = _compiled(one, options.folder), options.folder / f"{one.name}.{threads}.{is_fast}"
        if bundle is None:
            continue
        changed, seconds = _tuned(bundle, cache, one.inputs, options.seconds, threads=threads, is_fast=is_fast)
        ways: list[tuple[Target | None, Path | None]] = [(None, None), (None, cache)]
        rule, tuned = _raced(bundle, one.inputs, options.rounds, ways, threads, bound=ROUNDED if is_fast else 0.0)
        if statistics.median(rule) < LEAST_MS:
            continue
        gain = _ratio(rule, tuned) if threads == 1 else _decile(rule) / _decile(tuned)
        gains.append(gain if changed else 1.0)
        report.sample(threads=threads, is_fast=is_fast, model=one.name, rule_ms=rule, tuned_ms=tuned, steps=changed)
        told = [f"{statistics.median(times) if threads == 1 else _decile(times):.3f}" for times in (rule, tuned)]
        table.row(one.name, *told, f"{gains[-1]:.3f}", changed, f"{seconds:.1f}")
    report.text(f"Geometric mean of {len(gains)}: {geometric_mean(gains):.3f}; least {min(gains):.3f}.")


def _moved(report: Report, options: Namespace) -> None:
    host = host_target()
    l2_bytes = dict(host.caches).get("l2", 1 << 20)
    table = report.table("model", "the rules count with", "loss:", "left after tuning:", "won back:")
    lost, left = [], []
    for one in _subjects(options):
        bundle = _compiled(one, options.folder)
        for part, bytes_told in (("L2 / 4", l2_bytes // 4), ("4 L2", 4 * l2_bytes)) if bundle else ():
            assert bundle is not None
            cache = options.folder / f"{one.name}.{bytes_told}"
            other = replace(host, caches=tuple(sorted({**dict(host.caches), "l2": bytes_told}.items())))
            _tuned(bundle, cache, one.inputs, options.seconds, other)
            right, wrong, tuned = _raced(
                bundle, one.inputs, options.rounds, [(None, None), (other, None), (other, cache)]
            )
            if statistics.median(right) < LEAST_MS:
                continue
            loss, rest = _ratio(wrong, right), _ratio(tuned, right)
            lost.append(loss)
            left.append(rest)
            report.sample(part="moved", model=one.name, l2=bytes_told, right_ms=right, wrong_ms=wrong, tuned_ms=tuned)
            back = f"{(loss - rest) / (loss - 1):.0%}" if loss > 1.02 else ""
            table.row(one.name, part, f"{loss:.3f}", f"{rest:.3f}", back)
    losses, rests = geometric_mean(lost), geometric_mean(left)
    real = [(loss, rest) for loss, rest in zip(lost, left, strict=True) if loss > 1.02]
    won = sum(loss - rest for loss, rest in real) / max(1e-9, sum(loss - 1 for loss, _ in real))
    report.text(
        f"Geometric mean of {len(lost)}: loss {losses:.3f}, after tuning {rests:.3f}; of the {len(real)} losses of "
        f"more than 2% {won:.0%} is won back."
    )


def _levels(report: Report, options: Namespace) -> None:
    host = host_target()
    table = report.table("model", "level", "by the rules, ms:", "tuned, ms:", "faster by:")
    gains: dict[str, list[float]] = {}
    for one in _subjects(options):
        bundle = _compiled(one, options.folder)
        for level in ("x86-64-v2", "x86-64-v3") if bundle else ():
            assert bundle is not None
            features = next(known.cpu_features for known in LEVELS if known.name == level)
            other = replace(host, cpu_features=features)
            cache = options.folder / f"{one.name}.{level}"
            changed, _ = _tuned(bundle, cache, one.inputs, options.seconds, other)
            rule, tuned = _raced(bundle, one.inputs, options.rounds, [(other, None), (other, cache)])
            if statistics.median(rule) < LEAST_MS:
                continue
            gains.setdefault(level, []).append(_ratio(rule, tuned) if changed else 1.0)
            table.row(one.name, level, _ms(rule), _ms(tuned), f"{gains[level][-1]:.3f}")
    for level, of_level in gains.items():
        report.text(f"{level}: geometric mean {geometric_mean(of_level):.3f}, least {min(of_level):.3f}.")


def _exhaustive(report: Report, options: Namespace) -> None:
    table = report.table("model", "by the rules, ms:", "tuned, ms:", "searched, ms:", "tuned, faster by:",
                         "searched, faster by:", "steps changed:", "seconds:")  # fmt: skip
    gains, most = list[float](), list[float]()
    for one in _subjects(options):
        bundle = _compiled(one, options.folder)
        if bundle is None:
            continue
        cache, other = options.folder / f"{one.name}.tuned", options.folder / f"{one.name}.searched"
        changed, seconds = _tuned(bundle, cache, one.inputs, options.seconds)
        with patch.object(plan_tuning, "Race", ExhaustiveRace), patch.object(tuning, "MOST_SAMPLES", options.samples):
            changed_there, searching = _tuned(bundle, other, one.inputs, options.search)
        ways: list[tuple[Target | None, Path | None]] = [(None, None), (None, cache), (None, other)]
        times = rule, tuned, searched = _raced(bundle, one.inputs, options.rounds, ways)
        gains.append(_ratio(rule, tuned) if changed else 1.0)
        most.append(_ratio(rule, searched) if changed_there else 1.0)
        report.sample(part="exhaustive", model=one.name, rule_ms=rule, tuned_ms=tuned, searched_ms=searched)
        table.row(one.name, *map(_ms, times), f"{gains[-1]:.3f}", f"{most[-1]:.3f}", f"{changed}, {changed_there}",
                  f"{seconds:.1f}, {searching:.1f}")  # fmt: skip
    report.text(
        f"Geometric mean of {len(gains)}: tuned {geometric_mean(gains):.3f}, searched {geometric_mean(most):.3f}."
    )


class ExhaustiveRace(Race):
    """A race in which each step tries all sizes of caches with all sizes of buffers."""

    def __init__(self, facts_of: FactsOf, num_steps: int, how: RaceOptions) -> None:
        super().__init__(facts_of, num_steps, how)
        self._phases = [phase for phase in self._phases if phase != "caches"]

    def _alternatives(self, step: int) -> list[StepChoice]:
        if self._phase != "windows":
            return super()._alternatives(step)
        windows = super()._alternatives(step)
        self._phase = "caches"
        caches = super()._alternatives(step)
        self._phase = "windows"
        both = ((cache, window) for cache in caches for window in windows)
        return list(dict.fromkeys(window._replace(cache_bytes=window.cache_bytes or one.cache_bytes)
                                  for one, window in both))  # fmt: skip


def _subjects(options: Namespace) -> Iterator[Subject]:
    for name in matching([*all_names(options.zoo, options.models), *BUILT], options.only):
        if name in BUILT:
            yield replace(network_subject(BUILT[name][0], options.folder, BUILT[name][1]), name=name)
        else:
            yield subject(name, options.zoo, options.models)


def _compiled(one: Subject, folder: Path) -> Path | None:
    """Returns the bundle of a model for `native` alone; None where that does not take it whole."""
    bundle = folder / f"{one.name}.nnd"
    try:
        if not bundle.exists():
            compiled(one.path, bundle, backends=("native",), objective="priority")
        with load_bundle(bundle, threads=1, cache_dir="", trusted=True) as program:
            program.run(one.inputs)
    except NndeployError as err:
        sys.stderr.write(f"{one.name}: {err}\n")
        return None
    return bundle


@contextmanager
def _on(machine: Target | None) -> Iterator[None]:
    """Lets sessions be opened as if this were another machine."""
    with ExitStack() as stack:
        if machine is not None:
            for module in (session, kernel_library):
                stack.enter_context(patch.object(module, "host_target", lambda: machine))
        yield


def _loaded(bundle: Path, machine: Target | None, cache: Path | None, threads: int = 1) -> Program:
    with _on(machine):
        return load_bundle(bundle, threads=threads, cache_dir="" if cache is None else str(cache), trusted=True)


def _tuned(
    bundle: Path,
    cache: Path,
    inputs: Mapping[str, Any],
    seconds: float,
    machine: Target | None = None,
    threads: int = 1,
    *,
    is_fast: bool = False,
) -> tuple[int, float]:
    """Tunes into a cache; returns how many steps are changed, and the seconds that it took."""
    began = time.perf_counter()
    with _loaded(bundle, machine, cache, threads) as program:
        found = tune(program, [inputs], seconds, is_fast=is_fast)
    return sum(len(table["steps"]) for table in tables_of(found)), time.perf_counter() - began


def _raced(
    bundle: Path,
    inputs: Mapping[str, Any],
    rounds: int,
    ways: Sequence[tuple[Target | None, Path | None]],
    threads: int = 1,
    *,
    bound: float = 0.0,
) -> list[list[float]]:
    """Returns the milliseconds of each way's calls, round by round.

    Ways on the last one's machine give the same outputs, to `bound` of the largest value.
    """
    times: list[list[float]] = [[] for _ in ways]
    now = time.thread_time_ns if threads == 1 else time.perf_counter_ns
    for _ in range(MEMORIES):
        with ExitStack() as stack:
            order = random.sample(range(len(ways)), len(ways))
            programs = [stack.enter_context(_loaded(bundle, *ways[which], threads)) for which in order]
            outputs = {which: program.run(inputs) for which, program in zip(order, programs, strict=True)}
            alike = [outputs[which] for which, (machine, _) in enumerate(ways) if machine == ways[-1][0]]
            if not all(_is_same(alike[0], found, bound) for found in alike):
                raise SystemExit(f"{bundle.stem}: tuned choices change results")
            for number in range(rounds if threads == 1 else 5 * rounds):
                for turn in range(len(ways)):
                    at = (number + turn) % len(ways)
                    programs[at].run(inputs)  # caches as after a call of its own
                    began = now()
                    programs[at].run(inputs)
                    times[order[at]].append((now() - began) / 1e6)
    return times


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any], bound: float) -> bool:
    names = [name for name in one if isinstance(one[name], np.ndarray) and one[name].dtype != object]
    if bound:
        return largest_error([one[name] for name in names], [other[name] for name in names]) <= bound
    return all(np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in names)


def _ratio(one: Sequence[float], other: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def _decile(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 10]


def _ms(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.3f}"


if __name__ == "__main__":
    sys.exit(main())
