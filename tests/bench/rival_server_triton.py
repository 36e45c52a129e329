# SPDX-License-Identifier: Apache-2.0
"""A model in ONNX Runtime for Triton's backend for Python, which imports this file as model.py of the model."""

import os
import sys
from typing import Any

sys.path.append(os.environ["PACKAGES"])  # its interpreter is isolated

import onnxruntime
import triton_python_backend_utils as backend


class TritonPythonModel:
    """What the backend makes once, and calls with the requests that wait."""

    def initialize(self, args: Any) -> None:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.force_spinning_stop", "1")  # as the service
        self._session = onnxruntime.InferenceSession(os.environ["MODEL"], options, ["CPUExecutionProvider"])
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._outputs = [one.name for one in self._session.get_outputs()]

    def execute(self, requests: list[Any]) -> list[Any]:
        return [backend.InferenceResponse(self._tensors(request)) for request in requests]

    def _tensors(self, request: Any) -> list[Any]:
        given = {name: backend.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs}
        found = self._session.run(self._outputs, given)
        return [backend.Tensor(name, array) for name, array in zip(self._outputs, found, strict=True)]
