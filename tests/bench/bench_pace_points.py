# SPDX-License-Identifier: Apache-2.0
"""What pace points cost in ONNX Runtime with no delay: behind every operator, as they are placed, and as segments.

    python tests/bench/bench_pace_points.py [MODEL ...] [--seconds 10] [--json out.json]

Sessions of the same bundle run in turn on one thread of one core; told are medians of the thread's processor time.
Two sessions without points tell how much of a difference is noise. `program` is a whole run of a program, paced against
not paced, which adds what the pacer does once a run; with 2% granted, all of which is kept in reserve, none sleeps.
Outputs are compared bit by bit. Below each table stands what the pacer itself does in Python a run, the looks at what
runs did and the plans that are made anew included: the mean of runs in which nothing is computed.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from native_engines import machine_line
from nndeploy_onnxruntime import pace_segments, paced_session, placed_points
from real_models import MODELS, real_model

import nndeploy
from nndeploy.pacing.goal import PaceGoal
from nndeploy.runtime.paced import shapes_of

NAMES = ("ultraface_rfb320", "fastestdet", "mobilenet_v2_quant", "basic_pitch", "ppocr_det_mobile_v2")
GOAL = PaceGoal(cpu_limit=0.98)
EMPTY_RUNS = 20_000
WAYS: dict[str, list[tuple[Any, str, Any]]] = {
    "every operator": [(placed_points, "PART_NS", -1.0)],
    "as placed": [],
    "segments": [(paced_session, "operator_problem", lambda _: "not asked for"), (pace_segments, "MOST_COST", 1.0)],
}
"""What is changed for each way: of a module, a name, and its value."""


def main() -> None:
    """Prints a table for each model."""
    parser = argparse.ArgumentParser(description="what pace points cost in ONNX Runtime")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each model")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not MODELS.exists():
        sys.exit("this needs ../shared/models")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(machine_line(), end="\n\n")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or NAMES:
            found[name] = _measured(name, Path(folder) / f"{name}.nnd", options.seconds)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


@contextlib.contextmanager
def _changed(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _measured(name: str, bundle: Path, seconds: float) -> dict[str, Any]:
    model = real_model(MODELS, name)
    nndeploy.compile_model(
        model.path,
        bundle,
        nndeploy.CompileOptions(
            backends=("onnxruntime",),
            pace=True,
            keep_fallback=False,
            shapes={key: value.shape for key, value in model.inputs.items()},
        ),
    )
    with contextlib.ExitStack() as stack:
        programs, load_s = dict[str, nndeploy.Program](), dict[str, float]()
        for way in ("without", "without again", *WAYS):
            begin = time.perf_counter()
            with _changed(WAYS.get(way, [])):
                program = nndeploy.load_bundle(
                    bundle, nndeploy.LoadOptions(threads=1), pace=GOAL if way in WAYS else None
                )
            programs[way], load_s[way] = stack.enter_context(program), time.perf_counter() - begin
        calls = {way: _only_session(program).run for way, program in programs.items()}
        calls |= {"program": programs["without"].run, "program, as placed": programs["as placed"].run}
        ms = _interleaved(name, calls, model.inputs, seconds)
        print(f"### {name}: {ms['without']:.3f} ms\n\n| points | ms | | a point, us | load, s | |")
        print("| --- | ---: | ---: | ---: | ---: | --- |")
        rows = {}
        for way in ("without again", *WAYS, "program, as placed"):
            plain, pacer = ms["program" if way.startswith("program") else "without"], programs.get(way, None)
            note = "; ".join(pacer.pacer.notes) if pacer is not None and pacer.pacer is not None else ""
            count = len(pacer.pacer.points) if pacer is not None and pacer.pacer is not None else 0
            each = 1e3 * (ms[way] - plain) / count if count else 0.0
            rows[way] = {"ms": ms[way], "share": ms[way] / plain - 1, "points": count, "load_s": load_s.get(way, 0.0)}
            print(
                f"| {way} | {ms[way]:.3f} | {ms[way] / plain - 1:+.2%} | {each:.2f} "
                f"| {load_s.get(way, 0.0):.2f} | {note.partition(': ')[2]} |",
                flush=True,
            )
        pacer_us = _pacer_us(programs["as placed"], model.inputs)
        print(f"\nThe pacer in Python: {pacer_us:.1f} us a run, {1e-3 * pacer_us / ms['program']:.2%} of it.\n")
    return {"ms": ms["without"], "ways": rows, "pacer_us": pacer_us}


def _pacer_us(program: nndeploy.Program, inputs: dict[str, Any]) -> float:
    """Returns the microseconds of processor time that a paced run takes in which nothing is done."""
    pacer, shapes = program.pacer, shapes_of(inputs)
    assert pacer is not None
    begin = time.thread_time()
    for _ in range(EMPTY_RUNS):
        with pacer.run(shapes):
            pass
    return (time.thread_time() - begin) * 1e6 / EMPTY_RUNS


def _only_session(program: nndeploy.Program) -> Any:
    (session,) = program._opened.sessions
    return session


def _interleaved(
    name: str, calls: dict[str, Callable[[Any], Any]], inputs: dict[str, Any], seconds: float
) -> dict[str, float]:
    """Returns the median milliseconds of processor time of each call."""
    want = {key: value.tobytes() for key, value in calls["without"](inputs).items()}
    for way, call in calls.items():
        if {key: value.tobytes() for key, value in call(inputs).items()} != want:
            sys.exit(f"{name}, {way}: the outputs differ")
    ms: dict[str, list[float]] = {way: [] for way in calls}
    end = time.monotonic() + seconds
    turn = list(calls.items())
    while time.monotonic() < end:
        turn = [*turn[1:], turn[0]]  # what the one before leaves in the caches is not one way's business alone
        for way, call in turn:
            begin = time.thread_time()
            call(inputs)
            ms[way].append((time.thread_time() - begin) * 1e3)
    return {way: float(np.median(times)) for way, times in ms.items()}


if __name__ == "__main__":
    main()
