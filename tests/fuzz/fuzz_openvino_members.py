# SPDX-License-Identifier: Apache-2.0
"""Members for OpenVINO that say something else, hashes made right: fuzz_openvino_members.py [--count N] [--first N].

Each mutant is opened and run as the run half does, in a forked child. It must be refused by one typed line, or give
values of the types and shapes that the manifest says; their numbers may be others. A signal, a hang, an untyped error
or another shape is a finding: it is printed, and the exit code is 1. Who takes much memory within the limit is counted
apart: as much as a legal model asks for is no fault.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import forked_trials
import numpy as np
from openvino_mutants import mutant
from openvino_seeds import Seed, make_seeds, read_seeds

from nndeploy.bundle.manifest import Submodel, Variant
from nndeploy.errors import NndeployError
from nndeploy.runtime.chain import ChainStep
from nndeploy.runtime.select import SessionOptions, open_submodel
from nndeploy.target.target import host_target
from nndeploy.values.types import TensorType, Value, numpy_dtype

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30.0
ENDLESS = "a Loop that does not end"
MEMORY_BYTES = 6 * 2**30
PEAK_BYTES = 2 * 2**30
"""What a small model takes more of is counted apart."""


def run(seed: Seed) -> Mapping[str, Value]:
    """Returns the outputs of a seed's members, opened and run as those of a bundle."""
    types = {**seed.inputs, **seed.outputs}
    files = {"model.xml": memoryview(seed.graph), "model.bin": memoryview(seed.weights)}
    variant = Variant("v", "openvino", "box", {name: name for name in files}, seed.metadata)
    submodel = Submodel("s0", tuple(seed.inputs), tuple(seed.outputs), (variant,))
    session, _ = open_submodel(submodel, lambda _: files, SessionOptions(threads=1), host_target(), types=types)
    try:
        return ChainStep(submodel, session, "openvino", types)(seed.values())
    finally:
        session.close()


def outcome(seed: Seed) -> str:
    """Returns "ran", "refused CODE: why" or "wrong: why"."""
    try:
        results = run(seed)
    except NndeployError as err:
        text = str(err)
        if err.exit_code == 70 or "\n" in text or not text.isprintable():
            return f"wrong: no typed line: {err.exit_code} {text}"
        return f"refused {err.exit_code}: {text}"
    for name, kind in seed.outputs.items():
        if problem := misfit(results[name], kind):
            return f"wrong: output {name!r} is {problem}, the manifest says {kind}"
    return "ran"


def misfit(value: Value, kind: TensorType) -> str:
    """Returns how an output is not what the manifest says, or ""; a size that has a name there may be any."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    wanted = kind.shape or ()
    fits = len(wanted) == value.ndim and all(
        not isinstance(want, int) or want == size for want, size in zip(wanted, value.shape, strict=True)
    )
    return "" if fits and value.dtype == numpy_dtype(kind.dtype) else f"{value.dtype.name}{list(value.shape)}"


PAGE = """The
graphs and weights of {seeds:,} small models, ONNX's own node tests most of them, are changed in one to three places:
attributes, shapes, types and places of constants, tables of integers, edges, kinds of layers, bodies, elements of the
text, bytes. Of three in ten the call has numbers that nobody expects: not a number, infinite, the largest, below zero.
Each is opened and run on one thread as the run half does, with hashes that are right, in a forked child; mutant
{first} and those after it.

**{count:,} mutants, {findings:,} findings.** A finding is a signal, silence for {seconds:g} s and again for four
times as long, an error that is no typed line, or an output of another type or shape than the manifest says.

| outcome | mutants |
| --- | ---: |
{rows}

