# SPDX-License-Identifier: Apache-2.0
"""The manifest as JSON: its public form, `manifest.json`, which `manifest.schema.json` beside this file describes.

Between the values of `nndeploy.bundle.manifest` and the bytes in the archive. `manifest_from_json` refuses whatever
does not have exactly this form; whether the parts fit together is the matter of `nndeploy.bundle.manifest_check`.
Law: `manifest_from_json(manifest_to_json(m)) == m`.

A newer major version is refused by name before anything else is looked at. A newer minor version may add fields:
there, and only there, unknown fields are ignored, except in what a variant requires of a host.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from nndeploy.bundle.json_fields import DOTS, GPU_NEEDS, Fields, member_from_json, member_name, minor_version
from nndeploy.bundle.manifest import (
    FORMAT_MAJOR,
    FORMAT_MINOR,
    FORMAT_NAME,
    Compressed,
    Golden,
    ImageInput,
    Limits,
    Manifest,
    NamedType,
    PlacedSubmodel,
    Placing,
    Submodel,
    TargetChain,
    Tolerance,
    Variant,
)
from nndeploy.errors import BundleError, DataError, did_you_mean
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.target.place_limits import is_place
from nndeploy.values.types import (
    DTYPES,
    DimRange,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    ValueType,
    type_from_json,
    type_to_json,
)

MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 4 << 20  # the names and types of all values in the chain are in it, so more than other JSON
MAP_KEYS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string")
ORIGINS = ("sample", "generated")
CHANNELS = ("RGB", "BGR", "L")
LAYOUTS = ("NCHW", "NHWC")
FIRST_WITH_TARGETS = 1  # the minor version that brought target_chains, and GPUs in what a variant requires
FIRST_WITH_STEPS = 2  # the minor version that brought steps of ranges
FIRST_WITH_PACING = 3  # the minor version that brought pace_libraries
FIRST_WITH_OPERATORS = 4  # the minor version that brought pace_operators
FIRST_WITH_LIMITS = 5  # the minor version that brought limits of goldens
FIRST_WITH_MACHINES = 6  # the minor version that brought several kinds of machine in what a variant requires
FIRST_WITH_COMPRESSED = 7  # the minor version that brought members that are stored compressed
FIRST_WITH_PLACINGS = 8  # the minor version that brought chains over several places
FIRST_WITH_DEFAULTS = 9  # the minor version that brought defaults of inputs
FIRST_WITH_CHAIN_RANGES = 10  # the minor version that brought ranges of sizes of one chain
MAX_RANK = 64
MAX_PIXELS = 65535  # of one side of an image

_FILE = re.compile(r"[a-z0-9_.-]{1,64}(/[a-z0-9_.-]{1,128})?")


def encode_manifest(manifest: Manifest) -> bytes:
    """Returns the text of `manifest.json`.

    Raises:
        BundleError: the plain data in it hold what JSON cannot say, such as NaN.
    """
    return canonical_json(manifest_to_json(manifest))


def decode_manifest(text: bytes | memoryview) -> Manifest:
    """Returns the manifest that the text of `manifest.json` says.

    Raises:
        BundleError: the text is no canonical JSON, of a newer format, or not of the form of a manifest.
    """
    data = parse_json(text, MAX_MANIFEST_BYTES)
    manifest = manifest_from_json(data)
    minor, least = minor_version(data, FORMAT_NAME, (FORMAT_MAJOR, FORMAT_MINOR)), _least_minor(manifest)
    if minor <= FORMAT_MINOR and minor != least:
        raise BundleError(f"says that it is of format 1.{minor}, what it holds makes it 1.{least}", where="format")
    return manifest


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Returns the manifest as plain data."""
    image, minor = manifest.image_input, _least_minor(manifest)
    chains = [_target_chain_to_json(chain, minor) for chain in manifest.target_chains]
    compressed = {name: _compressed_to_json(item) for name, item in manifest.compressed.items()}
    placings = {name: dataclasses.asdict(placing) for name, placing in manifest.placings.items()}
    return {
        "format": {"name": FORMAT_NAME, "major": FORMAT_MAJOR, "minor": minor},
        "model_name": manifest.model_name,
        "model_sha256": manifest.model_sha256,
        "inputs": [_named_type_to_json(value) for value in manifest.inputs],
        "outputs": [_named_type_to_json(value) for value in manifest.outputs],
        "submodels": [_submodel_to_json(submodel) for submodel in manifest.submodels],
        "values": _types_to_json(manifest.values),
        **({"target_chains": chains} if minor >= FIRST_WITH_TARGETS else {}),
        "ranges": _ranges_to_json(manifest.ranges, minor),
        "aliases": dict(manifest.aliases),
        "constants": manifest.constants,
        "goldens": [_golden_to_json(golden, minor) for golden in manifest.goldens],
        "tolerances": {dtype: _tolerance_to_json(tolerance) for dtype, tolerance in manifest.tolerances.items()},
        "checks": [dict(check) for check in manifest.checks],
        "image_input": None if image is None else _image_input_to_json(image),
        **({"pace_libraries": dict(manifest.pace_libraries)} if minor >= FIRST_WITH_PACING else {}),
        **({"pace_operators": manifest.pace_operators} if minor >= FIRST_WITH_OPERATORS else {}),
        "provenance": dict(manifest.provenance),
        "members": {n: {"sha256": m.sha256, "size_bytes": m.size_bytes} for n, m in manifest.members.items()},
        **({"compressed": compressed} if minor >= FIRST_WITH_COMPRESSED else {}),
        **({"placings": placings} if minor >= FIRST_WITH_PLACINGS else {}),
        **({"defaults": dict(manifest.defaults)} if minor >= FIRST_WITH_DEFAULTS else {}),
    }


