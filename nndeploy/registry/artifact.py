# SPDX-License-Identifier: Apache-2.0
"""The manifest of a bundle as an OCI artifact: one layer a member, and the SHA-256 of the whole bundle.

The container of a bundle has one encoding for its members, so members, names and that hash are all that has to travel.
The weights of a model are mostly one member, of which a change touches little; so a member of more than a block is one
layer a block, titled like files in a folder of its name: `weights.bin/0000`, `weights.bin/0001`, ... No member can be
called so, because none is both a file and a folder.

Laws: `decode_artifact(encode_artifact(a)) == a`; the same bundle gives the same bytes, so the same digest; a manifest
is untrusted data, and whatever is not as it should be is refused. Annotations that nobody here knows are passed over.

Source: OCI Image Specification 1.1, manifest.md ("Guidelines for Artifact Usage") and annotations.md.
"""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nndeploy.bundle.container import check_names
from nndeploy.bundle.manifest_check import SIGNATURE_NAME
from nndeploy.bundle.manifest_json import MANIFEST_NAME, MAX_MANIFEST_BYTES
from nndeploy.bundle.reader import MAX_SIGNATURE_BYTES
from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.registry.reference import DIGEST

MAX_ARTIFACT_BYTES = 4 << 20
MAX_MEMBER_BYTES = 1 << 48
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
ARTIFACT_TYPE = "application/vnd.nndeploy.bundle.v1"
MEMBER_TYPE = "application/vnd.nndeploy.bundle.member.v1"
BLOCK_TYPE = "application/vnd.nndeploy.bundle.block.v1"
BLOCK_BYTES = 4 << 20
MAX_LAYERS = 4096
TITLE = "org.opencontainers.image.title"
BUNDLE_SHA256 = "nndeploy.bundle.sha256"
EMPTY_DATA = b"{}"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY_DIGEST = f"sha256:{hashlib.sha256(EMPTY_DATA).hexdigest()}"
_EMPTY = {"mediaType": EMPTY_TYPE, "digest": EMPTY_DIGEST, "size": len(EMPTY_DATA)}
_FIELDS = frozenset(("schemaVersion", "mediaType", "artifactType", "config", "layers", "annotations"))
_LAYER_FIELDS = frozenset(("mediaType", "digest", "size", "annotations"))
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SMALL = {MANIFEST_NAME: MAX_MANIFEST_BYTES, SIGNATURE_NAME: MAX_SIGNATURE_BYTES}
"""Members that are read into memory, with what they may have at most."""


@dataclass(frozen=True, slots=True)
class Blob:
    """What a registry keeps by its SHA-256, here lower-case hex, and how many bytes it has."""

    sha256: str
    size: int

    @property
    def digest(self) -> str:
        return f"sha256:{self.sha256}"


