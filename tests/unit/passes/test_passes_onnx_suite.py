# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend suite through the whole list: as its cases are, and with their inputs made constants.

The second way puts most operators in front of constant folding. Every case is optimised; of those that change, the
outputs before and after are compared under ONNX Runtime, or ONNX's evaluator where that cannot run them. A tenth of
the cases is taken, `NNDEPLOY_EXAMPLES=1` takes all 2,024 (half a minute).
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from passes_harness import assert_close, run_onnxruntime, run_reference

from nndeploy.passes import optimise

pytestmark = pytest.mark.filterwarnings("ignore")  # the suite makes its cases on import, and numpy warns of some
EVERY = 1 if "NNDEPLOY_EXAMPLES" in os.environ else 10
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
TOLERANCES = {1: 2e-2, 2: 2e-2, 4: 1e-4, 8: 1e-6, 16: 1e-6}
"""By bytes of an element, of the largest element: only folding and the fusions change anything, each by roundings."""

Run = Callable[[onnx.ModelProto, dict[str, Any]], list[Any]]


def _cases(kind: str) -> Iterator[tuple[str, onnx.ModelProto, list[Any]]]:
    for number, case in enumerate(sorted(load_model_tests(kind=kind), key=lambda case: case.name)):
        if number % EVERY == 0:
            model = onnx.ModelProto()
            model.CopyFrom(case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx"))
            yield case.name, model, list(_inputs(case, model))


def _inputs(case: Any, model: onnx.ModelProto) -> Iterator[Any]:
    if case.data_sets:
        yield from case.data_sets[0][0]
        return
    folder = Path(case.model_dir) / "test_data_set_0"
    for number in range(len(list(folder.glob("input_*.pb")))):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"input_{number}.pb").read_bytes())
        yield numpy_helper.to_array(tensor)


def _with_constants(model: onnx.ModelProto, feeds: dict[str, Any]) -> None:
    """Moves the tensors among `feeds` into the model, in place."""
    for value in list(model.graph.input):
        if isinstance(feeds.get(value.name), np.ndarray) and feeds[value.name].dtype.kind not in "OSU":
            model.graph.initializer.append(numpy_helper.from_array(feeds.pop(value.name), value.name))
            model.graph.input.remove(value)


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model)
    except onnx.shape_inference.InferenceError:
        return model


def _outputs(run: Run, model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any] | None:
    try:
        return run(model, feeds)
    except Exception:  # whatever keeps a library from running a case
        return None


def _assert_unchanged(name: str, before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, Any]) -> None:
    for run in (run_onnxruntime, run_reference):
        want = _outputs(run, before, feeds)
        if want is not None:
            for got, expected in zip(run(after, feeds), want, strict=True):
                size = expected.dtype.itemsize if isinstance(expected, np.ndarray) else 4
                assert_close(got, expected, TOLERANCES.get(size, 1e-4), name)
            return


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [False, True], ids=["as it is", "inputs made constants"])
def test_outputs_of_the_suite_stay(kind: str, constant: bool) -> None:
    num_changed = 0
    for name, proto, inputs in _cases(kind):
        names = [value.name for value in proto.graph.input]
        feeds = dict(zip(names, inputs, strict=False))
        if constant:
            _with_constants(proto, feeds)
        before = _with_shapes(proto)
        model = ir.from_proto(before)
        changes = sum(report.count for report in optimise(model))
        assert not any(report.count for report in optimise(model)), f"{name}: a second optimise changed something"
        if changes:
            num_changed += 1
            _assert_unchanged(name, before, ir.to_proto(model), feeds)
    assert num_changed > 10 or kind != "node"
