# SPDX-License-Identifier: Apache-2.0
"""All cases on all engines, in child processes: what ends one costs a case.

python tests/oracle/run_cases.py                         writes docs/reference/operators.md
python tests/oracle/run_cases.py -k MaxPool --engines native --show      prints what is not right, one case a line
"""

import argparse
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from oracle.children import ask, serve  # noqa: E402 - the folder of tests is found now

BAD = ("wrong", "ended")
Outcomes = dict[str, dict[str, tuple[str, str]]]
"""Engine -> name of a case -> what came of it, and what was seen."""


def worker(engine: str) -> None:
    """Answers names of cases with what came of them."""
    import warnings

    warnings.simplefilter("ignore")
    from oracle.cases import all_cases
    from oracle.engines import verdict_of

    cases = all_cases()

    def answer(name: str) -> tuple[str, str]:
        verdict = verdict_of(cases[name], engine)
        return verdict.outcome, verdict.detail

    serve(answer)


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
        parts = pool.map(lambda engine: list(ask([__file__, "--worker", engine], names)), engines)
        outcomes: Outcomes = {e: {n: (o, d) for n, o, d in part} for e, part in zip(engines, parts, strict=True)}
    print_bad(outcomes, [*BAD, "error", *(["refused"] if options.refused else [])])
    if not options.show:
        page = TESTS.parent / "docs" / "reference" / "operators.md"
        page.write_text(written_page({name: all_cases()[name] for name in names}, outcomes), encoding="utf-8")
    print(summary(outcomes))
    return int(any(outcome in BAD for of_cases in outcomes.values() for outcome, _ in of_cases.values()))


if __name__ == "__main__":
    sys.exit(main())
