# SPDX-License-Identifier: Apache-2.0
"""This tree against another checkout: the same models, each compiled by either, raced.

`make bench-trees ARGS="../earlier"`, where `make setup` was run there. Both compile by default and are told the model
alone. "times" is the other tree's time over this one's: over 1 where this one is faster. Where the numbers of the two
bundles are not the same there is no ratio. Exit code 1 where they are not, where one of the trees has no bundle, or
where the geometric mean is below 0.99.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from commands import ran
from figures import tree
from interleaved import Engine, Pace, Race, race
from model_sets import Subject, all_names, subject
from report import Report, add_models, add_race, bench_parser, geometric_mean, matching

FLOOR, SAME = 0.99, 2e-3
"""The least geometric mean; how far outputs of the same numbers are apart, of the largest value."""


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("other", type=Path, help="another checkout, after `make setup`")
    parser.add_argument("patterns", nargs="*", help="names of models, with * and ?; none: all")
    add_models(parser, zoo=True)
    add_race(parser, seconds=0.05, rounds=31)
    options = parser.parse_args()
    pythons = {"this": sys.executable, "other": str(options.other.resolve() / ".venv/bin/python")}
    pace = Pace(options.seconds, options.rounds, warm_seconds=0.3, enough_seconds=10.0)
    names = matching(all_names(options.zoo, options.models), options.patterns)
    ratios = list[float]()
    with Report(options, "speed.md", "Against an earlier tree") as report:
        report.text(f"This tree is {tree()}, the other {tree(options.other)}.")
        table = report.table("model", "threads:", "this ms:", "other ms:", "times:", "error:")
        for name in names:
            for threads, found in _races(subject(name, options.zoo, options.models), pythons, options.threads, pace):
                errors = found.drop_others(found.outputs.get("other", []), SAME, ())
                ratio, error = found.ratio("this", ["other"]), errors.get("this")
                ratios += [ratio] if error is not None else []
                cells = [f"{ratio:.3f}", f"{error:.0e}"] if error is not None else ["", ""]
                table.row(name, threads, found.ms_text("this"), found.ms_text("other"), *cells)
                report.sample(name=name, threads=threads, rounds=found.rounds, refused=found.refused)
        mean = geometric_mean(ratios)
        report.text(f"Geometric mean of {len(ratios)} of {len(names) * len(options.threads)}: {mean:.3f}.")
    sys.exit(len(ratios) < len(names) * len(options.threads) or mean < FLOOR)


def _races(
    one: Subject, pythons: Mapping[str, str], threads: Sequence[int], pace: Pace
) -> Iterator[tuple[int, Race]]:  # fmt: skip
    """Yields a race on each number of threads; who does not compile the model is not in it."""
    with tempfile.TemporaryDirectory(prefix="nndeploy-trees-") as name:
        bundles = {side: Path(name) / f"{side}.nnd" for side in pythons}
        for side, python in pythons.items():
            ran([python, "-m", "nndeploy", "compile", one.path, "-o", bundles[side], "--no-cache"], cwd=Path(name))
        for count in threads:
            engines = [
                Engine(
                    side, "engines:whole", {"engine": "bundle", "model": str(bundle), "threads": count}, python=python
                )
                for side, python in pythons.items()
                if (bundle := bundles[side]).exists()
            ]
            yield count, race(engines, one.inputs, pace)


if __name__ == "__main__":
    main()
