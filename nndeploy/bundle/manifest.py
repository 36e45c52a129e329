# SPDX-License-Identifier: Apache-2.0
"""The manifest: what a bundle holds, as frozen values; the contract between compile and run.

`manifest_from_json` refuses whatever is not exactly this schema; `manifest_to_json` gives canonical data. Law:
`manifest_from_json(manifest_to_json(m)) == m`. The JSON Schema beside this file says the same in public form.

A value is known by its name in the chain (the model's own tensor names, any text); a member by its path in the
archive. Names of tensors never become paths. Submodels stand in an order in which every input is produced before it
is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nndeploy.values.types import DimRange, OptionalType, TensorType, ValueType

FORMAT_NAME = "nndeploy-bundle"
FORMAT_MAJOR = 1
FORMAT_MINOR = 10

PORTABLE = "portable"
"""Names the chain that runs on any CPU, where chains are named."""


@dataclass(frozen=True, slots=True)
class NamedType:
    """An input or output of the program."""

    name: str
    type: ValueType

    @property
    def open_axes(self) -> tuple[tuple[int, str], ...]:
        """The axes of a tensor whose size is open, each with its symbol; `<name>.<axis>` where it has none."""
        shape = self.type.shape if isinstance(self.type, TensorType) else None
        every = enumerate(shape or ())
        return tuple((axis, dim or f"{self.name}.{axis}") for axis, dim in every if not isinstance(dim, int))


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the archive: SHA-256 as lower-case hex, size in bytes."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Compressed:
    """What a member that is stored compressed really is: its SHA-256 as lower-case hex, its size in bytes.

    `bases` are the members of which parts of it are (`nndeploy.bundle.compressed_member`), none of them compressed.
    """

    sha256: str
    size_bytes: int
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One submodel built one way.

    `files` maps the backend's own file names to member paths (several variants may share a member). `requires` and
    `metadata` are the artifact's (see `nndeploy.plugin.interface.Artifact`). Variants stand best first.
    """

    id: str
    backend: str
    target: str
    files: Mapping[str, str]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    requires: Mapping[str, Any] = field(default_factory=dict)
    native_code: bool = False
    deterministic: bool = True


@dataclass(frozen=True, slots=True)
class Submodel:
    """A piece of the chain: reads the values `inputs`, produces the values `outputs`."""

    id: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class TargetChain:
    """Another way to run the program, for boxes of one kind: submodels of their own, cut where that kind wants it.

    `id` is unique in the bundle, `target` the name of the box; `values` gives the type of every value in this chain.
    `ranges` are the sizes that the chain was built for where the program takes any; other calls run on the portable
    chain. An axis without a name has the key `<input>.<axis>`.
    """

    id: str
    target: str
    submodels: tuple[Submodel, ...]
    values: Mapping[str, ValueType]
    ranges: Mapping[str, DimRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlacedSubmodel:
    """Where a submodel runs ("cpu:0", "cuda:1"), and the bytes that it needs there.

    `weight_bytes` are those of its constants, `peak_bytes` the most of values that are alive at once while it runs.
    """

    place: str
    weight_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Placing:
    """A chain over several places: each of its submodels by id, and the bytes of each value between them, by name."""

    submodels: Mapping[str, PlacedSubmodel]
    value_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """How far from the reference one output may be where engines that are all right differ by more than a tolerance.

    `max_abs` is of the largest difference, `rms` of the root of its mean square, `slice_rms` of the same over any one
    index of any axis, `off` of the share of elements that are outside the tolerance. With `rows_axis` the output lists
    results along that axis, in an order and number that rounding decides: `unmatched` is then the share of rows that
    may have no partner on the other side, and the differences do not count.
    """

    max_abs: float
    rms: float
    slice_rms: float
    off: float
    rows_axis: int | None = None
    unmatched: float = 0.0


@dataclass(frozen=True, slots=True)
class Golden:
    """A real or generated input with the reference's outputs; each is a values member (`nndeploy.bundle.values`).

    `boundaries` holds the reference's values at the borders between submodels, "" where there are none.
    `origin` is "sample" (given by the user) or "generated". `limits` are those of outputs on which engines that are
    right differ, by output.
    """

    inputs: str
    outputs: str
    boundaries: str
    origin: str
    limits: Mapping[str, Limits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|got - want| <= atol + rtol * |want| + span * max |want|, element by element, for outputs of one element type.

    `span` is for errors that do not shrink with the element: rounding of sums, and steps of quantised networks.
    """

    rtol: float
    atol: float
    span: float = 0.0


@dataclass(frozen=True, slots=True)
class ImageInput:
    """How an image becomes the input `name`: decode, resize to (`height`, `width`) pixels, colour, scale, layout.

    value = (pixel - mean) / std for each channel, pixels 0..255; `channels` is "RGB", "BGR" or "L"; `layout` is
    "NCHW" or "NHWC"; `labels` name the classes of the first output, and may be empty.
    """

    name: str
    height: int
    width: int
    channels: str
    layout: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that the run half must know, and where a bundle came from.

    `submodels` and `values` are the portable chain, which runs on any box; `target_chains` stand before it where they
    fit, the best first. The ids of submodels are unique over all chains.
    `aliases` maps a program output that no submodel produces to the input it passes through; `constants` is the
    values member of outputs that do not depend on any input, "" where there are none. `defaults` maps an input that
    may be left out to the values member that holds its default under the input's name. `values` gives the type of
    every value in the chain. `ranges` gives the declared sizes of symbolic dimensions. `pace_operators` is the member
    that says what operators compute, "" where runs cannot be paced; `pace_libraries` are libraries of delays by
    architecture in older bundles, which are not read: the installed one is used. `provenance` is plain data: tool and
    library versions, options, the model's hash, passes. `members` lists every other member as it is stored;
    `compressed` says of some that they are more than that. `placings` says of some chains, by id or `PORTABLE`, that
    they span places.
    """

    model_name: str
    model_sha256: str
    inputs: tuple[NamedType, ...]
    outputs: tuple[NamedType, ...]
    submodels: tuple[Submodel, ...]
    values: Mapping[str, ValueType]
    target_chains: tuple[TargetChain, ...] = ()
    ranges: Mapping[str, DimRange] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    constants: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)
    goldens: tuple[Golden, ...] = ()
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    checks: tuple[Mapping[str, Any], ...] = ()
    image_input: ImageInput | None = None
    pace_libraries: Mapping[str, str] = field(default_factory=dict)
    pace_operators: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    compressed: Mapping[str, Compressed] = field(default_factory=dict)
    placings: Mapping[str, Placing] = field(default_factory=dict)

    def may_lack(self, value: NamedType) -> bool:
        """Returns whether a call may leave an input out."""
        return isinstance(value.type, OptionalType) or value.name in self.defaults

    def real(self, name: str) -> Member | Compressed:
        """Returns what a member really is, whether or not it is stored compressed."""
        return self.compressed.get(name, self.members[name])
