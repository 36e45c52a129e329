# SPDX-License-Identifier: Apache-2.0
"""The manifest as JSON: nothing is lost, nothing but its form is read, and the JSON Schema says the same."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import nndeploy.bundle.manifest_json as manifest_json
from nndeploy.bundle.manifest import FORMAT_MINOR, Compressed, Limits, Manifest, PlacedSubmodel, Placing, TargetChain
from nndeploy.bundle.manifest_json import decode_manifest, encode_manifest, manifest_from_json, manifest_to_json
from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json
from nndeploy.values.types import DimRange

SCHEMA = json.loads((Path(manifest_json.__file__).parent / "manifest.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
HEAD, TAIL = "submodels/head/portable/model.onnx", "submodels/tail/portable/model.onnx"
PLACE = ("placings", "portable", "submodels", "head")
Json = Any


@pytest.fixture
def data(full_manifest: Manifest) -> dict[str, Json]:
    return json.loads(encode_manifest(full_manifest))


def test_a_manifest_comes_back_as_it_was(full_manifest: Manifest) -> None:
    assert manifest_from_json(manifest_to_json(full_manifest)) == full_manifest
    assert decode_manifest(encode_manifest(full_manifest)) == full_manifest


RANGES = {"N": DimRange(1, 8, 1), "image.2": DimRange(32, 640, 224, step=32)}
LIMITS = {"scores": Limits(0.5, 0.25, 0.25, 0.125), "labels": Limits(0.0, 0.0, 0.0, 0.0, 1, 0.5)}
PLACES = {"head": PlacedSubmodel("cpu:0", 1, 2), "tail": PlacedSubmodel("cpu:1", 3, 4)}
COMPRESSED = {TAIL: Compressed("22" * 32, 9, (HEAD,)), HEAD: Compressed("3" * 64, 1)}
NEWER: list[tuple[int, str, Callable[[Manifest], dict[str, Any]]]] = [
    (1, "target_chains", lambda one: {"target_chains": (TargetChain("rtx", "RTX", one.submodels, one.values),)}),
    (2, "", lambda _: {"ranges": {"N": DimRange(1, 9, 5, step=4), "M": DimRange(1, 2, 2)}}),
    (3, "pace_libraries", lambda _: {"pace_libraries": {"x86_64": "pacing/x86_64/pace.so"}}),
    (4, "pace_operators", lambda _: {"pace_operators": "pacing/operators.json"}),
    (5, "", lambda manifest: {"goldens": (replace(manifest.goldens[0], limits=LIMITS),)}),
    (7, "compressed", lambda _: {"compressed": COMPRESSED}),
    (8, "placings", lambda _: {"placings": {"portable": Placing(PLACES, {"features": 32})}}),
    (9, "defaults", lambda manifest: {"defaults": {manifest.inputs[0].name: "weights/defaults.values"}}),
    (10, "", lambda one: {"target_chains": (TargetChain("rtx", "RTX", one.submodels, one.values, RANGES),)}),
]
"""The minor version, the field that it added, and what of a manifest needs it."""


@pytest.mark.parametrize(("minor", "field", "parts"), NEWER, ids=lambda value: value if isinstance(value, str) else "")
def test_newer_parts_come_back_and_make_it_a_later_version(full_manifest, minor, field, parts) -> None:
    manifest = replace(full_manifest, **parts(full_manifest))
    plain = manifest_to_json(manifest)
    assert plain["format"]["minor"] == minor
    VALIDATOR.validate(plain)
    assert decode_manifest(encode_manifest(manifest)) == manifest
    if field:
        del plain[field]
        with pytest.raises(BundleError, match=f"the field '{field}' is missing"):
            manifest_from_json(plain)


@pytest.fixture
def newest(full_manifest: Manifest) -> dict[str, Json]:
    """A manifest with all newer parts."""
    for _, _, parts in NEWER:
        full_manifest = replace(full_manifest, **parts(full_manifest))
    return manifest_to_json(full_manifest)


@pytest.mark.parametrize(("path", "value", "message"), [
    (("ranges", "M", "step"), None, r"ranges\['M'\]\.step: expected an integer"),
    (("goldens", 0, "limits", "scores", "rms"), -1.0, r"limits\['scores'\].rms: expected a finite number"),
    (("pace_operators",), "../operators.json", "pace_operators"),
    (("defaults",), {"image/:0": "../defaults.values"}, "defaults"),
    ((*PLACE, "place"), "gpu:0", r"submodels\['head'\]\.place: expected cpu, cpu:N or cuda:N, got 'gpu:0'"),
    ((*PLACE, "place"), "cpu:64", "expected cpu, cpu:N or cuda:N"),
    ((*PLACE, "weight_bytes"), -1, "weight_bytes: expected an integer from 0"),
    ((*PLACE, "peak_bytes"), 1.5, "peak_bytes: expected an integer from 0"),
    ((*PLACE, "core"), 1, r"submodels\['head'\]: unknown field 'core'"),
    (("placings", "portable", "value_bytes", "features"), "many", r"value_bytes\.features: expected an integer"),
    (
        ("compressed", "../x"), {"sha256": "0" * 64, "size_bytes": 1, "bases": []},
        "compressed: the member name '../x' leaves its folder",
    ),
    (("compressed", TAIL, "bases"), ["/etc"], r"\.bases: the member name '/etc' is an absolute path"),
    (("compressed", TAIL, "bases"), "w/b", "expected a list of names"),
    (("compressed", TAIL, "size_bytes"), -1, "expected an integer from 0"),
    (("compressed", TAIL, "sha256"), "0", "expected 64 lower-case"),
    (("compressed", TAIL, "method"), 8, "unknown field 'method'"),
])  # fmt: skip
def test_refuses_another_form_of_newer_parts(newest, path, value, message) -> None:
    VALIDATOR.validate(newest)
    newest = mutated(newest, path, "replace", value)
    assert not VALIDATOR.is_valid(newest)
    with pytest.raises(BundleError, match=message):
        manifest_from_json(newest)


@pytest.mark.parametrize("minor", [0, 1])
def test_the_minor_version_is_the_least_that_can_say_it(full_manifest, manifest_with_chains, minor) -> None:
    data = manifest_to_json(manifest_with_chains if minor == 0 else full_manifest)
    assert data["format"]["minor"] != minor
    data["format"]["minor"] = minor
    data.setdefault("target_chains", [])
    if minor == 0:
        del data["target_chains"]
        data["submodels"][0]["variants"][0]["requires"] = {"compute_capability": ["8.9"]}
    with pytest.raises(BundleError, match=f"format: says that it is of format 1.{minor}, what it holds makes it 1"):
        decode_manifest(canonical_json(data))


def test_a_manifest_without_the_optional_parts_comes_back() -> None:
    bare = Manifest("", "0" * 64, (), (), (), {})
    assert decode_manifest(encode_manifest(bare)) == bare


def test_the_text_is_canonical(full_manifest: Manifest) -> None:
    text = encode_manifest(full_manifest)
    assert text.isascii()
    assert text == canonical_json(json.loads(text))


def test_the_schema_is_one_and_real_manifests_fit_it(data: dict[str, Json]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    VALIDATOR.validate(data)
    VALIDATOR.validate(manifest_to_json(Manifest("", "0" * 64, (), (), (), {})))


TYPES: dict[str, Json] = {
    "x": {"kind": "tensor", "dtype": "float32", "shape": ["N", 3, None]},
    "s": {"kind": "sequence", "element": {"kind": "tensor", "dtype": "bool", "shape": None}},
    "m": {"kind": "map", "key": "int64", "value": {"kind": "tensor", "dtype": "string", "shape": []}},
}
VARIANT_DATA: dict[str, Json] = {
    "id": "v", "backend": "onnxruntime", "target": "host", "files": {"a/b": "w/a"}, "metadata": {"k": [1]},
    "requires": {
        "arch": "x86_64", "cpu_features": ["avx2"], "custom_ops": [],
        "compute_capability": ["8.9"], "compute_capability_min": "8.0",
    },
    "native_code": False, "deterministic": True,
}  # fmt: skip
ONE_OF_EACH: dict[str, Json] = {
    "format": {"name": "nndeploy-bundle", "major": 1, "minor": 1},
    "target_chains": [{"id": "rtx", "target": "RTX", "values": TYPES, "submodels": []}],
    "model_name": "", "model_sha256": "ab" * 32,
    "inputs": [{"name": "x", "type": TYPES["x"]}], "outputs": [], "values": TYPES,
    "submodels": [{"id": "a", "inputs": [], "outputs": ["y"], "variants": [VARIANT_DATA]}],
    "ranges": {"N": {"min": 1, "max": 1, "best": 1}}, "aliases": {"y": "x"}, "constants": "",
    "goldens": [{"inputs": "g/i", "outputs": "g/o", "boundaries": "", "origin": "sample"}],
    "tolerances": {"float32": {"rtol": 0.5, "atol": 0, "span": 0.25}}, "checks": [{"ok": True}],
    "image_input": {
        "name": "x", "height": 1, "width": 1, "channels": "L", "layout": "NHWC", "mean": [0], "std": [1.5], "labels": []
    },
    "provenance": {}, "members": {"w/a": {"sha256": "00" * 32, "size_bytes": 1}},
}  # fmt: skip


def paths_of(node: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, item in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from paths_of(item, (*path, key))


def mutated(data: Json, path: tuple[Any, ...], change: str, value: Json = None) -> Json:
    """A copy in which the item at `path` is replaced, deleted, renamed or, if it is a list or object, has one more."""
    data = copy.deepcopy(data)
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    match change:
        case "replace":
            parent[path[-1]] = value
        case "delete":
            del parent[path[-1]]
        case "rename" if isinstance(parent, dict):
            parent[value] = parent.pop(path[-1])
        case "add" if isinstance(parent[path[-1]], dict):
            parent[path[-1]]["new"] = value
        case "add" if isinstance(parent[path[-1]], list):
            parent[path[-1]].append(value)
    return data


REPLACEMENTS: tuple[Json, ...] = (
    None, True, 0, -1, 1.5, -0.5, 2**63, 10**400, "", "a/../b", "/a", "a/b/c/d/e/f", "A", "..", "0" * 64, "float32",
    "int8", [], ["x"], [""], [1], {}, {"": "x"}, TYPES["m"], {**TYPES["x"], "shape": [0] * 65},
    {**TYPES["m"], "key": "float32"},
)  # fmt: skip


def mutants(data: Json) -> Iterator[tuple[str, Json]]:
    for path in paths_of(data):
        yield f"delete {path}", mutated(data, path, "delete")
        for value in REPLACEMENTS:
            yield f"replace {path} by {value!r:.60}", mutated(data, path, "replace", value)
        for value in (None, 1, "x", "", {}):
            yield f"add {value!r} to {path}", mutated(data, path, "add", value)
        for name in ("", "x", "..", "X", "float64"):
            yield f"rename {path} to {name!r}", mutated(data, path, "rename", name)


def is_parsed(data: Json) -> bool:
    try:
        manifest_from_json(data)
    except BundleError:
        return False
    return True


def test_the_schema_and_the_parser_agree_on_every_mutation() -> None:
    assert VALIDATOR.is_valid(ONE_OF_EACH)
    verdicts = {True: 0, False: 0}
    for what, mutant in islice(mutants(ONE_OF_EACH), 0, None, 11):
        if mutant != ONE_OF_EACH:
            fits = VALIDATOR.is_valid(mutant)
            assert fits == is_parsed(mutant), f"{what}: the schema says {fits}"
            verdicts[fits] += 1
    assert min(verdicts.values()) > 25


SUBMODEL = ("submodels", 0)
VARIANT = (*SUBMODEL, "variants", 0)


@pytest.mark.parametrize(("path", "value", "message"), [
    (("model_name",), None, "model_name: expected text, got nothing"),
    (("model_sha256",), "AB" * 32, "model_sha256: expected 64 lower-case hexadecimal digits"),
    (("inputs",), {}, "inputs: expected a list"),
    (("inputs", 0), 1, r"inputs\[0\]: expected an object, got 1"),
    (("inputs", 0, "name"), "", r"inputs\[0\]\.name: expected a name"),
    (("inputs", 0, "type", "dtype"), "float31", "unknown element type 'float31'"),
    (("inputs", 0, "type", "shape"), [-1], "not a shape"),
    (("inputs", 0, "type"), {"kind": "tensor"}, "not a value type"),
    (("values", "labels", "element", "key"), "float32", "keys of a map are integers or strings, not float32"),
    (("values", ""), None, "without an empty name"),
    ((*SUBMODEL, "id"), "..", r"submodels\[0\]\.id: expected 1 to 64 of"),
    ((*SUBMODEL, "id"), "a/b", r"submodels\[0\]\.id: expected 1 to 64 of"),
    ((*SUBMODEL, "inputs"), "x", "expected a list of names"),
    ((*SUBMODEL, "outputs"), [], "expected 1 name or more"),
    ((*SUBMODEL, "variants"), [], "expected 1 item or more"),
    ((*VARIANT, "id"), "Upper", "expected 1 to 64 of"),
    ((*VARIANT, "native_code"), 1, "expected true or false, got 1"),
    ((*VARIANT, "files"), {"a/b/c": "x"}, "'a/b/c' is no name of a backend's file"),
    ((*VARIANT, "files"), {"../x": "x"}, "'../x' is no name of a backend's file"),
    ((*VARIANT, "files"), {"x": "../x"}, r"files\['x'\]: the member name '../x' leaves its folder"),
    ((*VARIANT, "files"), {"x": "/x"}, "'/x' is an absolute path"),
    ((*VARIANT, "files"), {"x": 1}, "expected an object of names"),
    ((*VARIANT, "metadata"), [], "metadata: expected an object"),
    ((*VARIANT, "requires", "arch"), 1, r"requires\.arch: expected text"),
    ((*VARIANT, "requires", "cpu_features"), [["avx2"]], "cpu_features: expected a list of names"),
    ((*VARIANT, "requires", "gpu"), "any", r"requires: unknown field 'gpu'"),
    (("ranges", "N", "min"), -1, "expected an integer from 0 to"),
    (("ranges", "N", "max"), 2**63, "expected an integer from 0 to"),
    (("ranges", "N", "best"), True, "expected an integer"),
    (("aliases", "same"), 1, "aliases: expected an object of names"),
    (("constants",), "../x", "constants: the member name '../x' leaves"),
    (("goldens", 0, "origin"), "made up", "expected one of sample, generated"),
    (("goldens", 0, "inputs"), "", "is empty"),
    (("tolerances", "float31"), {}, "unknown element type 'float31'.*did you mean 'float32'"),
    (("tolerances", "float32", "rtol"), -1.0, "expected a finite number that is not negative"),
    (("tolerances", "float32", "atol"), 10**400, "expected a finite number"),
    (("checks",), [1], r"checks\[0\]: expected an object"),
    (("image_input", "channels"), "CMYK", "expected one of RGB, BGR, L"),
    (("image_input", "layout"), "CHW", "expected one of NCHW, NHWC"),
    (("image_input", "height"), 0, "expected an integer from 1 to 65535"),
    (("image_input", "mean"), ["0"], "expected a list of finite numbers"),
    (("image_input", "labels"), [1], "expected a list of names"),
    (("provenance",), None, "provenance: expected an object"),
    (("members", "../x"), {"sha256": "0" * 64, "size_bytes": 0}, "leaves its folder"),
    (("members", "report.json", "size_bytes"), -1, "expected an integer from 0"),
    (("members", "report.json", "sha256"), "0" * 63, "64 lower-case hexadecimal digits"),
    (("surprise",), 1, "unknown field 'surprise'"),
    (("submodels", 0, "variants", 0, "targets"), 1, "unknown field 'targets'.*did you mean 'target'"),
], ids=str)  # fmt: skip
def test_refuses(data: dict[str, Json], path: tuple[Any, ...], value: Json, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        manifest_from_json(mutated(data, path, "replace", value))


@pytest.mark.parametrize(("data", "message"), [
    *((data, "expected an object") for data in (None, [], 1, "manifest")), ({}, "the field 'format' is missing"),
], ids=repr)  # fmt: skip
def test_refuses_what_is_no_object_with_a_format(data: Json, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        manifest_from_json(data)


def test_refuses_a_missing_field_by_name(data: dict[str, Json]) -> None:
    with pytest.raises(BundleError, match=r"submodels\[1\]: the field 'outputs' is missing"):
        manifest_from_json(mutated(data, ("submodels", 1, "outputs"), "delete"))


def test_a_newer_major_version_is_refused_before_anything_else_is_looked_at() -> None:
    data = {"format": {"name": "nndeploy-bundle", "major": 2, "minor": 0, "new": 1}, "everything": "else"}
    with pytest.raises(BundleError, match=r"made by a newer nndeploy \(format 2\), this one reads format 1") as caught:
        manifest_from_json(data)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(("change", "message"), [
    ({"name": "other"}, "format.name: expected nndeploy-bundle, got 'other'"),
    ({"major": 0}, "format 0 was never released"),
    ({"major": "1"}, "format.major: expected an integer"),
    ({"minor": -1}, "format.minor: expected an integer"),
    ({"more": 1}, "format: unknown field 'more'"),
])  # fmt: skip
def test_refuses_another_format(data: dict[str, Json], change: dict[str, Json], message: str) -> None:
    data["format"].update(change)
    with pytest.raises(BundleError, match=message):
        manifest_from_json(data)


def test_of_a_newer_minor_version_unknown_fields_are_ignored_and_unknown_requirements_kept(data, full_manifest) -> None:
    data["format"].update(minor=FORMAT_MINOR + 1, codename="x")
    data.update(target_chains=[], pace_libraries={}, pace_operators="", compressed={}, placings={}, defaults={})
    data["ranges"]["N"]["step"], data["goldens"][0]["limits"] = 1, {}
    for path in ((), ("submodels", 0), VARIANT, ("image_input",), ("members", "report.json")):
        data = mutated(data, (*path, "unknown"), "replace", {"any": 1})
    assert manifest_from_json(data) == full_manifest
    newer = manifest_from_json(mutated(data, (*VARIANT, "requires", "gpu"), "replace", "sm_90"))
    assert newer.submodels[0].variants[0].requires["gpu"] == "sm_90"


def test_refuses_a_type_that_is_too_deep(data: dict[str, Json]) -> None:
    value_type = data["values"]["same"]
    for _ in range(9):
        value_type = {"kind": "sequence", "element": value_type}
    data["values"]["same"] = value_type
    with pytest.raises(BundleError, match="not a value type"):
        manifest_from_json(data)


def test_refuses_a_text_that_is_too_long(monkeypatch: pytest.MonkeyPatch, full_manifest: Manifest) -> None:
    text = encode_manifest(full_manifest)
    monkeypatch.setattr(manifest_json, "MAX_MANIFEST_BYTES", len(text) - 1)
    with pytest.raises(BundleError, match=f"{len(text)} bytes of JSON; at most {len(text) - 1}"):
        decode_manifest(text)


@pytest.mark.parametrize("text", [b"", b"{", b'{"format":1,"format":1}', b"[NaN]", b"[" * 5000])
def test_refuses_text_that_is_not_strict_json(text: bytes) -> None:
    with pytest.raises(BundleError):
        decode_manifest(text)
