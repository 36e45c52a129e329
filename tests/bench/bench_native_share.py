# SPDX-License-Identifier: Apache-2.0
"""What our own CPU kernels take of each real model that nothing is told of: nodes, share of the compute, why not more.

    python tests/bench/bench_native_share.py [--models FOLDER] [--only name,name]

The model is read and optimised as `nndeploy compile MODEL` does it, without `--shape`, and once more with its sizes set
to those of the recorded sample; then the backend `native` is asked for each node. The compute is that of the recorded
sample. Nothing is timed.
"""

import argparse
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from interleaved import Array
from native_engines import machine_line
from nndeploy_native.support import supports
from real_models import MODELS, names_in, real_model

from nndeploy.errors import NndeployError
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.graph.nodes import node_name
from nndeploy.partition.concrete_shapes import concrete_shapes
from nndeploy.partition.cost import estimate_costs
from nndeploy.passes import optimisations, optimise
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import TensorType


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="what our own CPU kernels take of models that nothing is told of")
    parser.add_argument("--models", type=Path, default=MODELS, help="the folder of the real models")
    parser.add_argument("--only", help="names, with commas between them")
    options = parser.parse_args()
    print(machine_line(), end="\n\n")
    print("| model | open sizes | nodes | taken | compute | compute, sizes given | not taken, most often |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in options.only.split(",") if options.only else names_in(options.models):
        print(_row(options.models, name), flush=True)


def _row(folder: Path, name: str) -> str:
    model = real_model(folder, name)
    shapes = {key: array.shape for key, array in model.inputs.items()}
    try:
        loaded, fixed = load_model(model.path), load_model(model.path, shapes=shapes)
    except NndeployError as err:
        return f"| {name} | | | | | | {str(err).splitlines()[0].replace(str(model.path), name)} |"
    types = [one.type for one in loaded.inputs if isinstance(one.type, TensorType)]
    open_sizes = {size for one in types for size in one.shape or () if isinstance(size, str)}
    taken, nodes, compute, reasons = _taken(loaded, model.inputs)
    said = "; ".join(f"{count} {text}" for text, count in reasons.most_common(2))
    given = _taken(fixed, model.inputs)[2]
    return f"| {name} | {len(open_sizes)} | {nodes} | {taken} | {compute:.1%} | {given:.1%} | {said} |"


def _taken(loaded: LoadedModel, sample: Mapping[str, Array]) -> tuple[int, int, float, Counter[str]]:
    """Returns how many nodes are taken, of how many, their share of the compute, and reasons with their counts."""
    optimise(loaded.model, loaded.ranges, passes=optimisations(loaded.ranges))
    answers = supports(loaded.model, host_target(), BuildOptions(ranges=loaded.ranges))
    costs = estimate_costs(loaded.model, concrete_shapes(loaded.model, sample))
    nodes = list(loaded.model.graph)
    compute = sum(costs.compute_share(node_name(node)) for node, one in zip(nodes, answers, strict=True) if one.ok)
    reasons = Counter(f"{node.op_type}: {one.reason}" for node, one in zip(nodes, answers, strict=True) if not one.ok)
    return sum(one.ok for one in answers), len(nodes), compute, reasons


if __name__ == "__main__":
    main()
