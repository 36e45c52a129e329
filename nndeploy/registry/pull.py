# SPDX-License-Identifier: Apache-2.0
"""A bundle from a registry, into one file: what bundles that are here already hold is not fetched.

Comes in: a reference, a path, bundles that may hold some of the members. Goes out: the file that was pushed, byte for
byte. Laws: the output is the old file, the new one, or none, never a part; nothing is in it whose hash was not
compared; the manifest is checked before the weights are fetched.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from nndeploy.bundle.manifest import Member
from nndeploy.bundle.manifest_check import UNLISTED, check_manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME, decode_manifest
from nndeploy.bundle.writer import check_can_create, replace_file
from nndeploy.errors import BundleError, InputOutputError, NndeployError
from nndeploy.registry.artifact import Artifact, Layer, decode_artifact
from nndeploy.registry.blob_download import BlobDownload
from nndeploy.registry.connection import Connection
from nndeploy.registry.kept_blobs import KeptBlobs
from nndeploy.registry.member_parts import LocalBundle, Part, container_pieces, container_size
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import Reference, reference_from_text
from nndeploy.registry.remote import Remote, digest_of


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull brought: `reference` with the digest of the manifest, the file, its SHA-256 and size.

    Of the members' bytes, `fetched_bytes` came now, `kept_bytes` were left of a pull that was cut, `local_bytes` came
    from bundles that were here.
    """

    reference: Reference
    path: Path
    sha256: str
    size_bytes: int
    num_members: int
    fetched_bytes: int
    kept_bytes: int
    local_bytes: int


def pull(
    reference: Reference | str,
    out: str | Path,
    *,
    have: Sequence[str | Path] = (),
    options: RegistryOptions = RegistryOptions(),
) -> Pulled:
    """Writes the bundle that a reference names to `out`, and returns what was brought.

    Members that a bundle of `have`, or the one that is at `out`, holds are taken from there.

    Raises:
        UsageError: the text is no reference.
        MissingInputError: there is no such tag or digest, or no such bundle to take from.
        BundleError: what the registry has or sends is not a bundle, or damaged.
        UnavailableError: the registry cannot be reached, or the library is not installed.
        PolicyError: the registry refuses the credentials.
        InputOutputError: the download was cut, and goes on with the next call; or the disk is full.
        CannotCreateError: `out` cannot be created.
        BusyError: another process pulls to `out`, or the registry had too many requests.
    """
    named = reference_from_text(reference) if isinstance(reference, str) else reference
    out = Path(out)
    check_can_create(out)
    with ExitStack() as stack:
        local = LocalMembers([stack.enter_context(LocalBundle(Path(path))) for path in have])
        with suppress(NndeployError):  # nothing is there, or something else than a bundle
            local.add(stack.enter_context(LocalBundle(out)))
        kept = stack.enter_context(KeptBlobs(out))
        remote = Remote(stack.enter_context(Connection(named, options)), named)
        manifest = remote.manifest()
        artifact = _artifact(manifest, remote.where)
        kept.keep_only({layer.sha256 for layer in artifact.layers})
        source = _Source(local, BlobDownload(remote, kept))
        _check_manifest(artifact, source, remote.where)
        _check_room(artifact, source, kept, out)
        parts = {layer.name: source.part(layer) for layer in artifact.layers}
        replace_file(out, _checked(container_pieces(parts), artifact.bundle_sha256, remote.where))
    return Pulled(
        Reference(named.registry, named.repository, named.tag, digest_of(manifest)),
        out, artifact.bundle_sha256, container_size({layer.name: layer.size for layer in artifact.layers}),
        len(parts), source.download.num_bytes, source.download.num_kept, source.local_bytes,
    )  # fmt: skip


class LocalMembers:
    """What bundles that are here hold, by hash."""

    def __init__(self, bundles: Sequence[LocalBundle]) -> None:
        self._places: dict[Member, list[tuple[LocalBundle, str]]] = {}
        for bundle in bundles:
            self.add(bundle)

    def add(self, bundle: LocalBundle) -> None:
        """Adds what a bundle holds."""
        for name, member in bundle.members.items():
            self._places.setdefault(member, []).append((bundle, name))

    def part(self, layer: Layer) -> Part | None:
        """Returns a member that some bundle holds, its hash compared; None where none does."""
        places = self._places.get(Member(layer.sha256, layer.size), ())
        return next((part for bundle, name in places if (part := bundle.part(name)) is not None), None)

    def may_have(self, layer: Layer) -> bool:
        """Returns whether some bundle says that it holds a member."""
        return Member(layer.sha256, layer.size) in self._places


class _Source:
    """Members of an artifact, each hashed once, from here or from the registry."""

    def __init__(self, local: LocalMembers, download: BlobDownload) -> None:
        self.local, self.download = local, download
        self.local_bytes = 0
        self._parts: dict[str, Part] = {}

    def part(self, layer: Layer) -> Part:
        if layer.sha256 not in self._parts:
            found = self.local.part(layer)
            self.local_bytes += 0 if found is None else found.size
            self._parts[layer.sha256] = self.download.part(layer) if found is None else found
        return self._parts[layer.sha256]


def _artifact(manifest: bytes, where: str) -> Artifact:
    try:
        artifact = decode_artifact(manifest)
        sizes: dict[str, int] = {}
        for layer in artifact.layers:
            if sizes.setdefault(layer.sha256, layer.size) != layer.size:
                raise BundleError(f"the digest {layer.digest:.19}... has two sizes", where=layer.name)
    except BundleError as err:
        err.within(where)
        raise
    return artifact


def _check_manifest(artifact: Artifact, source: _Source, where: str) -> None:
    """Checks that the bundle's own manifest lists the members of the artifact, before anything else is fetched."""
    layers = {layer.name: layer for layer in artifact.layers}
    text = b"".join(source.part(layers[MANIFEST_NAME]).pieces())
    try:
        manifest = decode_manifest(text)
        check_manifest(manifest)
        _check_same(manifest.members, layers)
    except BundleError as err:
        err.within(f"{where}: {MANIFEST_NAME}")
        raise


def _check_same(members: Mapping[str, Member], layers: Mapping[str, Layer]) -> None:
    given = {name: Member(layer.sha256, layer.size) for name, layer in layers.items() if name not in UNLISTED}
    for name in sorted(members.keys() | given.keys()):
        if members.get(name) != given.get(name):
            raise BundleError(f"the manifest and the artifact do not agree about the member {name!r}")


def _check_room(artifact: Artifact, source: _Source, kept: KeptBlobs, out: Path) -> None:
    """Refuses what the disk cannot take: what is still to come, and then the whole bundle beside it."""
    missing = {
        one.sha256: one.size - kept.size(one.sha256) for one in artifact.layers if not source.local.may_have(one)
    }
    needed = sum(missing.values()) + container_size({layer.name: layer.size for layer in artifact.layers})
    free = shutil.disk_usage(out.parent).free
    if needed > free:
        raise InputOutputError(f"{needed} bytes are needed, and {free} are free", where=str(out))


def _checked(pieces: Iterator[bytes], sha256: str, where: str) -> Iterator[bytes]:
    """Yields pieces of a file; raises at its end where that is not the file with this hash."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.hexdigest() != sha256:
        raise BundleError(f"damaged: its members make the bundle {digest.hexdigest():.12}..., not {sha256:.12}...",
                          where=where)  # fmt: skip
