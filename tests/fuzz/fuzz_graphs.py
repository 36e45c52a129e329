# SPDX-License-Identifier: Apache-2.0
"""Random graphs of all operators of ONNX, each engine against the oracle; what differs is printed with its seed.

    python tests/fuzz/fuzz_graphs.py --count 1000 --seed 0 --engines reference,native,onnxruntime,openvino,default

An engine runs in a child process, which a graph may end. A graph is drawn again from its seed:

    python tests/fuzz/fuzz_graphs.py --seed 123 --count 1 --engines native --text
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from oracle.children import ask, serve  # noqa: E402 - the folder of tests is found now


def worker(engine: str, has_edges: bool) -> None:
    import warnings

    warnings.simplefilter("ignore")
    from oracle.random_graphs import draw, outcome_of

    serve(lambda seed: outcome_of(draw(int(seed), has_edges=has_edges), engine))


def main() -> int:
    """Runs the graphs that the command line asks for; 0 where no engine is wrong."""
    parser = argparse.ArgumentParser(description="random graphs of all operators against the oracle")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--engines", default="reference,default", help="which engines, separated by commas")
    parser.add_argument("--ordinary", action="store_true", help="ordinary numbers and sizes alone")
    parser.add_argument("--text", action="store_true", help="print each graph")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, not options.ordinary)
        return 0
    seeds, engines = range(options.seed, options.seed + options.count), options.engines.split(",")
    if options.text:
        from onnx import printer
        from oracle.random_graphs import draw

        for seed in seeds:
            print(printer.to_text(draw(seed, has_edges=not options.ordinary).model))
    with ThreadPoolExecutor(len(engines)) as pool:
        counts = dict(zip(engines, pool.map(lambda e: _counted(seeds, e, not options.ordinary), engines), strict=True))
    for engine, count in counts.items():
        print(engine, dict(count))
    return int(any(count["wrong"] or count["ended"] for count in counts.values()))


def _counted(seeds: range, engine: str, has_edges: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    command = [__file__, "--worker", engine, *([] if has_edges else ["--ordinary"])]
    for seed, outcome, detail in ask(command, map(str, seeds)):
        counts[outcome] += 1
        if outcome in ("wrong", "ended", "error"):
            print(f"{engine}: seed {seed}: {outcome}: {detail}", flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(main())
