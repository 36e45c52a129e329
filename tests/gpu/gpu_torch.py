# SPDX-License-Identifier: Apache-2.0
"""The same problems in torch: eager, in channels-last layout, as CUDA graphs, with TF32.

Float32 is float32 unless a name says TF32. torch is imported when it is first asked for, and after cuDNN was loaded
from where nndeploy loads it: two versions of cuDNN in one process do not go together.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onnx
from gpu_backends import Contestant, RefusedError
from gpu_problems import Plain, Separable

Work = Callable[[Mapping[str, Any]], Any]
NUM_WARM_BEFORE_CAPTURE = 3


def load_cudnn_first() -> None:
    """Loads nndeploy's cuDNN so that torch finds it under its name and takes it too."""
    from nndeploy_cudnn.library import installed_path

    if path := installed_path():
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def torch_module() -> Any:
    """Returns torch with a GPU, set to float32 without TF32 and to the fastest convolution it finds.

    Raises:
        RefusedError: it is not installed, or sees no GPU.
    """
    load_cudnn_first()
    try:
        import torch
    except ImportError as err:
        raise RefusedError("torch is not installed") from err
    if not torch.cuda.is_available():
        raise RefusedError("torch sees no GPU")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


class TorchPeers:
    """One problem in torch: its outputs, and contestants by name for calls and for graphs."""

    def __init__(self, problem: "Separable | Plain", proto: onnx.ModelProto, inputs: Mapping[str, Any]) -> None:
        """Puts inputs and weights on the GPU."""
        self._torch = torch_module()
        constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
        self._weights = {name: self._on_gpu(value) for name, value in constants.items()}
        self._inputs = {name: self._on_gpu(value) for name, value in inputs.items()}
        self._problem = problem
        self._work = work_of(problem, self._torch)
        self._kept: list[Any] = []  # what graphs read and write

    @property
    def is_convolution(self) -> bool:
        """Whether the layout of images makes a difference."""
        return isinstance(self._problem, Separable) or self._problem.operator == "convolution"

    @property
    def has_products(self) -> bool:
        """Whether TF32 makes a difference."""
        return self.is_convolution or (isinstance(self._problem, Plain) and self._problem.operator == "matmul")

    def output(self) -> Any:
        """Returns the output `y` on the host."""
        with self._torch.inference_mode():
            return self._run(self._inputs, self._weights).cpu().numpy()

    def calls(self) -> dict[str, Contestant]:
        """Returns what a user would call: eager."""
        return {"torch": Contestant(self._eager(self._inputs, self._weights), self._wait)}

    def graphs(self) -> dict[str, Contestant]:
        """Returns the same as CUDA graphs, which leave out what Python costs; TF32 is less exact."""
        found = {"torch graph": self._graph(self._inputs, self._weights)}
        if self.is_convolution:
            found["torch channels-last graph"] = self._graph(self._last(self._inputs), self._last(self._weights))
        if self._problem.dtype == "float32" and self.has_products:
            with self._tf32():
                found["torch TF32 graph"] = self._graph(self._inputs, self._weights)
        return found

    def _run(self, inputs: Mapping[str, Any], weights: Mapping[str, Any]) -> Any:
        return self._work({**inputs, **weights})

    def _eager(self, inputs: Any, weights: Any) -> Callable[[], object]:
        def call() -> None:
            with self._torch.inference_mode():
                self._run(inputs, weights)

        return call

    def _graph(self, inputs: Any, weights: Any) -> Contestant:
        call, torch = self._eager(inputs, weights), self._torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(NUM_WARM_BEFORE_CAPTURE):
                call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.inference_mode():
            self._kept.append((inputs, weights, self._run(inputs, weights)))
        return Contestant(graph.replay, self._wait)

    def _last(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        last = self._torch.channels_last
        return {k: v.to(memory_format=last) if v.dim() == 4 else v for k, v in tensors.items()}

    @contextmanager
    def _tf32(self) -> Iterator[None]:
        cudnn, cublas = self._torch.backends.cudnn, self._torch.backends.cuda.matmul
        cudnn.allow_tf32 = cublas.allow_tf32 = True
        try:
            yield
        finally:
            cudnn.allow_tf32 = cublas.allow_tf32 = False

    def _on_gpu(self, value: Any) -> Any:
        return self._torch.from_numpy(value.copy()).cuda()

    def _wait(self) -> None:
        self._torch.cuda.synchronize()


def work_of(problem: "Separable | Plain", torch: Any) -> Work:
    """Returns a function of the values by name that computes a problem's output."""
    functional = torch.nn.functional
    if isinstance(problem, Separable):
        return lambda v: _separable(problem, functional, v)
    works: dict[str, Work] = {
        "layer norm": lambda v: functional.layer_norm(v["x"], v["w1"].shape, v["w1"], v["w2"], 1e-5),
        "softmax": lambda v: torch.softmax(v["x"], -1),
        "elementwise": lambda v: _chain(torch, v["x"], v["z"]),
        "matmul": lambda v: torch.matmul(v["x"], v["w1"]),
        "convolution": lambda v: torch.relu(functional.conv2d(v["x"], v["w1"], v["w2"], padding=1)),
    }
    return works[problem.operator]


def _separable(problem: Separable, functional: Any, v: Mapping[str, Any]) -> Any:
    groups = problem.channels
    deep = functional.conv2d(v["x"], v["w1"], v["w2"], stride=problem.stride, padding=1, groups=groups).clamp_(0, 6)
    out = functional.conv2d(deep, v["w3"], v["w4"])
    return out.clamp_(0, 6) if problem.version == "v1" else out


def _chain(torch: Any, x: Any, z: Any) -> Any:
    b = (x + z) * z
    return b * torch.sigmoid(b) + x