`refused` with the exit code; 69 is what the library itself refuses to open. A child has {memory} GiB; more is a
refusal, and who takes more than {peak} GiB is counted as such: as much as a legal model asks for is no fault here.
"""


class Trial:
    """The trial of a number: the mutant of one of the seeds."""

    def __init__(self, seeds: Sequence[Seed]) -> None:
        self.seeds = seeds

    def mutant(self, number: int) -> tuple[Seed, str]:
        seed = self.seeds[number % len(self.seeds)]
        changed, said = mutant(seed, number)
        return changed, f"{seed.name}: {said}"

    def __call__(self, number: int) -> str:
        before = _peak_bytes()
        said = outcome(self.mutant(number)[0])
        peak = _peak_bytes()
        return f"much memory: {peak / 2**30:.1f} GiB" if peak - before > PEAK_BYTES else said


def _peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def is_finding(said: str) -> bool:
    return not said.startswith(("ran", "refused", "much memory", ENDLESS))


def kind_of(said: str, graph: bytes) -> str:
    """Returns what an outcome is counted as; a Loop may be one that ends for nobody, as the model says."""
    kind = said.split(":")[0]
    return ENDLESS if kind == "hang" and b'type="Loop"' in graph else kind


def page(counts: Counter[str], num_seeds: int, first: int) -> str:
    return PAGE.format(
        count=counts.total(), seeds=num_seeds, first=first,
        findings=sum(count for kind, count in counts.items() if is_finding(kind)),
        rows="\n".join(f"| {kind} | {count:,} |" for kind, count in counts.most_common()),
        seconds=SECONDS, memory=MEMORY_BYTES >> 30, peak=PEAK_BYTES >> 30,
    )  # fmt: skip


PART = forked_trials.CHILD_TRIALS
_FORK = multiprocessing.get_context("fork")


def tried(trial: Trial, numbers: range, until: float) -> Counter[str]:
    """Returns how often which outcome came of the mutants of numbers, as far as time allows; findings are printed."""
    counts = Counter[str]()
    for number, said in forked_trials.outcomes(trial, numbers, SECONDS, MEMORY_BYTES):
        if said.startswith("hang"):  # on a busy machine an answer may be late
            said = next(forked_trials.outcomes(trial, range(number, number + 1), 4 * SECONDS, MEMORY_BYTES))[1]
        changed, what = trial.mutant(number) if is_finding(said) else (None, "")
        kind = kind_of(said, changed.graph if changed else b"")
        counts[kind] += 1
        if is_finding(kind):
            print(f"FINDING {number}: {said} | {what}", flush=True)
        if time.monotonic() > until:
            break
    return counts


def tally(trial: Trial, numbers: range, jobs: int, until: float) -> Counter[str]:
    """Returns what `tried` does, of several processes; a part of the numbers after another, whoever is free."""
    parts = _FORK.SimpleQueue()

    def watch(answer: Connection) -> None:
        counts = Counter[str]()
        while part := parts.get():
            counts += tried(trial, part, until) if time.monotonic() < until else Counter[str]()
        answer.send(counts)

    answers = []
    for _ in range(jobs):
        answer, theirs = _FORK.Pipe(duplex=False)
        _FORK.Process(target=watch, args=(theirs,)).start()
        theirs.close()  # so that one that died is an end of file
        answers.append(answer)
    for at in range(0, len(numbers), PART):
        parts.put(numbers[at : at + PART])
    for _ in answers:
        parts.put(None)
    return sum((answer.recv() for answer in answers), Counter[str]())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many mutants")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after these, with fewer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many are tried at once")
    parser.add_argument(
        "--small", action="store_true", help="only the seeds that are written here, not ONNX's node tests"
    )
    parser.add_argument(
        "--seeds", type=Path, default=ROOT / "build/fuzz/openvino-seeds.jsonl", help="where they are kept"
    )
    parser.add_argument("--write", action="store_true", help="write the section of docs/figures")
    asked = parser.parse_args()
    make_seeds(asked.seeds, is_small=asked.small)
    trial, begin = Trial(read_seeds(asked.seeds)), time.monotonic()
    counts = tally(trial, range(asked.first, asked.first + asked.count), asked.jobs, begin + 60 * asked.minutes)
    seconds = time.monotonic() - begin
    print(f"{counts.total()} mutants of {len(trial.seeds)} seeds in {seconds:.0f} s: {dict(counts.most_common())}")
    if asked.write:
        sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
        import figures

        text = page(counts, len(trial.seeds), asked.first)
        figures.page_section("robustness.md", "Damaged graphs of OpenVINO", "fuzz-openvino-members", text)
    sys.exit(any(is_finding(kind) for kind in counts))


if __name__ == "__main__":
    main()
