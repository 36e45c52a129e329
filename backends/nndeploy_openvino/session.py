# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; it loads openvino and numpy, never onnx.

Several threads may call at once: each takes an infer request of its own from a pool. Inputs are read where they are;
outputs are copied, because a request writes its next ones into the same memory.

`InferRequest.infer` on one thread says nothing of what fails in it (OpenVINO 2026.4.1): sizes that do not fit together
left the outputs of the call before. `start_async` and `wait` tell, and cost 10 microseconds.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Json, OpenOptions
from nndeploy.target.target import has_bf16, host_target
from nndeploy.values.types import Value, numpy_dtype
from nndeploy_openvino.element_types import RAW_TYPES, raw_type
from nndeploy_openvino.files import BLOB_FILE, GRAPH_FILE, WEIGHTS_FILE
from nndeploy_openvino.input_values import NO_LIMITS, Limits, check_of, limits_of, no_elements
from nndeploy_openvino.ir_gate import check_ir
from nndeploy_openvino.library import DEVICE, configuration, core, openvino
from nndeploy_openvino.ports import OpenSizes, check_ports, check_sizes, open_sizes

_Array: TypeAlias = "np.ndarray[Any, Any]"
_TensorOver: TypeAlias = Callable[[_Array], Any]
_CopyOf: TypeAlias = Callable[[Any], _Array]


def open_session(
    files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions
) -> "OpenVinoSession":
    """Returns a session over the files of an artifact; they must stay as long as it lives.

    Raises:
        UnavailableError: openvino or the device is not here.
        BundleError: files or names are missing, or do not fit the model.
        PolicyError: the graph is no IR.
    """
    if options.device != "cpu":
        raise UnavailableError(f"openvino runs on the CPU here, not on {options.device!r}")
    if GRAPH_FILE not in files or WEIGHTS_FILE not in files:
        raise BundleError(f"the artifact has no {GRAPH_FILE} or no {WEIGHTS_FILE}")
    inputs, outputs = _names(metadata, "inputs"), _names(metadata, "outputs")
    compiled = _compiled(files, metadata, options.threads)
    check_ports("input", inputs, compiled.inputs, options.inputs)
    check_ports("output", outputs, compiled.outputs, options.outputs)
    compared = open_sizes(outputs, compiled.outputs, options.outputs)
    return OpenVinoSession(compiled, inputs, outputs, files, compared, limits_of(metadata))


_LONG_LONG = {"q": np.int64, "Q": np.uint64}
"""C's `long long`: another type than `long` to OpenVINO, though of the same 64 bits; some libraries give it."""


class OpenVinoSession:
    """One compiled model and its infer requests."""

    def __init__(
        self,
        compiled: Any,
        inputs: Sequence[str],
        outputs: Sequence[str],
        files: Mapping[str, memoryview],
        compared: OpenSizes = (),
        limits: Limits = NO_LIMITS,
    ) -> None:
        """Takes over a compiled model; `files` are kept as long as it.

        Of each call outputs that are `compared` must have their sizes, and inputs stay within `limits`.
        """
        types_in = [port.get_element_type().get_type_name() for port in compiled.inputs]
        types_out = [port.get_element_type().get_type_name() for port in compiled.outputs]
        self._compiled = compiled
        self._is_alone = compiled.get_property("INFERENCE_NUM_THREADS") == 1
        self._inputs = [
            (i, name, check_of(name, kind, limits), _tensor_over(kind))
            for i, (name, kind) in enumerate(zip(inputs, types_in, strict=True))
        ]
        self._outputs = [
            (i, name, _copy_of(kind)) for i, (name, kind) in enumerate(zip(outputs, types_out, strict=True))
        ]
        self._files = files
        self._compared, self._needs_elements = compared, limits.elements
        self._idle: list[Any] = []

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            OtherVariantError: OpenVINO does not compute with the inputs.
            InputError: an index is out of range.
        """
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._new_request()
        kept = []  # a tensor does not keep the array whose memory it is
        for i, name, check, tensor_over in self._inputs:
            array = inputs[name]
            if not array.flags.carray:  # OpenVINO wants it contiguous, aligned and writable, although it only reads
                array = np.require(array, requirements=["C", "A", "W"])
            if array.dtype.char in _LONG_LONG:
                array = array.view(_LONG_LONG[array.dtype.char])
            if not array.size and self._needs_elements:
                raise no_elements(name)
            if check is not None and array.size:
                check(array)
            kept.append(array)
            request.set_input_tensor(i, tensor_over(array))
        if self._is_alone:
            request.start_async(share_inputs=True)
            request.wait()
        else:
            request.infer(share_inputs=True)
        outputs = {name: copy_of(request.get_output_tensor(i)) for i, name, copy_of in self._outputs}
        self._idle.append(request)
        if self._compared:
            check_sizes(outputs, self._compared)
        return outputs

    def close(self) -> None:
        """Frees the compiled model; a second call does nothing."""
        self._compiled = None
        self._idle = []

    def _new_request(self) -> Any:
        compiled = self._compiled
        if compiled is None:
            raise UsageError("the session is closed")
        return compiled.create_infer_request()


def _names(metadata: Mapping[str, Json], key: str) -> list[str]:
    names = metadata.get(key)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BundleError(f"the metadata has no list of {key}")
    return names


def _compiled(files: Mapping[str, memoryview], metadata: Mapping[str, Json], threads: int | None) -> Any:
    """Returns the compiled model: the blob where OpenVINO takes it, else the IR, compiled here.

    A CPU that does not multiply bfloat16 computes in float32, though OpenVINO would imitate it there.
    """
    asked = "bf16" if metadata.get("precision") == "bf16" else "fp32"
    precision = asked if has_bf16(host_target()) else "fp32"
    settings = configuration(threads, precision)
    if BLOB_FILE in files and metadata.get("openvino") == openvino().__version__ and precision == asked:
        try:
            return core().import_model(_tensor(files[BLOB_FILE]), DEVICE, settings)
        except RuntimeError:  # made for another kind of CPU: OpenVINO checks that itself
            pass
    weights, graph = files[WEIGHTS_FILE], bytes(files[GRAPH_FILE])
    check_ir(graph, weights)
    model = core().read_model(graph, _tensor(weights))
    return core().compile_model(model, DEVICE, settings)


def _tensor(view: memoryview) -> Any:
    """Returns a tensor over a file's bytes, not copied; OpenVINO asks for writable memory and only reads."""
    if not len(view):
        return openvino().Tensor(np.zeros(0, np.uint8))
    address = np.frombuffer(view, np.uint8).ctypes.data
    return openvino().Tensor(np.ctypeslib.as_array((ctypes.c_uint8 * len(view)).from_address(address)), True)


def _tensor_over(kind: str) -> _TensorOver:
    """Returns what makes a tensor of OpenVINO's type `kind` over an array's memory."""
    library = openvino()
    tensor, element_type, bits = library.Tensor, getattr(library.Type, kind), RAW_TYPES.get(raw_type(kind))
    if bits is None:
        return lambda array: tensor(array, True)
    return lambda array: tensor(array.view(bits), list(array.shape), element_type)


def _copy_of(kind: str) -> _CopyOf:
    """Returns what copies a tensor of OpenVINO's type `kind` into an array."""
    if not (name := raw_type(kind)):
        return lambda tensor: tensor.data.copy()
    dtype = numpy_dtype(name)
    return lambda tensor: tensor.data.copy().view(dtype)