def manifest_from_json(data: object) -> Manifest:
    """Returns the manifest that plain data describe.

    Raises:
        BundleError: the data are of a newer format, or not of the form of a manifest.
    """
    minor = minor_version(data, FORMAT_NAME, (FORMAT_MAJOR, FORMAT_MINOR))
    fields = Fields(data, "", ignore_unknown=minor > FORMAT_MINOR)
    fields.take("format")
    chains = () if minor < FIRST_WITH_TARGETS else fields.list_of_fields("target_chains")
    manifest = Manifest(
        model_name=fields.text("model_name"),
        model_sha256=fields.sha256("model_sha256"),
        inputs=tuple(_named_type(item) for item in fields.list_of_fields("inputs")),
        outputs=tuple(_named_type(item) for item in fields.list_of_fields("outputs")),
        submodels=tuple(_submodel(item) for item in fields.list_of_fields("submodels")),
        values=_types(fields),
        target_chains=tuple(_target_chain(item, minor) for item in chains),
        ranges=_ranges(fields, minor),
        aliases=fields.names_by_name("aliases"),
        constants=fields.member_or_empty("constants"),
        goldens=tuple(_golden(item, minor) for item in fields.list_of_fields("goldens")),
        tolerances={dtype: _tolerance(dtype, item) for dtype, item in fields.named_fields("tolerances")},
        checks=tuple(item.plain() for item in fields.list_of_fields("checks")),
        image_input=None if fields.is_null("image_input") else _image_input(fields.fields("image_input")),
        pace_libraries=_members_by_name(fields, "pace_libraries") if minor >= FIRST_WITH_PACING else {},
        pace_operators=fields.member_or_empty("pace_operators") if minor >= FIRST_WITH_OPERATORS else "",
        provenance=fields.fields("provenance").plain(),
        members={name: member_from_json(name, item) for name, item in fields.named_fields("members")},
        compressed={name: _compressed(name, item) for name, item in fields.named_fields("compressed")}
        if minor >= FIRST_WITH_COMPRESSED
        else {},
        placings={name: _placing(item) for name, item in fields.named_fields("placings")}
        if minor >= FIRST_WITH_PLACINGS
        else {},
        defaults=_members_by_name(fields, "defaults") if minor >= FIRST_WITH_DEFAULTS else {},
    )
    fields.end()
    return manifest


def _named_type(fields: Fields) -> NamedType:
    result = NamedType(fields.name("name"), _value_type(fields.take("type"), fields.at("type")))
    fields.end()
    return result


def _value_type(data: object, where: str) -> ValueType:
    try:
        value_type = type_from_json(data)
    except DataError as err:
        raise BundleError(err.what, where=where) from err
    _check_map_keys(value_type, where)
    return value_type


def _check_map_keys(value_type: ValueType, where: str) -> None:
    match value_type:
        case MapType(key, value):
            if key not in MAP_KEYS:
                raise BundleError(f"the keys of a map are integers or strings, not {key}", where=where)
            _check_map_keys(value, where)
        case SequenceType(element) | OptionalType(element):
            _check_map_keys(element, where)
        case TensorType():
            pass


def _submodel(fields: Fields) -> Submodel:
    result = Submodel(
        id=fields.identifier("id"),
        inputs=fields.names("inputs"),
        outputs=fields.names("outputs", least=1),
        variants=tuple(_variant(item) for item in fields.list_of_fields("variants", least=1)),
    )
    fields.end()
    return result


