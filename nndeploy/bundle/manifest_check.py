# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a manifest fit together: the chain, the names, the members, the ranges.

Between `manifest_json`, which knows the form alone, and everybody who uses a manifest: the writer asks before it
writes and the reader before it hands out anything, so nobody else need ask again.
"""

from collections.abc import Iterable, Iterator, Mapping

from nndeploy.bundle.compressed_member import MAX_OWN_BYTES
from nndeploy.bundle.container import MAX_MEMBERS
from nndeploy.bundle.manifest import PORTABLE, ImageInput, Manifest, NamedType, Submodel
from nndeploy.bundle.manifest_json import MANIFEST_NAME
from nndeploy.errors import BundleError, did_you_mean
from nndeploy.target.place_limits import PlaceLimit, is_gpu, why_no_places
from nndeploy.values.types import Dim, DimRange, MapType, OptionalType, SequenceType, TensorType, ValueType

REPORT_NAME = "report.json"
SIGNATURE_NAME = "signature"
UNLISTED = frozenset((MANIFEST_NAME, SIGNATURE_NAME))
"""Members that a manifest cannot list: itself, and the signature over it."""


def check_manifest(manifest: Manifest) -> None:
    """Checks that the parts of a manifest fit together.

    Raises:
        BundleError: a submodel reads what nothing before it produces, a value has no type or two producers, an
            output has no origin, a member that is named is not listed, one that is compressed is absurdly large or made
            of such a one, a range is none, what has a default is no input, or places are not those of a chain's
            submodels.
    """
    _check_unique((value.name for value in manifest.inputs), "input")
    _check_unique((value.name for value in manifest.outputs), "output")
    _check_unique((chain.id for chain in manifest.target_chains), "chain")
    _check_unique((submodel.id for submodel in all_submodels(manifest)), "submodel")
    _check_chain(manifest, manifest.submodels, manifest.values)
    for chain in manifest.target_chains:
        try:
            _check_chain(manifest, chain.submodels, chain.values)
            _check_ranges(chain.ranges)
        except BundleError as err:
            err.within(f"chain {chain.id}")
            raise
    for submodel in all_submodels(manifest):
        _check_variants(submodel)
    _check_members(manifest)
    _check_compressed(manifest)
    _check_limits(manifest)
    _check_ranges(manifest.ranges)
    _check_defaults(manifest)
    _check_placings(manifest)
    if manifest.image_input is not None:
        check_image_input(manifest.image_input, manifest.inputs)


def _check_unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BundleError(f"the {what} {name!r:.80} stands twice")
        seen.add(name)


def all_submodels(manifest: Manifest) -> tuple[Submodel, ...]:
    """Returns the submodels of all chains, the portable one first."""
    return (*manifest.submodels, *(submodel for chain in manifest.target_chains for submodel in chain.submodels))


def _check_chain(manifest: Manifest, submodels: tuple[Submodel, ...], types: Mapping[str, ValueType]) -> None:
    producers = _producers(manifest, submodels)
    _check_outputs(manifest, producers)
    _check_types(manifest, submodels, types)


def _producers(manifest: Manifest, submodels: tuple[Submodel, ...]) -> dict[str, str]:
    """Returns the producer of each value, and refuses a chain that could not be run from first to last."""
    later = {name: submodel.id for submodel in submodels for name in submodel.outputs}
    producers = {value.name: "the program's inputs" for value in manifest.inputs}
    for submodel in submodels:
        for name in submodel.inputs:
            if name not in producers:
                raise _not_produced(name, submodel.id, later.get(name, ""))
        for name in submodel.outputs:
            if name in producers:
                raise BundleError(
                    f"{name!r:.80} is produced twice, by {producers[name]} and by {submodel.id}", where="submodels"
                )
            producers[name] = submodel.id
    return producers


def _not_produced(name: str, reader: str, later: str) -> BundleError:
    if later:
        return BundleError(
            f"{name!r:.80} is read before {later} produces it: a cycle, or the wrong order", where=f"submodel {reader}"
        )
    return BundleError(f"{name!r:.80} is read, but nothing produces it", where=f"submodel {reader}")


def _check_outputs(manifest: Manifest, producers: dict[str, str]) -> None:
    inputs = {value.name for value in manifest.inputs}
    outputs = {value.name for value in manifest.outputs}
    for name, source in manifest.aliases.items():
        if name not in outputs or source not in inputs:
            raise BundleError(
                f"the alias {name!r:.80} of {source!r:.80} does not lead from an output to an input", where="aliases"
            )
        if name in producers and name != source:
            raise BundleError(f"the alias {name!r:.80} is also produced by {producers[name]}", where="aliases")
    for name in outputs - producers.keys() - manifest.aliases.keys():
        if not manifest.constants:
            raise BundleError(f"nothing produces the output {name!r:.80}", where="outputs")


def _check_defaults(manifest: Manifest) -> None:
    for name in manifest.defaults.keys() - {value.name for value in manifest.inputs}:
        raise BundleError(f"{name!r:.80} has a default, but is no input", where="defaults")


def _check_types(manifest: Manifest, submodels: tuple[Submodel, ...], types: Mapping[str, ValueType]) -> None:
    for name in _names_in_chain(manifest, submodels):
        if name not in types:
            raise BundleError(f"the value {name!r:.80} has no type", hint=did_you_mean(name, types))
    for value in (*manifest.inputs, *manifest.outputs):
        if not _may_be_same(value.type, types[value.name]):
            raise BundleError(f"the value {value.name!r:.80} has two types", where="values")


def _names_in_chain(manifest: Manifest, submodels: tuple[Submodel, ...]) -> Iterator[str]:
    for value in (*manifest.inputs, *manifest.outputs):
        yield value.name
    for submodel in submodels:
        yield from submodel.inputs
        yield from submodel.outputs


def _may_be_same(a: ValueType, b: ValueType) -> bool:
    """Returns whether two types may be one, of which one may know more of the shape than the other."""
    match a, b:
        case TensorType(), TensorType():
            return a.dtype == b.dtype and _may_be_same_shape(a.shape, b.shape)
        case SequenceType(), SequenceType():
            return _may_be_same(a.element, b.element)
        case OptionalType(), OptionalType():
            return _may_be_same(a.element, b.element)
        case MapType(), MapType():
            return a.key == b.key and _may_be_same(a.value, b.value)
    return False


def _may_be_same_shape(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> bool:
    if a is None or b is None:
        return True
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(x == y or not (isinstance(x, int) and isinstance(y, int)) for x, y in pairs)


def _check_variants(submodel: Submodel) -> None:
    where = f"submodel {submodel.id}"
    try:
        _check_unique((variant.id for variant in submodel.variants), "variant")
    except BundleError as err:
        err.within(where)
        raise


def _check_members(manifest: Manifest) -> None:
    if len(manifest.members) + len(UNLISTED) > MAX_MEMBERS:
        raise BundleError(f"{len(manifest.members)} members, more than a bundle can hold", where="members")
    for name in UNLISTED & manifest.members.keys():
        raise BundleError(f"the manifest must not list {name!r}", where="members")
    if REPORT_NAME not in manifest.members:
        raise BundleError(f"the member {REPORT_NAME!r} is missing", where="members")
    for where, name in _members_named(manifest):
        if name not in manifest.members:
            raise BundleError(f"it names the member {name!r}, which is not listed", where=where)


def _members_named(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for submodel in all_submodels(manifest):
        for variant in submodel.variants:
            for name in variant.files.values():
                yield f"variant {variant.id} of submodel {submodel.id}", name
    for index, golden in enumerate(manifest.goldens):
        for name in (golden.inputs, golden.outputs, golden.boundaries):
            if name:
                yield f"goldens[{index}]", name
    if manifest.constants:
        yield "constants", manifest.constants
    for value, name in manifest.defaults.items():
        yield f"defaults[{value!r:.80}]", name
    for arch, name in manifest.pace_libraries.items():
        yield f"pace_libraries[{arch!r}]", name
    if manifest.pace_operators:
        yield "pace_operators", manifest.pace_operators


def _check_compressed(manifest: Manifest) -> None:
    for name, item in manifest.compressed.items():
        where = f"compressed[{name!r}]"
        if name not in manifest.members or name == REPORT_NAME:
            raise BundleError("no member that could be compressed", where=where)
        for base in item.bases:
            if base not in manifest.members or base in manifest.compressed:
                raise BundleError(f"its base {base!r} is compressed, or no member", where=where)
        most = MAX_OWN_BYTES + sum(manifest.members[base].size_bytes for base in set(item.bases))
        if not 0 < item.size_bytes <= most:
            raise BundleError(f"claims {item.size_bytes} bytes; 1 to {most} are allowed", where=where)


def _check_limits(manifest: Manifest) -> None:
    outputs = [output.name for output in manifest.outputs]
    for index, golden in enumerate(manifest.goldens):
        for name in golden.limits:
            if name not in outputs:
                where = f"goldens[{index}].limits"
                raise BundleError(f"{name!r:.80} is no output", where=where, hint=did_you_mean(name, outputs))


def _check_ranges(ranges: Mapping[str, DimRange]) -> None:
    for name, sizes in ranges.items():
        if not sizes.min <= sizes.best <= sizes.max:
            raise BundleError(
                f"expected min <= best <= max, got {sizes.min}, {sizes.best}, {sizes.max}", where=f"ranges[{name!r}]"
            )
        if sizes.step < 1 or not (sizes.holds(sizes.best) and sizes.holds(sizes.max)):
            raise BundleError(
                f"best {sizes.best} and max {sizes.max} must be {sizes.min} and a multiple of the step {sizes.step}",
                where=f"ranges[{name!r}]",
            )


def _check_placings(manifest: Manifest) -> None:
    chains = {chain.id: (chain.submodels, chain.values) for chain in manifest.target_chains}
    chains[PORTABLE] = (manifest.submodels, manifest.values)
    for name, placing in manifest.placings.items():
        where = f"placings[{name!r:.80}]"
        if name not in chains:
            raise BundleError("the bundle has no such chain", where=where, hint=did_you_mean(name, chains))
        submodels, values = chains[name]
        ids = {submodel.id for submodel in submodels}
        if different := sorted(ids ^ placing.submodels.keys()):
            raise BundleError(f"submodel {different[0]!r:.80} has no place, or is none of the chain", where=where)
        if unknown := sorted(placing.value_bytes.keys() - values.keys()):
            raise BundleError(f"{unknown[0]!r:.80} is no value of the chain", where=where)
        if name == PORTABLE and any(is_gpu(one.place) for one in placing.submodels.values()):
            raise BundleError("the portable chain runs on any CPU, and never on a GPU", where=where)
        if reason := why_no_places([PlaceLimit(one) for one in {one.place for one in placing.submodels.values()}]):
            raise BundleError(reason, where=where)


def check_image_input(image: ImageInput, inputs: Iterable[NamedType]) -> None:
    """Checks that an image can become one of the inputs.

    Raises:
        BundleError: it goes into none of them, or its numbers do not fit its channels.
    """
    names = [value.name for value in inputs]
    if image.name not in names:
        raise BundleError(
            f"no input is named {image.name!r:.80}", where="image_input", hint=did_you_mean(image.name, names)
        )
    num_channels = len(image.channels)
    if len(image.mean) != num_channels or len(image.std) != num_channels:
        raise BundleError(f"mean and std need {num_channels} numbers for {image.channels}", where="image_input")
    if 0 in image.std:
        raise BundleError("a standard deviation of 0 cannot be divided by", where="image_input")
