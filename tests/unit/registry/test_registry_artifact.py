# SPDX-License-Identifier: Apache-2.0
"""The manifest of the artifact: what it says comes back, and every deviation is refused with its own message."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from nndeploy.errors import BundleError
from nndeploy.registry.artifact import (
    BLOCK_BYTES,
    Artifact,
    ArtifactMember,
    Blob,
    block_bytes_for,
    decode_artifact,
    encode_artifact,
)


def member(name: str, *sizes: int, digit: str = "a") -> ArtifactMember:
    return ArtifactMember(name, tuple(Blob(digit * 63 + f"{n % 16:x}", size) for n, size in enumerate(sizes)))


ARTIFACT = Artifact(
    (member("manifest.json", 100), member("report.json", 0, digit="b"), member("w/0.bin", 1 << 20, digit="c")), "d" * 64
)
IN_BLOCKS = Artifact(
    (member("a/0", BLOCK_BYTES, BLOCK_BYTES, 7), member("manifest.json", 100), member("w", BLOCK_BYTES, BLOCK_BYTES)),
    "d" * 64,
)


def changed(change: Callable[[dict[str, Any]], object], artifact: Artifact = ARTIFACT) -> bytes:
    manifest = json.loads(encode_artifact(artifact))
    change(manifest)
    return json.dumps(manifest).encode()


@pytest.mark.parametrize("artifact", [ARTIFACT, IN_BLOCKS])
def test_what_is_said_comes_back(artifact: Artifact) -> None:
    assert decode_artifact(encode_artifact(artifact)) == artifact


def test_other_clients_may_annotate_and_spell_it_otherwise() -> None:
    def annotate(manifest: dict[str, Any]) -> None:
        manifest["annotations"]["org.opencontainers.image.created"] = "2026-01-01T00:00:00Z"
        manifest["layers"][0]["annotations"]["x"] = "y"
        manifest["config"]["data"] = "e30="

    assert decode_artifact(changed(annotate)) == ARTIFACT


def put(*path: str | int, value: object) -> Callable[[dict[str, Any]], object]:
    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


TITLE = "org.opencontainers.image.title"
CHANGES = {
    "version": (put("schemaVersion", value=1), "an image"),
    "version true": (put("schemaVersion", value=2.0), "an image"),
    "index": (put("mediaType", value="application/vnd.oci.image.index.v1+json"), "an image"),
    "type": (put("artifactType", value="application/vnd.cncf.helm"), "of the type"),
    "no type": (lambda manifest: manifest.pop("artifactType"), "of the type"),
    "config": (put("config", "digest", value="sha256:" + "0" * 64), "empty descriptor"),
    "config data": (put("config", "data", value="e31="), "empty descriptor"),
    "config list": (put("config", value=[]), "no JSON object"),
    "field": (put("subject", value={}), "the field 'subject'"),
    "no layers": (put("layers", value=[]), "no layers"),
    "layers null": (put("layers", value=None), "no layers"),
    "layer text": (put("layers", 0, value="x"), "no JSON object"),
    "layer type": (put("layers", 0, "mediaType", value="application/gzip"), "no member"),
    "layer urls": (put("layers", 0, "urls", value=["http://elsewhere/"]), "the field 'urls'"),
    "digest": (put("layers", 0, "digest", value="sha512:" + "a" * 128), "no digest"),
    "digest case": (put("layers", 0, "digest", value="sha256:" + "A" * 64), "no digest"),
    "digest path": (put("layers", 0, "digest", value="sha256:../../../../etc/passwd"), "no digest"),
    "digest list": (put("layers", 0, "digest", value=[]), "no digest"),
    "size": (put("layers", 2, "size", value=-1), "a size of -1"),
    "size true": (put("layers", 2, "size", value=True), "a size of True"),
    "size float": (put("layers", 2, "size", value=1.5), "a size of"),
    "size huge": (put("layers", 2, "size", value=1 << 62), "a size of"),
    "manifest huge": (put("layers", 0, "size", value=(4 << 20) + 1), "at most 4194304"),
    "name up": (put("layers", 2, "annotations", TITLE, value="../x"), "leaves its folder"),
    "name root": (put("layers", 2, "annotations", TITLE, value="/etc/passwd"), "absolute"),
    "name space": (put("layers", 2, "annotations", TITLE, value="w 0"), "other characters"),
    "name none": (put("layers", 2, "annotations", value={}), "is empty"),
    "name number": (put("layers", 2, "annotations", TITLE, value=5), "no text"),
    "name twice": (put("layers", 2, "annotations", TITLE, value="report.json"), "twice"),
    "name folder": (put("layers", 2, "annotations", TITLE, value="report.json/x"), "also the folder"),
    "order": (lambda manifest: manifest["layers"].reverse(), "not sorted"),
    "no manifest": (lambda manifest: manifest["layers"].pop(0), "no manifest.json"),
    "no annotations": (lambda manifest: manifest.pop("annotations"), "no JSON object"),
    "no sha": (put("annotations", value={}), "no SHA-256"),
    "sha": (put("annotations", "nndeploy.bundle.sha256", value="d" * 63), "no SHA-256"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_every_deviation_is_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        decode_artifact(changed(change))


BLOCK = "application/vnd.nndeploy.bundle.block.v1"
BLOCK_CHANGES = {
    "first": (lambda manifest: manifest["layers"].pop(0), "missing"),
    "middle": (lambda manifest: manifest["layers"].pop(1), "missing"),
    "order": (lambda manifest: manifest["layers"].insert(0, manifest["layers"].pop(1)), "out of order"),
    "twice": (lambda manifest: manifest["layers"].insert(0, manifest["layers"][0]), "stands twice"),
    "number": (put("layers", 1, "annotations", TITLE, value="a/0/1"), "missing"),
    "small": (put("layers", 1, "size", value=BLOCK_BYTES - 1), "of one size"),
    "large": (put("layers", 2, "size", value=BLOCK_BYTES + 1), "of one size"),
    "empty": (put("layers", 2, "size", value=0), "of one size"),
    "of two sizes": (lambda manifest: [layer.update(size=8 << 20) for layer in manifest["layers"][4:]], "of one size"),
    "apart": (lambda manifest: manifest["layers"].append(manifest["layers"].pop(2)), "missing"),
    "a whole one": (put("layers", 0, "mediaType", value="application/vnd.nndeploy.bundle.member.v1"), "missing"),
    "no name": (put("layers", 0, "annotations", TITLE, value="0000"), "is empty|missing"),
    "manifest": (
        lambda manifest: manifest["layers"][3].update(mediaType=BLOCK, annotations={TITLE: "manifest.json/0000"}), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BLOCK_CHANGES.values(), ids=BLOCK_CHANGES)
def test_blocks_that_are_no_whole_member_are_refused(change, message) -> None:
    data = changed(change, IN_BLOCKS)
    if message is None:  # one block is a whole member too
        assert decode_artifact(data) == IN_BLOCKS
        return
    with pytest.raises(BundleError, match=message):
        decode_artifact(data)


def test_blocks_are_as_large_as_the_number_of_layers_wants() -> None:
    assert block_bytes_for([0, 1, BLOCK_BYTES, 100 << 20]) == BLOCK_BYTES
    assert block_bytes_for([4000 * BLOCK_BYTES, *[1] * 96]) == BLOCK_BYTES
    assert block_bytes_for([4000 * BLOCK_BYTES, *[1] * 97]) == 2 * BLOCK_BYTES
    assert block_bytes_for([1] * 4096) == BLOCK_BYTES
    assert block_bytes_for([1 << 40, *[1] * 4095]) == 1 << 40


def test_too_many_members_are_refused_and_as_many_as_a_bundle_may_have_are_not() -> None:
    most = [member("manifest.json", 1), *(member(f"w/{n:04}", 1) for n in range(4095))]
    assert len(decode_artifact(encode_artifact(Artifact(tuple(most), "d" * 64))).members) == 4096
    with pytest.raises(BundleError, match="more than 4096"):
        decode_artifact(encode_artifact(Artifact((*most, member("x", 1)), "d" * 64)))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"a":1,"a":2}', b" " * ((4 << 20) + 1), b"NaN"]
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(BundleError):
        decode_artifact(data)
