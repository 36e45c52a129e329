# SPDX-License-Identifier: Apache-2.0
"""All cases on all engines, in child processes: what ends one costs a case.

python tests/oracle/run_cases.py                         writes docs/reference/operators.md
python tests/oracle/run_cases.py -k MaxPool --engines native --show      prints what is not right, one case a line
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

BAD = ("wrong", "ended")
Outcomes = dict[str, dict[str, tuple[str, str]]]
"""Engine -> name of a case -> what came of it, and what was seen."""


def worker(engine: str) -> None:
    """Reads names of cases, one a line; answers with one JSON line each."""
    import warnings

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from oracle.cases import all_cases
    from oracle.engines import verdict_of

    cases = all_cases()
    for line in sys.stdin:
        try:
            verdict = verdict_of(cases[line.rstrip("\n")], engine)
            answer = [verdict.outcome, verdict.detail]
        except Exception as err:  # a failure of any kind is this case's outcome
            answer = ["wrong", f"{type(err).__name__}: {' '.join(str(err).split())[:300]}"]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def run(names: Sequence[str], engine: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields for each case what came of it on an engine."""
    process = _started(engine)
    for name in names:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        if answer := process.stdout.readline():
            outcome, detail = json.loads(answer)
            yield name, (outcome, detail)
        else:
            yield name, ("ended", f"the process ended with status {process.wait()}")
            process = _started(engine)
    process.communicate()


def _started(engine: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1", "NNDEPLOY_CACHE_DIR": ""}
    return subprocess.Popen(
        [sys.executable, __file__, "--worker", engine],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def print_bad(outcomes: Outcomes, kinds: Sequence[str]) -> None:
    """Prints cases of some outcomes, one a line."""
    for engine, of_cases in outcomes.items():
        for name, (outcome, detail) in of_cases.items():
            if outcome in kinds:
                print(f"{engine}: {outcome}: {name}: {detail}")


def main() -> int:
    """Runs what the command line asks for; 0 where nothing is wrong."""
    from oracle.cases import all_cases
    from oracle.engines import ENGINES
    from oracle.page import summary, written_page

    parser = argparse.ArgumentParser(description="every case of the oracle on every engine")
    parser.add_argument("-k", default="", help="only cases whose name matches this regular expression")
    parser.add_argument("--engines", default=",".join(ENGINES), help="which engines, separated by commas")
    parser.add_argument("--show", action="store_true", help="print what is not right, and write no page")
    parser.add_argument("--refused", action="store_true", help="print what is refused too")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return 0
    names = [name for name in all_cases() if re.search(options.k, name)]
    engines = options.engines.split(",")
    with ThreadPoolExecutor(len(engines)) as pool:
        parts = pool.map(lambda engine: dict(run(names, engine)), engines)
        outcomes: Outcomes = dict(zip(engines, parts, strict=True))
    print_bad(outcomes, [*BAD, "error", *(["refused"] if options.refused else [])])
    if not options.show:
        page = TESTS.parent / "docs" / "reference" / "operators.md"
        page.write_text(written_page({name: all_cases()[name] for name in names}, outcomes), encoding="utf-8")
    print(summary(outcomes))
    return int(any(outcome in BAD for of_cases in outcomes.values() for outcome, _ in of_cases.values()))


if __name__ == "__main__":
    sys.exit(main())
