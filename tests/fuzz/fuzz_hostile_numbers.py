# SPDX-License-Identifier: Apache-2.0
"""Legal calls that nobody expects, of every operator on every CPU backend: fuzz_hostile_numbers.py [--count N].

Each model of hostile_mutants.py is built for a backend, opened and called in a forked child: with the least and the
largest number, -1, 0, NaN, infinities, and with axes of size 0. The backend may refuse the model, or give outputs or an
error. A signal, a hang, or much memory is a finding: it is printed, and the exit code is 1. What the numbers must be,
tests/unit/backends/test_backends_edge_values.py says.
"""

import argparse
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import forked_trials
import numpy as np
import onnx_ir as ir
from hostile_mutants import Mutant, cases
from onnx import shape_inference

from nndeploy.errors import BuildRefusedError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Backend, BuildOptions, OpenOptions
from nndeploy.plugin.registry import backend
from nndeploy.target.target import Target, host_target

BACKENDS = ("native", "onnxruntime", "openvino")
CALLS = 6
SECONDS = 30.0
MEMORY_BYTES, PEAK_BYTES = 8 * 2**30, 5 * 2**29
"""What a child may take, and what a trial may: 2^28 elements of 8 bytes, and a little."""
OUTCOMES = frozenset({"ran", "errors", "refused", "no model"})


def outcome(mutant: Mutant) -> str:
    """Returns what its backend makes of a mutant: one of `OUTCOMES`."""
    try:
        model = ir.from_proto(shape_inference.infer_shapes(mutant.model, data_prop=True))
        optimise(model, {})
    except Exception:  # a type or a constant that the operator does not take
        return "no model"
    with tempfile.TemporaryDirectory() as folder:
        session = opened(backend(mutant.backend), model, Path(folder))
        if session is None:
            return "refused"
        ran = [does_run(session, mutant.call()) for _ in range(CALLS)]
    return "ran" if any(ran) else "errors"


def does_run(session: Any, inputs: dict[str, Any]) -> bool:
    """Returns whether a call gives outputs, and no error of whatever class."""
    try:
        session.run(inputs)
    except Exception:
        return False
    return True


def opened(plugin: Backend, model: ir.Model, folder: Path) -> Any:
    """Returns the session of a model; None where the backend refuses it."""
    host, options = host_target(), BuildOptions()
    target = Target("box", host.arch, cpu_features=host.cpu_features)
    if not all(said.ok for said in plugin.supports(model, target, options)):
        return None
    try:
        artifact = plugin.build(model, target, options, folder)
    except BuildRefusedError:
        return None
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    try:
        return plugin.open(files, dict(artifact.metadata), OpenOptions(threads=1))
    except Exception:  # a compile opens what it built
        return None


def tried(number: int, backends: tuple[str, ...]) -> str:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with np.errstate(all="ignore"):
        said = outcome(Mutant(number, backends))
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return said if taken < PEAK_BYTES else f"memory: {taken / 2**30:.1f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="how many trials")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--step", type=int, default=1, help="leave out all but every so many")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="which backends, in order")
    asked = parser.parse_args()
    backends = tuple(asked.backends.split(","))
    cases()
    counts = Counter[str]()
    trials = forked_trials.outcomes(
        lambda at: tried(asked.first + at * asked.step, backends), range(asked.count), SECONDS, MEMORY_BYTES
    )
    for at, said in trials:
        number = asked.first + at * asked.step
        counts[said.split(":")[0]] += 1
        if said not in OUTCOMES:
            print(f"FINDING {number}: {said} | {'; '.join(Mutant(number, backends).said)}", flush=True)
    print(f"{counts.total()} trials of {len(cases())} models: {dict(counts.most_common())}")
    sys.exit(not OUTCOMES.issuperset(counts))


if __name__ == "__main__":
    main()
