# SPDX-License-Identifier: Apache-2.0
"""What an artifact says of its engine: made by `build`, read again, and checked, by `open`.

Law: `facts_from_metadata(metadata_from_facts(f)) == f`. A bundle is untrusted, so whatever is not exactly of this
form is refused with one line.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nndeploy.errors import BundleError, DataError
from nndeploy.plugin.interface import Json
from nndeploy.target.target import capability_number
from nndeploy.values.types import DTYPES
from nndeploy_tensorrt.library import LIBRARIES

PORTABLE_FROM = "8.0"
MAX_BINDINGS = 4096
MAX_RANK = 8  # Source: TensorRT, Dims::MAX_DIMS
MAX_CAPABILITIES = 64


@dataclass(frozen=True, slots=True)
class Binding:
    """An input or output of an engine; -1 stands for a size that is known at run time."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def is_dynamic(self) -> bool:
        """Whether a size is known only at run time."""
        return -1 in self.shape


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The library ("rtx" or "classic") and version that built an engine, for what, and its inputs and outputs.

    `capabilities` empty means a portable engine: compute capability 8.0 and later.
    """

    library: str
    version: str
    capabilities: tuple[str, ...]
    inputs: tuple[Binding, ...]
    outputs: tuple[Binding, ...]

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return not any(binding.is_dynamic for binding in (*self.inputs, *self.outputs))


def metadata_from_facts(facts: EngineFacts) -> dict[str, Json]:
    """Returns the plain data that an artifact carries."""
    return {
        "library": facts.library,
        "version": facts.version,
        "capabilities": list(facts.capabilities),
        "inputs": [_plain(binding) for binding in facts.inputs],
        "outputs": [_plain(binding) for binding in facts.outputs],
    }


def facts_from_metadata(metadata: Mapping[str, Json]) -> EngineFacts:
    """Returns the facts that `metadata` holds.

    Raises:
        BundleError: it is not of the form that `metadata_from_facts` gives.
    """
    library, version, capabilities = (metadata.get(key) for key in ("library", "version", "capabilities"))
    if not isinstance(library, str) or library not in LIBRARIES:
        raise BundleError(f"unknown TensorRT library {library!r:.40}")
    if not isinstance(version, str) or not 0 < len(version) <= 40:
        raise BundleError(f"not a version of TensorRT: {version!r:.60}")
    if not isinstance(capabilities, list) or len(capabilities) > MAX_CAPABILITIES:
        raise BundleError(f"not a list of compute capabilities: {capabilities!r:.60}")
    try:
        for capability in capabilities:
            capability_number(capability)
    except DataError as err:
        raise BundleError(err.what) from err
    return EngineFacts(
        library,
        version,
        tuple(capabilities),
        _bindings(metadata.get("inputs"), "inputs"),
        _bindings(metadata.get("outputs"), "outputs"),
    )


def _plain(binding: Binding) -> dict[str, Any]:
    return {**asdict(binding), "shape": list(binding.shape)}


def _bindings(data: Json, kind: str) -> tuple[Binding, ...]:
    if not isinstance(data, list) or len(data) > MAX_BINDINGS:
        raise BundleError(f"the engine's {kind} are not a list: {data!r:.60}")
    found = tuple(_binding(item) for item in data)
    if len({binding.name for binding in found}) != len(found):
        raise BundleError(f"two of the engine's {kind} have one name")
    return found


def _binding(data: Json) -> Binding:
    if not isinstance(data, dict) or set(data) != {"name", "dtype", "shape"}:
        raise BundleError(f"not an input or output of an engine: {data!r:.60}")
    name, dtype, shape = data["name"], data["dtype"], data["shape"]
    if not isinstance(name, str) or not name:
        raise BundleError(f"not a name of a value: {name!r:.60}")
    if dtype not in DTYPES or dtype == "string":
        raise BundleError(f"not an element type of a GPU: {dtype!r:.40}", where=name)
    if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(_is_size(size) for size in shape):
        raise BundleError(f"not a shape: {shape!r:.60}", where=name)
    return Binding(name, dtype, tuple(shape))


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and -1 <= size < 2**63
