# SPDX-License-Identifier: Apache-2.0
"""KServe's server with a model in ONNX Runtime: `python rival_server_kserve.py MODEL HTTP_PORT GRPC_PORT`."""

import logging
import sys
from typing import Any

import onnxruntime
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer
from kserve.utils.numpy_codec import from_np_dtype


class InOnnxRuntime(Model):
    def __init__(self, path: str) -> None:
        super().__init__("m")
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.force_spinning_stop", "1")  # as the service
        self._session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self._outputs = [one.name for one in self._session.get_outputs()]
        self.ready = True

    def predict(self, payload: InferRequest, headers: Any = None, response_headers: Any = None) -> InferResponse:
        found = self._session.run(self._outputs, {one.name: one.as_numpy() for one in payload.inputs})
        outputs = []
        for name, array in zip(self._outputs, found, strict=True):
            outputs.append(InferOutput(name, list(array.shape), from_np_dtype(array.dtype)))
            outputs[-1].set_data_from_numpy(array, binary_data=True)
        return InferResponse(payload.id or "", self.name, outputs)


if __name__ == "__main__":
    path, http_port, grpc_port = sys.argv[1:]
    server = ModelServer(http_port=int(http_port), grpc_port=int(grpc_port), enable_latency_logging=False)
    logging.disable(logging.INFO)  # two lines a request otherwise
    server.start([InOnnxRuntime(path)])
