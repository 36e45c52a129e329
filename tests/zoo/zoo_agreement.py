# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle's outputs are the model's on inputs that its compile never saw, by the product's own comparison.

    python tests/zoo/zoo_agreement.py MODEL BUNDLE INPUTS.npz

Prints one line of JSON: {"agrees": bool, "note": "..."}; `note` is the worst output. The reference is ONNX Runtime
over the original file without optimisation; where an output is outside its tolerance, how far right engines differ on
these very inputs decides, as it does in `compile`.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx_ir as ir

import nndeploy
from nndeploy.bundle.report import CheckReport
from nndeploy.checking.check import compare_outputs, describe_failure, is_quantised, tolerances
from nndeploy.checking.engines import Engines
from nndeploy.checking.reference import Reference
from nndeploy.checking.right_engines import RightEngines
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.jobs.shared_workers import shared_workers
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import Value

LIBRARY = "onnxruntime"
Feed = Mapping[str, Value]


def main() -> None:
    """Prints the verdict."""
    model, bundle, inputs = map(Path, sys.argv[1:4])
    with np.load(inputs) as arrays:
        feed = {key: arrays[key] for key in arrays.files}
    checks = compared_with_model(model, bundle, feed)
    wrong = [check for check in checks if not check.ok]
    said = "; ".join(map(describe_failure, wrong)) or "; ".join(sorted({check.rule for check in checks}))
    print(json.dumps({"agrees": not wrong, "note": said}))


def compared_with_model(model: Path, bundle: Path, feed: Feed) -> list[CheckReport]:
    """Returns how each output of a bundle compares with the model's own."""
    loaded = load_model(model)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1, device="cpu", cache_dir="")) as program:
        got = program.run(feed)
    quantised = is_quantised(loaded.model.graph)
    engines = Engines(shared_workers(), host_target(), BuildOptions(1, loaded.ranges, (), "fp32"))
    reference = Reference(engines, (LIBRARY,), RightEngines(engines, LIBRARY, False, quantised))
    return _checks(loaded, reference, feed, got, quantised)


def _checks(loaded: LoadedModel, reference: Reference, feed: Feed, got: Feed, quantised: bool) -> list[CheckReport]:
    want = reference.evaluate(loaded.original.SerializeToString(), [feed])
    types = {one.name: one.type for one in loaded.outputs}
    allowed = tolerances(None, None, quantised, "fp32", True)

    def limits() -> list[dict[str, object]]:
        return reference.limits(ir.from_proto(loaded.original), [feed], want, types, allowed)

    return compare_outputs("whole", "", [got], want, types, allowed, {}, limits)


if __name__ == "__main__":
    main()
