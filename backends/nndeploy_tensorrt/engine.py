# SPDX-License-Identifier: Apache-2.0
"""ONNX bytes -> parsed network -> serialized engine, by whichever TensorRT library is asked.

In: a model's bytes and an `EngineRequest`. Out: an `Engine`, or a refusal with the builder's reason. Precision is a
property of the graph: networks are strongly typed, casts and QuantizeLinear/DequantizeLinear pairs are kept, and
float32 is not rounded to TF32. Nothing here imports onnx, so the process that builds need not either.

Source: TensorRT-RTX 1.7 and TensorRT 11, Python API (Builder, IBuilderConfig, OnnxParser).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nndeploy.errors import BuildRefusedError
from nndeploy_tensorrt.artifact_facts import Binding
from nndeploy_tensorrt.library import RTX, LogLine, TensorRt, loaded, log_of
from nndeploy_tensorrt.reason import library_reason, parser_reason
from nndeploy_tensorrt.tensor_types import dtype_name


@dataclass(frozen=True, slots=True)
class InputSizes:
    """The shapes that a dynamic input may have, axis by axis, and the one to tune for."""

    name: str
    min: tuple[int, ...]
    best: tuple[int, ...]
    max: tuple[int, ...]


Profile: TypeAlias = tuple[InputSizes, ...]
"""Shapes that belong together, of every dynamic input; an engine is tuned for the best ones of each profile."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What an engine is built for; see `nndeploy_tensorrt.serving.Serving` for the first three fields.

    A trial only finds out whether an engine comes out: the classic library then does not time kernels.
    """

    flavour: str
    capabilities: tuple[str, ...] = ()
    memory_bytes: int = 0
    profiles: tuple[Profile, ...] = ()
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class Engine:
    """A serialized engine, its inputs and outputs, and the lines that the builder logged."""

    data: bytes
    inputs: tuple[Binding, ...]
    outputs: tuple[Binding, ...]
    log: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A network and what must live as long as it."""

    network: TensorRt
    parser: TensorRt
    builder: TensorRt

    @property
    def inputs(self) -> list[TensorRt]:
        """The network's inputs, in order."""
        return [self.network.get_input(i) for i in range(self.network.num_inputs)]

    @property
    def outputs(self) -> list[TensorRt]:
        """The network's outputs, in order."""
        return [self.network.get_output(i) for i in range(self.network.num_outputs)]


def new_parser(flavour: str) -> Parsed:
    """Returns an empty network with its parser.

    Raises:
        UnavailableError: the library is not installed.
    """
    library, logger = loaded(flavour), log_of(flavour).logger
    builder = library.Builder(logger)
    network = builder.create_network(_network_flags(library))
    return Parsed(network, library.OnnxParser(network, logger), builder)


def parsed(model: bytes, flavour: str) -> Parsed:
    """Returns the network of a model.

    Raises:
        BuildRefusedError: the parser does not take it.
    """
    found = new_parser(flavour)
    if not found.parser.parse(model):
        error = found.parser.get_error(0) if found.parser.num_errors else None
        text = error.desc() if error else ""
        raise BuildRefusedError(parser_reason(text, error.node_operator() if error else "", ""))
    return found


def build_engine(model: bytes, request: EngineRequest) -> Engine:
    """Returns the engine of a model.

    Raises:
        BuildRefusedError: the parser or the builder refuses it; the reason is theirs.
        UnavailableError: the library is not installed.
    """
    with log_of(request.flavour).recording() as lines:
        found = parsed(model, request.flavour)
        data = found.builder.build_serialized_network(found.network, _config(found.builder, request))
        if data is None:
            raise BuildRefusedError(_why_not_built(lines))
        return Engine(
            bytes(data),
            tuple(_binding(tensor) for tensor in found.inputs),
            tuple(_binding(tensor) for tensor in found.outputs),
            tuple(f"{line.severity}: {line.text}" for line in lines),
        )


def _network_flags(library: TensorRt) -> int:
    """Strongly typed: the only kind since TensorRT 11, a flag before."""
    flag = getattr(library.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _config(builder: TensorRt, request: EngineRequest) -> TensorRt:
    library = loaded(request.flavour)
    config = builder.create_builder_config()
    config.clear_flag(library.BuilderFlag.TF32)
    if request.memory_bytes:
        config.set_memory_pool_limit(library.MemoryPoolType.WORKSPACE, request.memory_bytes)
    if request.flavour == RTX.flavour:
        _set_capabilities(config, library, request.capabilities)
    elif request.is_trial:
        config.builder_optimization_level = 0
    for profile in request.profiles:
        config.add_optimization_profile(_profile(builder, profile))
    return config


def _set_capabilities(config: TensorRt, library: TensorRt, capabilities: Sequence[str]) -> None:
    config.num_compute_capabilities = len(capabilities)
    for i, capability in enumerate(capabilities):
        member = getattr(library.ComputeCapability, f"SM{capability.replace('.', '')}", None)
        if member is None or not config.set_compute_capability(member, i):
            raise BuildRefusedError(f"this TensorRT-RTX cannot build for compute capability {capability}")


def _profile(builder: TensorRt, sizes: Profile) -> TensorRt:
    profile = builder.create_optimization_profile()
    for size in sizes:
        profile.set_shape(size.name, size.min, size.best, size.max)
    return profile


def _why_not_built(lines: Sequence[LogLine]) -> str:
    errors = [line.text for line in lines if line.is_error]
    return library_reason(errors[0] if errors else "")


def _binding(tensor: TensorRt) -> Binding:
    return Binding(tensor.name, dtype_name(tensor.dtype), tuple(tensor.shape))
