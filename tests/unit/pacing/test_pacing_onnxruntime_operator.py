# SPDX-License-Identifier: Apache-2.0
"""The operator of ONNX Runtime is tried before it is used; where it has to copy it does, and says so."""

from pathlib import Path

import numpy as np
import pytest
from broken_libraries import library_of
from nndeploy_kernels.build import SOURCES
from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
from nndeploy_onnxruntime.pace_operator import operator_problem, watched_copies
from onnx import TensorProto, helper

from nndeploy.pacing.run.library import PaceLibrary

OPERATOR = (SOURCES / "pacing" / "onnxruntime_operator.c").read_text(encoding="utf-8")


def copying_model(element_type: int) -> bytes:
    """A point between an input and an output of the model, whose memories are not the same."""
    values = [helper.make_tensor_value_info(name, element_type, None) for name in ("x", "y")]
    node = helper.make_node("Pace", ["x"], ["y"], domain="nndeploy", point=1)
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("nndeploy", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def test_the_operator_works_with_the_library_that_is_installed(pace_library: PaceLibrary) -> None:
    assert operator_problem(pace_library) == ""


@pytest.mark.parametrize(("before", "after", "reason"), [
    (".aliases = nnd_aliases", ".aliases = nnd_none", "given other memory"),
    ("nnd_pace_pass(kernel->point);", "{}", "not passed in order"),
    ("nnd_pace_pass(kernel->point);", "nnd_pace_pass(kernel->point ^ 1);", "not passed in order"),
    ("if (!status && from != to)", "if (axes == 2 && sizes[0]) (*(char *)to)++; if (0)", "changes values"),
    ('return "Pace"', 'return "Other"', "does not work"),
    ("RegisterCustomOps", "RegisterNothing", "does not work"),
])  # fmt: skip
def test_an_operator_that_is_broken_is_found_out(before: str, after: str, reason: str, tmp_path: Path) -> None:
    assert before in OPERATOR
    assert reason in operator_problem(library_of(OPERATOR.replace(before, after), tmp_path))


@pytest.mark.parametrize("value", [
    np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), np.arange(5), np.array(2.5), np.zeros((0, 3), np.float32),
    np.array([True, False, True]), np.arange(7, dtype=np.uint8), np.arange(3, dtype=np.float16),
])  # fmt: skip
def test_what_cannot_stay_where_it_is_is_copied_and_counted(value, pace_library) -> None:
    model = copying_model(helper.np_dtype_to_tensor_dtype(value.dtype))
    session = inference_session(model, session_options(1, [pace_library.path]))
    with watched_copies(pace_library.path, 3) as copies:
        (got,) = session.run(None, {"x": value})
    assert got.dtype == value.dtype
    np.testing.assert_array_equal(got, value)
    assert copies.tolist() == [0, int(value.size > 0), 0]
    session.run(None, {"x": value})
    assert copies.sum() == int(value.size > 0)  # nobody watches any more


def test_texts_are_not_copied_byte_by_byte(pace_library: PaceLibrary) -> None:
    session = inference_session(copying_model(TensorProto.STRING), session_options(1, [pace_library.path]))
    with pytest.raises(Exception, match="cannot copy this type"):
        session.run(None, {"x": np.array(["a", "b"], dtype=object)})


def test_the_try_is_done_once(pace_library: PaceLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert operator_problem(pace_library) == ""
    monkeypatch.setattr(onnxruntime(), "InferenceSession", None)
    assert operator_problem(pace_library) == ""
