# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle's outputs are the model's on inputs that its compile never saw, by the product's own comparison.

    python tests/bench/zoo_agreement.py MODEL BUNDLE INPUTS.npz

Prints one line of JSON: {"agrees": bool, "note": "..."}; `note` is the worst output. The reference is ONNX Runtime
over the original file with its basic optimisations. Runs in a process of its own, for libraries may crash.
"""

import json
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime

import nndeploy
from nndeploy.compare import Comparison, compare_values, tolerance_for
from nndeploy.frontend.load import load_model
from nndeploy.value_types import Value
from nndeploy.verify.check import is_quantised, tolerances


def main() -> None:
    """Prints the verdict."""
    model, bundle, inputs = map(Path, sys.argv[1:4])
    with np.load(inputs) as arrays:
        feed = {key: arrays[key] for key in arrays.files}
    print(json.dumps(verdict(model, bundle, feed)))


def verdict(model: Path, bundle: Path, feed: dict[str, np.ndarray]) -> dict[str, object]:
    """Returns whether all outputs agree, and the note of the worst."""
    with nndeploy.load_bundle(bundle, threads=1, device="cpu", cache_dir="") as program:
        got = program.run(feed)
    found = compared(model, feed, got)
    wrong = {name: one for name, one in found.items() if not one.ok}
    worst = max((wrong or found).items(), key=lambda item: item[1].max_abs or 0.0)
    return {"agrees": not wrong, "note": f"{worst[0]}: {_figures(worst[1])}"}


def compared(model: Path, feed: dict[str, np.ndarray], got: dict[str, Value]) -> dict[str, Comparison]:
    """Returns how each output compares with the model's."""
    loaded = load_model(model, shapes={})
    allowed = tolerances(None, None, is_quantised(loaded.model.graph))
    want = _reference(model, feed)
    kinds = {one.name: one.type for one in loaded.outputs}
    return {
        name: compare_values(got.get(name), value, tolerance_for(kinds[name], allowed)) for name, value in want.items()
    }


def _reference(model: Path, feed: dict[str, np.ndarray]) -> dict[str, Value]:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def _figures(one: Comparison) -> str:
    figures = [one.note] if one.note else []
    figures += [f"max abs {one.max_abs:.2g}"] if one.max_abs is not None else []
    figures += [f"cosine {one.cosine:.6f}"] if one.cosine is not None else []
    return ", ".join(figures)


if __name__ == "__main__":
    main()
