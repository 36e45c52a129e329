# SPDX-License-Identifier: Apache-2.0
"""What the passes do to real models, as the Markdown table of docs/internals/passes.md.

    python tests/bench/bench_passes.py [model.onnx ...]

Without arguments: the models beside the repository (../shared/models). Time is the median of five runs of `optimise`,
each on a model loaded anew.
"""

import argparse
import statistics
import time
from pathlib import Path

import onnx_ir as ir
from real_models import MODELS

from nndeploy.frontend.load import load_model
from nndeploy.graph.operator_rules import ANY_DOMAIN
from nndeploy.passes import optimise

REPEATS = 5


def num_nodes(model: ir.Model) -> int:
    """Returns the number of nodes, those inside bodies included, Constant nodes not."""
    return sum(node.op_type != "Constant" for node in model.graph.all_nodes())


def row(path: Path) -> str:
    """Returns the line of one model."""
    milliseconds = []
    for _ in range(REPEATS):
        model = load_model(path, extra_domains=ANY_DOMAIN).model
        before = num_nodes(model)
        start = time.perf_counter_ns()
        reports = optimise(model)
        milliseconds.append((time.perf_counter_ns() - start) / 1e6)
    done = ", ".join(f"{report.name} {report.count}" for report in reports if report.count)
    return f"| {path.stem} | {before} | {num_nodes(model)} | {statistics.median(milliseconds):.0f} | {done} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="what the passes do to models")
    parser.add_argument("models", nargs="*", type=Path, help="none: those beside the repository")
    paths = parser.parse_args().models or sorted(MODELS.glob("*.onnx"))
    print("| model | nodes | after | ms | what was done, how often |")
    print("| --- | ---: | ---: | ---: | --- |")
    for path in paths:
        print(row(path), flush=True)


if __name__ == "__main__":
    main()
