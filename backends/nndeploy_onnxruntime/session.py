# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; it loads onnxruntime and numpy, never onnx.

Weights are used where the bundle is mapped, not copied. A session may be called by several threads at once.
Arrays of types that numpy lacks (bfloat16, float8, int4) cross as raw memory, which costs about 30 microseconds a
call; all other values go straight to the library.
"""

import ctypes
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import OpenOptions, PacePoint, Session
from nndeploy.value_types import Value
from nndeploy_onnxruntime.element_types import RAW_TYPES, array_from_raw, raw_from_array, raw_name
from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
from nndeploy_onnxruntime.pace_points import with_points

MODEL_FILE = "model.onnx"
WEIGHTS_FILE = "weights.bin"

_ADDRESS_MARK = b"_ORT_MEM_ADDR_"


def open_session(files: Mapping[str, memoryview], options: OpenOptions) -> Session:
    """Returns a session over the files of an artifact; they must stay as long as it lives.

    Raises:
        UnavailableError: onnxruntime, an operator library or the device is not here.
        BundleError: the artifact has no model, or the model asks for memory or files of ours.
    """
    if options.device != "cpu":
        raise UnavailableError(f"onnxruntime runs on the CPU here, not on {options.device!r}")
    if MODEL_FILE not in files:
        raise BundleError(f"the artifact has no {MODEL_FILE}")
    model = bytes(files[MODEL_FILE])
    if _ADDRESS_MARK in model:
        raise BundleError("the model holds an address in memory")
    weights = files.get(WEIGHTS_FILE)

    def of_library() -> Any:
        wanted = session_options(options.threads, options.custom_op_libraries)
        wanted.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_ENABLE_ALL
        if weights is not None:
            wanted.add_session_config_entry("session.use_external_initializer_file_buffers_directly", "1")
            wanted.add_external_initializers_from_files_in_memory([WEIGHTS_FILE], [weights], [len(weights)])
        return wanted

    if options.pace_library and (paced := paced_session(model, of_library(), options)) is not None:
        return paced
    return session_over(inference_session(model, of_library()), weights)


def paced_session(model: bytes, of_library: Any, options: OpenOptions) -> "PacedSession | None":
    """Returns a session that passes a point behind each operator, None where the library has no way to.

    The model is optimised for this CPU first, as ever; the points are put in behind that, and change none of it.
    """
    with tempfile.TemporaryDirectory(prefix="nndeploy-pace-") as folder:
        file = Path(folder) / MODEL_FILE
        of_library.optimized_model_filepath = str(file)
        try:
            inference_session(model, of_library)
            with_pace, names = with_points(file.read_bytes())
            libraries = (*options.custom_op_libraries, options.pace_library)
            as_it_is = session_options(options.threads, libraries)
            as_it_is.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
            session = inference_session(with_pace, as_it_is)
        except Exception:  # a library without our operator's interface, or a model too large to be written once more
            return None
    values = (*session.get_inputs(), *session.get_outputs())
    return None if any(raw_name(value.type) for value in values) else PacedSession(session, names)


def session_over(session: Any, weights: memoryview | None) -> Session:
    """Returns our session over the library's; `weights` is kept as long as it."""
    values = (*session.get_inputs(), *session.get_outputs())
    kind = RawMemorySession if any(raw_name(value.type) for value in values) else PlainSession
    return kind(session, weights)


class PlainSession:
    """A session whose values the library takes and gives as they are."""

    def __init__(self, session: Any, weights: memoryview | None) -> None:
        """Takes over a library's session; `weights` is kept as long as it."""
        self._outputs = [value.name for value in session.get_outputs()]
        self._run = session.run
        self._weights = weights

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""
        return dict(zip(self._outputs, self._run(self._outputs, inputs), strict=True))

    def close(self) -> None:
        """Frees the library's session; a second call does nothing."""
        self._run = _closed
        self._weights = None


class PacedSession(PlainSession):
    """A session that passes points; their operator finds the item by itself."""

    def __init__(self, session: Any, names: Sequence[tuple[str, str]]) -> None:
        """Takes over a library's session; `names` tells what stands before each point, and the value there."""
        super().__init__(session, None)
        self._names = names

    def pace(self, item: Callable[[], int]) -> list[PacePoint]:  # noqa: ARG002
        """Returns the points."""
        return [PacePoint(name, is_cut=False, value=value) for name, value in self._names]


class RawMemorySession:
    """A session with tensors of types that numpy lacks among its inputs or outputs."""

    def __init__(self, session: Any, weights: memoryview | None) -> None:
        """Takes over a library's session; `weights` is kept as long as it."""
        self._outputs = [value.name for value in session.get_outputs()]
        self._run = session.run_with_ort_values
        self._weights = weights

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""
        given = {name: _to_library(value) for name, value in inputs.items()}
        results = self._run(self._outputs, given)
        return {name: _from_library(result) for name, result in zip(self._outputs, results, strict=True)}

    def close(self) -> None:
        """Frees the library's session; a second call does nothing."""
        self._run = _closed
        self._weights = None


def _closed(_outputs: Sequence[str], _inputs: Mapping[str, Value]) -> list[Value]:
    raise UsageError("the session is closed")


def _to_library(array: "np.ndarray[Any, Any]") -> Any:
    ort_value = onnxruntime().OrtValue
    number = RAW_TYPES.get(array.dtype.name)
    if number is None:
        return ort_value.ortvalue_from_numpy(np.require(array, requirements=["C", "A"]))
    made = ort_value.ortvalue_from_shape_and_type(list(array.shape), number)
    raw = raw_from_array(array)
    if raw.size:
        ctypes.memmove(made.data_ptr(), raw.ctypes.data, raw.nbytes)
    return made


def _from_library(result: Any) -> "np.ndarray[Any, Any]":
    name = raw_name(result.data_type())
    if not name:
        return np.array(result.numpy())
    num_bytes = result.tensor_size_in_bytes()
    raw = np.zeros(num_bytes, np.uint8)
    if num_bytes:
        ctypes.memmove(raw.ctypes.data, result.data_ptr(), num_bytes)
    return array_from_raw(raw, name, tuple(result.shape()))