def _target_chain(fields: Fields, minor: int) -> TargetChain:
    result = TargetChain(
        id=fields.identifier("id"),
        target=fields.name("target"),
        submodels=tuple(_submodel(item) for item in fields.list_of_fields("submodels")),
        values=_types(fields),
        ranges=_ranges(fields, minor) if minor >= FIRST_WITH_CHAIN_RANGES else {},
    )
    fields.end()
    return result


def _types(fields: Fields) -> dict[str, ValueType]:
    return {name: _value_type(item, fields.at(f"values[{name!r}]")) for name, item in fields.named("values")}


def _variant(fields: Fields) -> Variant:
    result = Variant(
        id=fields.identifier("id"),
        backend=fields.name("backend"),
        target=fields.name("target"),
        files=_files(fields),
        metadata=fields.fields("metadata").plain(),
        requires=fields.requirements("requires"),
        native_code=fields.boolean("native_code"),
        deterministic=fields.boolean("deterministic"),
    )
    fields.end()
    return result


def _members_by_name(fields: Fields, field: str) -> dict[str, str]:
    members = fields.names_by_name(field)
    for name, member in members.items():
        member_name(member, f"{fields.at(field)}[{name!r:.80}]")
    return members


def _files(fields: Fields) -> dict[str, str]:
    files = fields.names_by_name("files")
    for name, member in files.items():
        if not _FILE.fullmatch(name) or any(segment in DOTS for segment in name.split("/")):
            raise BundleError(f"{name!r:.80} is no name of a backend's file", where=fields.at("files"))
        member_name(member, f"{fields.at('files')}[{name!r}]")
    return files


def _ranges_to_json(ranges: Mapping[str, DimRange], minor: int) -> dict[str, dict[str, int]]:
    return {name: _dim_range_to_json(sizes, minor) for name, sizes in ranges.items()}


def _ranges(fields: Fields, minor: int) -> dict[str, DimRange]:
    return {name: _dim_range(item, minor) for name, item in fields.named_fields("ranges")}


def _dim_range_to_json(sizes: DimRange, minor: int) -> dict[str, int]:
    step = {"step": sizes.step} if minor >= FIRST_WITH_STEPS else {}
    return {"min": sizes.min, "max": sizes.max, "best": sizes.best, **step}


def _dim_range(fields: Fields, minor: int) -> DimRange:
    step = fields.integer("step") if minor >= FIRST_WITH_STEPS else 1
    result = DimRange(fields.integer("min"), fields.integer("max"), fields.integer("best"), step)
    fields.end()
    return result


def _golden(fields: Fields, minor: int) -> Golden:
    result = Golden(
        inputs=member_name(fields.text("inputs"), fields.at("inputs")),
        outputs=member_name(fields.text("outputs"), fields.at("outputs")),
        boundaries=fields.member_or_empty("boundaries"),
        origin=fields.choice("origin", ORIGINS),
        limits={name: _limits(item) for name, item in fields.named_fields("limits")}
        if minor >= FIRST_WITH_LIMITS
        else {},
    )
    fields.end()
    return result


def _limits(fields: Fields) -> Limits:
    result = Limits(
        max_abs=fields.number_from_zero("max_abs"),
        rms=fields.number_from_zero("rms"),
        slice_rms=fields.number_from_zero("slice_rms"),
        off=fields.number_from_zero("off"),
        rows_axis=None if fields.is_null("rows_axis") else fields.integer("rows_axis", most=MAX_RANK),
        unmatched=fields.number_from_zero("unmatched"),
    )
    fields.end()
    return result


def _tolerance(dtype: str, fields: Fields) -> Tolerance:
    if dtype not in DTYPES:
        raise BundleError(f"unknown element type {dtype!r:.40}", where="tolerances", hint=did_you_mean(dtype, DTYPES))
    result = Tolerance(
        rtol=fields.number_from_zero("rtol"),
        atol=fields.number_from_zero("atol"),
        span=fields.number_from_zero("span"),
    )
    fields.end()
    return result


def image_input_from_json(data: object) -> ImageInput:
    """Returns how an image becomes an input, as plain data say it; errors are placed at the field alone.

    Raises:
        BundleError: a field is missing, unknown, or not of its form.
    """
    return _image_input(Fields(data, "", ignore_unknown=False))


def _image_input(fields: Fields) -> ImageInput:
    result = ImageInput(
        name=fields.name("name"),
        height=fields.integer("height", 1, MAX_PIXELS),
        width=fields.integer("width", 1, MAX_PIXELS),
        channels=fields.choice("channels", CHANNELS),
        layout=fields.choice("layout", LAYOUTS),
        mean=fields.numbers("mean"),
        std=fields.numbers("std"),
        labels=fields.names("labels"),
    )
    fields.end()
    return result


