# SPDX-License-Identifier: Apache-2.0
"""Boxes with GPUs that are not there: their memory is on the host, and a backend computes with ONNX Runtime.

What is real is all that the core does: which chain is built and taken, where values lie, who copies them and when.
"""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from faulty_backends import good_backend

from nndeploy.cuda import Device, DeviceArray, device
from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Artifact, OpenOptions, Probe, Session, Support
from nndeploy.target.target import Gpu, Target, host_target
from nndeploy.testing.host_driver import HostDriver, HostGpu

Events = list[tuple[str, str]]


def box(name: str, *capabilities: str) -> Target:
    """Returns a target with a GPU of each compute capability."""
    return Target(name, "x86_64", gpus=tuple(Gpu(f"Pretended {text}", text) for text in capabilities))


@contextmanager
def machine_with(*capabilities: str, memory_bytes: int = 1 << 30) -> Iterator[HostDriver]:
    """This machine with a GPU of each compute capability; none means one without a driver's GPUs."""
    gpus = [
        HostGpu(
            memory_bytes=memory_bytes,
            attributes={**HostGpu().attributes, **dict(zip(_ATTRIBUTES, map(int, text.split(".")), strict=True))},
        )
        for text in capabilities
    ]
    driver = HostDriver(gpus)
    host_target.cache_clear()
    try:
        with injected_driver(driver):
            yield driver
    finally:
        host_target.cache_clear()


_ATTRIBUTES = ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR")


def in_memory(array: DeviceArray) -> "np.ndarray[Any, Any]":
    """Returns an array of a pretended GPU as its kernels see it, without a copy."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.ptr)
    return np.frombuffer(memory, array.dtype).reshape(array.shape)


class PretendedSession:
    """ONNX Runtime's results, on the memory of a pretended GPU; writes down what it was given."""

    def __init__(self, session: Session, gpu: Device, events: Events) -> None:
        self.device = gpu.name
        self._session, self._gpu, self._events = session, gpu, events

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self._events += [(name, type(value).__name__) for name, value in inputs.items()]
        own = {name: v if isinstance(v, DeviceArray) else self._gpu.to_device(v) for name, v in inputs.items()}
        assert all(value.device is self._gpu for value in own.values()), "the core hands no other GPU's arrays over"
        results = self._session.run({name: in_memory(value) for name, value in own.items()})
        made = {name: self._gpu.empty(value.shape, value.dtype.name) for name, value in results.items()}
        for name, value in results.items():
            in_memory(made[name])[...] = value
        return made

    def close(self) -> None:
        self._session.close()


def gpu_backend(name: str, *operators: str, opens: bool = True) -> Any:
    """Returns a backend for GPUs that takes only some operators; `events` holds what its sessions were given."""

    class OnGpu(good_backend()):  # type: ignore[misc]
        events: Events = []  # noqa: RUF012 - of the class, as the registry makes the object

        def probe(self, target: Target) -> Probe:
            return Probe(bool(target.gpus), bool(target.gpus), "1", "" if target.gpus else "no GPU")

        def supports(self, model: Any, target: Any, options: Any) -> list[Support]:
            return [Support(n.op_type in operators, f"{name} has no {n.op_type}") for n in model.graph]

        def build(self, submodel: Any, target: Target, options: Any, workdir: Any) -> Artifact:
            built = super().build(submodel, target, options, workdir)
            return replace(built, requires={"compute_capability": [gpu.compute_capability for gpu in target.gpus]})

        def open(self, files: Any, metadata: Any, options: OpenOptions) -> Session:
            if not opens:
                raise UnavailableError("the engine is for version 1, here is 2", hint="install 1")
            gpu = device(int(options.device.partition(":")[2]))
            session = super().open(files, metadata, replace(options, device="cpu"))
            return PretendedSession(session, gpu, self.events)

    OnGpu.name, OnGpu.tier, OnGpu.device_kind = name, 1, "cuda"
    return OnGpu
