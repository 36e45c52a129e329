# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend test suite through nndeploy: every case compiled, packed, loaded and run.

    python tests/conformance/onnx_suite.py            all cases, the table, and what fails with its reason
    python tests/conformance/onnx_suite.py -k Conv    only cases whose name matches
    python tests/conformance/onnx_suite.py --shown    each compile is shown the case's own inputs

A compile is shown the model alone, as one of a model that is not in any suite, unless --shown. The outputs are compared
by the suite's own comparison with its own tolerances, which the compile is asked to keep (shown no inputs, to keep the
usual ones where no backend keeps these on the inputs that it made up). A case that is random by definition is compared
by shape and element type. Cases run in worker processes, so that a library that crashes costs
one case.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
RANDOM = re.compile(r"test_bernoulli(_|$)")
SECONDS_A_CASE = 120.0


def cases() -> dict[str, Any]:
    """Returns the suite's cases by `kind/name`; the light networks are the kind "real"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose while it makes its data
        from onnx.backend.test.loader import load_model_tests

        return {f"{kind}/{case.name}": case for kind in KINDS for case in load_model_tests(kind=kind)}


def model_and_data(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """Returns a case's model and its data sets: (inputs, expected outputs), in the order of the graph."""
    import onnx
    from onnx import numpy_helper

    if case.model is not None:

        def plain(value: Any) -> Any:
            return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value

        return case.model, [([plain(v) for v in ins], [plain(v) for v in outs]) for ins, outs in case.data_sets]
    if case.model_dir is None:
        return _light_network(case)
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    return model, [_data_set(model, data) for data in sorted(folder.glob("test_data_set*"))]


def _data_set(model: Any, folder: Path) -> tuple[list[Any], list[Any]]:
    return tuple(  # type: ignore[return-value]
        [_proto_value(folder / f"{side}_{i}.pb", infos[i].type) for i in range(len(list(folder.glob(f"{side}_*.pb"))))]
        for side, infos in (("input", model.graph.input), ("output", model.graph.output))
    )


def _proto_value(file: Path, kind: Any) -> Any:
    import onnx
    from onnx import numpy_helper

    data = file.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _light_network(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """Returns a light network with the suite's own dummy input and the output it ships for it."""
    import onnx
    from onnx.backend.test.runner import Runner

    root = Path(onnx.__file__).parents[1]
    model = onnx.load(root / case.url)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(info) for info in model.graph.input if info.name not in constants]
    prefix = str(root / case.url).removesuffix(".onnx")
    outputs = [_proto_value(Path(f"{prefix}_output_{i}.pb"), info.type) for i, info in enumerate(model.graph.output)]
    return model, [(inputs, outputs)]


def run_case(name: str, case: Any, backends: str | None, shown: bool, folder: Path) -> dict[str, Any]:
    """Compiles, packs, loads and runs one case; returns its outcome as plain data."""
    import nndeploy

    start = time.perf_counter()
    model, data_sets = model_and_data(case)
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [info.name for info in model.graph.input if info.name not in constants]
    samples = [dict(zip(names, inputs, strict=False)) for inputs, _ in data_sets]
    bundle = folder / "case.nnd"
    report = _compiled(model, bundle, case, backends, samples if shown else None)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        for sample, (_, expected) in zip(samples, data_sets, strict=True):
            got = program.run(sample)
            _compare(name, case, expected, [got[info.name] for info in model.graph.output])
    shares = {backend: round(report.share_of(backend), 3) for backend in report.backends}
    taken = sorted({submodel.backend for submodel in report.submodels})
    return {
        "ok": True,
        "backends": "+".join(taken) or "none",
        "shares": shares,
        "dropped": report.dropped,
        "seconds": time.perf_counter() - start,
    }


def _compiled(model: Any, bundle: Path, case: Any, backends: str | None, samples: Any) -> Any:
    """Compiles a case to its tolerances; shown no inputs to the usual ones, where nobody keeps them on made-up ones."""
    import nndeploy
    from nndeploy.errors import CheckError, ModelError
    from nndeploy.options.texts import names_in

    options: dict[str, Any] = {
        "backends": None if backends is None else names_in(backends),
        "samples": samples,
        "keep_fallback": backends is None,
    }
    options["objective"] = "priority"  # it is numbers that are compared: nothing is timed
    options["allow_uncompared"] = True  # the suite compares
    try:
        return nndeploy.compile_model(model, bundle, nndeploy.CompileOptions(rtol=case.rtol, atol=case.atol, **options))
    except (CheckError, ModelError):
        if samples is not None:
            raise
        return nndeploy.compile_model(model, bundle, nndeploy.CompileOptions(**options))