def _compressed(name: str, fields: Fields) -> Compressed:
    bases = tuple(member_name(base, fields.at("bases")) for base in fields.names("bases"))
    result = Compressed(fields.sha256("sha256"), fields.integer("size_bytes"), bases)
    member_name(name, "compressed")
    fields.end()
    return result


def _placing(fields: Fields) -> Placing:
    sizes = fields.fields("value_bytes")
    result = Placing(
        submodels={name: _placed_submodel(item) for name, item in fields.named_fields("submodels")},
        value_bytes={name: sizes.integer(name) for name in sizes.plain()},
    )
    fields.end()
    return result


def _placed_submodel(fields: Fields) -> PlacedSubmodel:
    place = fields.text("place")
    if not is_place(place):
        raise fields.refuse("place", "cpu, cpu:N or cuda:N")
    result = PlacedSubmodel(place, fields.integer("weight_bytes"), fields.integer("peak_bytes"))
    fields.end()
    return result


def _named_type_to_json(value: NamedType) -> dict[str, Any]:
    return {"name": value.name, "type": type_to_json(value.type)}


def _submodel_to_json(submodel: Submodel) -> dict[str, Any]:
    return {
        "id": submodel.id,
        "inputs": list(submodel.inputs),
        "outputs": list(submodel.outputs),
        "variants": [_variant_to_json(variant) for variant in submodel.variants],
    }


def _least_minor(manifest: Manifest) -> int:
    """Returns the oldest minor version that can say this, so that boxes with an older nndeploy read what they can."""
    if any(chain.ranges for chain in manifest.target_chains):
        return FIRST_WITH_CHAIN_RANGES
    if manifest.defaults:
        return FIRST_WITH_DEFAULTS
    if manifest.placings:
        return FIRST_WITH_PLACINGS
    if manifest.compressed:
        return FIRST_WITH_COMPRESSED
    chains = (manifest.submodels, *(chain.submodels for chain in manifest.target_chains))
    if any("machines" in one.requires for chain in chains for submodel in chain for one in submodel.variants):
        return FIRST_WITH_MACHINES
    if any(golden.limits for golden in manifest.goldens):
        return FIRST_WITH_LIMITS
    if manifest.pace_operators:
        return FIRST_WITH_OPERATORS
    if manifest.pace_libraries:
        return FIRST_WITH_PACING
    if any(sizes.step != 1 for sizes in manifest.ranges.values()):
        return FIRST_WITH_STEPS
    needs = {key for submodel in manifest.submodels for variant in submodel.variants for key in variant.requires}
    return FIRST_WITH_TARGETS if manifest.target_chains or needs & GPU_NEEDS else 0


def _target_chain_to_json(chain: TargetChain, minor: int) -> dict[str, Any]:
    return {
        "id": chain.id,
        "target": chain.target,
        "submodels": [_submodel_to_json(submodel) for submodel in chain.submodels],
        "values": _types_to_json(chain.values),
        **({"ranges": _ranges_to_json(chain.ranges, minor)} if minor >= FIRST_WITH_CHAIN_RANGES else {}),
    }


def _types_to_json(types: Mapping[str, ValueType]) -> dict[str, Any]:
    return {name: type_to_json(value_type) for name, value_type in types.items()}


def _variant_to_json(variant: Variant) -> dict[str, Any]:
    return {
        "id": variant.id,
        "backend": variant.backend,
        "target": variant.target,
        "files": dict(variant.files),
        "metadata": dict(variant.metadata),
        "requires": _plain_mapping(variant.requires),
        "native_code": variant.native_code,
        "deterministic": variant.deterministic,
    }


def _plain_mapping(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def _golden_to_json(golden: Golden, minor: int) -> dict[str, Any]:
    limits = {name: dataclasses.asdict(of) for name, of in golden.limits.items()}
    return {
        "inputs": golden.inputs,
        "outputs": golden.outputs,
        "boundaries": golden.boundaries,
        "origin": golden.origin,
        **({"limits": limits} if minor >= FIRST_WITH_LIMITS else {}),
    }


def _compressed_to_json(item: Compressed) -> dict[str, Any]:
    return {"sha256": item.sha256, "size_bytes": item.size_bytes, "bases": list(item.bases)}


def _tolerance_to_json(tolerance: Tolerance) -> dict[str, Any]:
    return {"rtol": tolerance.rtol, "atol": tolerance.atol, "span": tolerance.span}


def _image_input_to_json(image: ImageInput) -> dict[str, Any]:
    return {
        "name": image.name,
        "height": image.height,
        "width": image.width,
        "channels": image.channels,
        "layout": image.layout,
        "mean": list(image.mean),
        "std": list(image.std),
        "labels": list(image.labels),
    }
