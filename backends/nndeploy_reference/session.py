# SPDX-License-Identifier: Apache-2.0
"""A model's bytes -> a session over ONNX's evaluator, whose values are made to keep to the interface.

The evaluator hands out its own constants and the caller's inputs, numpy scalars in place of arrays, and text as
numpy's fixed-width kind; so every output is copied and given its declared type. It makes no promise about threads:
calls take turns.
"""

import threading
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from nndeploy.backend_kit.onnx_member import check_member
from nndeploy.errors import BundleError, UnavailableError, UsageError, one_line
from nndeploy.files.onnx_external_data import check_names_no_file
from nndeploy.plugin.interface import OpenOptions
from nndeploy.values.types import Value
from nndeploy.version import install_command

MODEL_FILE = "model.onnx"

TypeProto: TypeAlias = Any


def open_session(files: Mapping[str, memoryview], options: OpenOptions) -> "EvaluatorSession":
    """Returns a session over the files of an artifact.

    Raises:
        UnavailableError: the package onnx or the device is not here.
        BundleError: the artifact has no model, or one that is none.
        PolicyError: the model names a file.
    """
    if options.device != "cpu":
        raise UnavailableError(f"reference runs on the CPU, not on {options.device!r}")
    if MODEL_FILE not in files:
        raise BundleError(f"the artifact has no {MODEL_FILE}")
    try:
        import onnx
    except ImportError as err:
        hint = install_command("compile")
        raise UnavailableError(f"the package onnx is not installed: {err}", hint=hint) from err
    model = bytes(files[MODEL_FILE])
    check_names_no_file(model)
    check_member(MODEL_FILE, model)
    try:
        return EvaluatorSession(onnx.load_from_string(model))
    except Exception as err:
        raise BundleError(f"{MODEL_FILE} is no model that the evaluator reads: {one_line(str(err))}") from err


class EvaluatorSession:
    """One model under ONNX's evaluator."""

    def __init__(self, model: Any) -> None:
        """Makes a session over an `onnx.ModelProto`; raises what the evaluator raises where it has no operator."""
        self._evaluator = evaluator_of(model)
        self._types: dict[str, TypeProto] = {output.name: output.type for output in model.graph.output}
        self._names = list(self._types)
        self._turn = threading.Lock()
        self._is_closed = False

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""
        with self._turn, np.errstate(all="ignore"):
            if self._is_closed:
                raise UsageError("the session is closed")
            results = self._evaluator.run(self._names, dict(inputs))
        return {
            name: _as_declared(result, self._types[name]) for name, result in zip(self._names, results, strict=True)
        }

    def close(self) -> None:
        """Frees the evaluator; a second call does nothing."""
        with self._turn:
            self._is_closed = True
            self._evaluator = None


def evaluator_of(model: Any) -> Any:
    """Returns ONNX's evaluator over an `onnx.ModelProto`; it looks every operator up, and raises where it has none."""
    from nndeploy_reference.evaluator import Evaluator

    return Evaluator(model)


def _as_declared(value: Value, declared: TypeProto) -> Value:
    """Returns a copy of `value` in the form and element type that the model declares."""
    kind = declared.WhichOneof("value")
    if value is None or kind == "map_type":
        return value
    if kind == "optional_type":
        return _as_declared(value, declared.optional_type.elem_type)
    if kind == "sequence_type":
        return [_as_declared(item, declared.sequence_type.elem_type) for item in value]
    return _as_tensor(value, declared.tensor_type.elem_type)


def _as_tensor(value: Value, element_type: int) -> "np.ndarray[Any, Any]":
    array = np.array(value)
    if array.dtype.kind in "OSUT":
        return array.astype(object)
    if not element_type:
        return array
    from onnx import helper

    return array.astype(helper.tensor_dtype_to_np_dtype(element_type), copy=False)