@dataclass(frozen=True, slots=True)
class ArtifactMember:
    """A member as it is stored: its name, and the blobs that it is, one after the other."""

    name: str
    blobs: tuple[Blob, ...]

    @property
    def size(self) -> int:
        return sum(blob.size for blob in self.blobs)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A bundle: its members, sorted by name, and the SHA-256 of the whole file as lower-case hex."""

    members: tuple[ArtifactMember, ...]
    bundle_sha256: str


def block_bytes_for(sizes: Iterable[int]) -> int:
    """Returns how large the blocks of members of some sizes are: as small as the number of layers allows."""
    sizes, block = list(sizes), BLOCK_BYTES
    while sum(max(1, -(-size // block)) for size in sizes) > MAX_LAYERS and block < max(sizes):
        block *= 2
    return block


def encode_artifact(artifact: Artifact) -> bytes:
    """Returns the manifest of an artifact."""
    return canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": ARTIFACT_TYPE,
            "config": _EMPTY,
            "layers": [layer for member in artifact.members for layer in _layers_of(member)],
            "annotations": {BUNDLE_SHA256: artifact.bundle_sha256},
        }
    )


def _layers_of(member: ArtifactMember) -> Iterator[dict[str, Any]]:
    is_one = len(member.blobs) == 1
    for number, blob in enumerate(member.blobs):
        title = member.name if is_one else f"{member.name}/{number:04}"
        yield {
            "mediaType": MEMBER_TYPE if is_one else BLOCK_TYPE,
            "digest": blob.digest,
            "size": blob.size,
            "annotations": {TITLE: title},
        }


def decode_artifact(data: bytes) -> Artifact:
    """Returns the artifact that a manifest says.

    Raises:
        BundleError: it is larger than 4 MiB, no JSON, or not the manifest of a bundle.
    """
    manifest = _object(parse_json(data, MAX_ARTIFACT_BYTES, is_canonical=False), "the manifest")
    _check_kind(manifest)
    if unknown := manifest.keys() - _FIELDS:
        raise BundleError(f"the manifest has the field {min(unknown)!r:.80}, which that of a bundle has not")
    layers = manifest.get("layers")
    if not isinstance(layers, list) or not 0 < len(layers) <= MAX_LAYERS:
        raise BundleError(f"the manifest lists no layers, or more than {MAX_LAYERS}")
    members = tuple(_members(map(_layer, layers)))
    names = [member.name for member in members]
    check_names(names)
    if names != sorted(set(names)):
        raise BundleError("the members are not sorted by name, or one stands twice")
    if MANIFEST_NAME not in names:
        raise BundleError(f"the artifact has no {MANIFEST_NAME}, so it is no bundle")
    for member in members:
        _check_size(member)
    _check_blocks([member for member in members if len(member.blobs) > 1])
    sha256 = _annotations(manifest, "the manifest").get(BUNDLE_SHA256, "")
    if not _SHA256.fullmatch(sha256):
        raise BundleError(f"the annotation {BUNDLE_SHA256} is no SHA-256: {sha256!r:.80}")
    return Artifact(members, sha256)


def _members(layers: Iterable[tuple[str, bool, Blob]]) -> Iterator[ArtifactMember]:
    """Yields the members that layers are, each of them a title, whether it is a block, and the blob."""
    for (name, is_block), group in itertools.groupby(layers, lambda layer: _member_of(layer[0], is_block=layer[1])):
        titles, _, blobs = zip(*group, strict=True)
        expected = [f"{name}/{number:04}" for number in range(len(titles))] if is_block else [name]
        if list(titles) != expected:
            raise BundleError("a layer of it is missing, stands twice or out of order", where=name[:80])
        yield ArtifactMember(name, blobs)


def _member_of(title: str, *, is_block: bool) -> tuple[str, bool]:
    """Returns the name of the member that a layer with a title is, or is a block of."""
    return (title.rpartition("/")[0] if is_block else title), is_block


def _check_size(member: ArtifactMember) -> None:
    most = _SMALL.get(member.name, MAX_MEMBER_BYTES)
    if member.size > most:
        raise BundleError(f"a size of {member.size} bytes; at most {most} are allowed", where=member.name)


def _check_blocks(members: Sequence[ArtifactMember]) -> None:
    """Checks that all blocks of an artifact are of one size, but the last of each member.

    So bundles that are here are hashed by blocks once, whatever a registry says.
    """
    block = members[0].blobs[0].size if members else BLOCK_BYTES
    for member in members:
        *others, last = (blob.size for blob in member.blobs)
        if block < BLOCK_BYTES or set(others) != {block} or not 0 < last <= block:
            raise BundleError(f"its blocks are not of one size, {BLOCK_BYTES} bytes or more", where=member.name)


def _check_kind(manifest: Mapping[str, Any]) -> None:
    """Refuses what is something else than a bundle, before anything in it is looked at."""
    if _is_other(manifest.get("schemaVersion"), 2) or manifest.get("mediaType") != MANIFEST_TYPE:
        raise BundleError("an image or an index of images is there, not a bundle", hint="nndeploy push puts bundles")
    found = manifest.get("artifactType")
    if found != ARTIFACT_TYPE:
        raise BundleError(f"the artifact is of the type {found!r:.80}, not {ARTIFACT_TYPE}")
    config = _object(manifest.get("config"), "the config")
    given = {key: value for key, value in config.items() if (key, value) != ("data", "e30=")}  # {} in base64
    if given != _EMPTY or _is_other(given["size"], len(EMPTY_DATA)):
        raise BundleError("the config of a bundle is the empty descriptor")


def _layer(found: object) -> tuple[str, bool, Blob]:
    """Returns the title of a layer, whether it is a block of a member, and the blob."""
    layer = _object(found, "a layer")
    title = _annotations(layer, "a layer").get(TITLE, "")
    if unknown := layer.keys() - _LAYER_FIELDS:
        raise BundleError(f"the layer has the field {min(unknown)!r:.80}, which a member has not", where=title[:80])
    kind, digest, size = layer.get("mediaType"), layer.get("digest"), layer.get("size")
    if kind not in (MEMBER_TYPE, BLOCK_TYPE):
        raise BundleError(f"the layer is of the type {kind!r:.80}, no member", where=title[:80])
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise BundleError(f"{digest!r:.100} is no digest of SHA-256", where=title[:80])
    if type(size) is not int or not 0 <= size <= MAX_MEMBER_BYTES:
        raise BundleError(f"a size of {size!r:.40} bytes; 0 to {MAX_MEMBER_BYTES} are allowed", where=title[:80])
    return title, kind == BLOCK_TYPE, Blob(digest.removeprefix("sha256:"), size)


def _annotations(holder: Mapping[str, Any], what: str) -> dict[str, str]:
    found = _object(holder.get("annotations"), f"what annotates {what}")
    if not all(isinstance(value, str) for value in found.values()):
        raise BundleError(f"an annotation of {what} is no text")
    return found


def _object(found: object, what: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BundleError(f"{what} is no JSON object")
    return found


def _is_other(found: object, number: int) -> bool:
    """Returns whether something is not that integer; JSON's true and 2.0 are others, though Python says equal."""
    return type(found) is not int or found != number