def _compare(name: str, case: Any, expected: Any, got: Any) -> None:
    """Compares as the suite does; lists are walked here, for the suite cannot compare scalars inside a sequence."""
    import numpy as np
    from onnx.backend.test.runner import Runner

    if isinstance(expected, list | tuple):
        assert isinstance(got, list | tuple), f"a {type(got).__name__} instead of a list"
        assert len(got) == len(expected), f"{len(got)} elements instead of {len(expected)}"
        for e, g in zip(expected, got, strict=True):
            _compare(name, case, e, g)
    elif expected is None or got is None:
        assert expected is got, f"expected {expected!r:.60}, got {got!r:.60}"
    elif RANDOM.search(name):
        got = np.asarray(got)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype), "another shape or element type"
    else:
        Runner.assert_similar_outputs([expected], [got], rtol=case.rtol, atol=case.atol)


def worker(backends: str | None, shown: bool) -> None:
    """Reads case names from standard input, one a line; answers with one JSON line each."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    known = cases()
    for line in sys.stdin:
        name = line.strip()
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = run_case(name, known[name], backends, shown, Path(folder))
            except Exception as err:  # any failure of any kind is this case's outcome
                outcome = {"ok": False, "reason": f"{type(err).__name__}: {' '.join(str(err).split())[:400]}"}
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


def run_all(names: Sequence[str], backends: str | None, shown: bool, jobs: int) -> dict[str, dict[str, Any]]:
    """Returns the outcome of every case, run in `jobs` worker processes at once."""
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in names:
        waiting.put(name)
    with ThreadPoolExecutor(jobs) as pool:
        parts = [pool.submit(lambda: dict(_drain(waiting, backends, shown))) for _ in range(jobs)]
        outcomes = {name: outcome for part in parts for name, outcome in part.result().items()}
    return {name: outcomes[name] for name in names}


def _drain(waiting: "SimpleQueue[str]", backends: str | None, shown: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    process = _start_worker(backends, shown)
    while True:
        try:
            name = waiting.get_nowait()
        except Empty:
            break
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(name + "\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            outcome = json.loads(answer)
            if not outcome["ok"]:
                print(f"{name}: {outcome['reason']}", file=sys.stderr, flush=True)
            yield name, outcome
        else:
            yield name, {"ok": False, "reason": f"the process ended with status {process.wait()}"}
            process = _start_worker(backends, shown)
    process.communicate()


def _start_worker(backends: str | None, shown: bool) -> "subprocess.Popen[str]":
    arguments = [sys.executable, __file__, "--worker", *(["--backends", backends] if backends else [])]
    arguments += ["--shown"] if shown else []
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    return subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def print_table(outcomes: dict[str, dict[str, Any]], seconds: float) -> None:
    """Prints cases and passes by kind, who ran them, and every failure with its reason."""
    print("| kind | cases | pass |")
    print("| --- | ---: | ---: |")
    suite = [name for name in outcomes if not name.startswith("real/")]
    for kind in KINDS:
        inside = [name for name in outcomes if name.startswith(kind + "/")]
        passed = sum(outcomes[name]["ok"] for name in inside)
        if inside:
            print(f"| {'light networks' if kind == 'real' else kind} | {len(inside)} | {passed} |")
    passed = sum(outcomes[name]["ok"] for name in suite)
    if suite:
        print(f"| **the suite** | **{len(suite)}** | **{passed} ({passed / len(suite):.2%})** |")
    print("\n| run by | cases |\n| --- | ---: |")
    for backends, count in Counter(o["backends"] for o in outcomes.values() if o["ok"]).most_common():
        print(f"| {backends} | {count} |")
    dropped = sum(bool(outcome.get("dropped")) for outcome in outcomes.values())
    print(f"\nIn {dropped} cases a backend's numbers or build were wrong and the next tier took over. {seconds:.0f} s.")
    for name, outcome in outcomes.items():
        if not outcome["ok"]:
            print(f"\nFAIL {name}: {outcome['reason']}")


def main() -> int:
    """Runs the suite as the command line asks; 0 when the share of passes is at least --at-least."""
    parser = argparse.ArgumentParser(description="ONNX's backend test suite through nndeploy")
    parser.add_argument("-k", default="", help="only cases whose name matches this regular expression")
    parser.add_argument("--backends", help="backends in order of priority; default: all")
    parser.add_argument("--shown", action="store_true", help="show each compile the inputs that it will be judged by")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--at-least", type=float, default=0.995, help="exit 1 below this share of the suite")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.backends, options.shown)
        return 0
    names = [name for name in cases() if re.search(options.k, name)]
    start = time.perf_counter()
    outcomes = run_all(names, options.backends, options.shown, options.jobs)
    print_table(outcomes, time.perf_counter() - start)
    if options.json:
        options.json.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")
    return 0 if sum(o["ok"] for o in outcomes.values()) >= options.at_least * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
