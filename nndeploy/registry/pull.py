# SPDX-License-Identifier: Apache-2.0
"""A bundle from a registry, into one file: what bundles that are here already hold is not fetched.

Comes in: a reference, a path, bundles that may hold some of the members. Goes out: the file that was pushed, byte for
byte. Laws: the output is the old file, the new one, or none, never a part; nothing is in it whose hash was not
compared; the manifest is checked before the weights are fetched, and before all of it a signature that was asked for.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nndeploy.bundle.manifest import Member
from nndeploy.bundle.manifest_check import UNLISTED, check_manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME, decode_manifest
from nndeploy.bundle.writer import check_can_create, replace_file
from nndeploy.errors import BundleError, InputOutputError, NndeployError
from nndeploy.registry.artifact import Artifact, ArtifactMember, Blob, decode_artifact
from nndeploy.registry.blob_download import BlobDownload
from nndeploy.registry.connection import Connection
from nndeploy.registry.cosign import check_signed
from nndeploy.registry.kept_blobs import KeptBlobs
from nndeploy.registry.member_parts import LocalBundle, Part, container_pieces, container_size, joined
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import Reference, reference_from_text
from nndeploy.registry.remote import Remote, digest_of, registry_of
from nndeploy.trust.verifying_key import read_verifying_key


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
    signed_by: str | Path | None = None,
    options: RegistryOptions = RegistryOptions(),
) -> Pulled:
    """Writes the bundle that a reference names to `out`, and returns what was brought.

    Members that a bundle of `have`, or the one that is at `out`, holds are taken from there. `signed_by` is a file of
    a public key, of which a cosign signature must lie beside the artifact.

    Raises:
        UsageError: the text is no reference.
        MissingInputError: there is no such tag or digest, no such key, or no such bundle to take from.
        DataError: the key is none.
        BundleError: what the registry has or sends is not a bundle, or damaged.
        UnavailableError: the registry cannot be reached, or the library is not installed.
        PolicyError: the registry refuses the credentials, or has no signature of the key.
        InputOutputError: the download was cut, and goes on with the next call; or the disk is full.
        CannotCreateError: `out` cannot be created.
        BusyError: another process pulls to `out`, or the registry received too many requests.
    """
    named = reference_from_text(reference) if isinstance(reference, str) else reference
    key = None if signed_by is None else read_verifying_key(Path(signed_by))
    out = Path(out)
    check_can_create(out)
    with ExitStack() as stack:
        local = LocalMembers([stack.enter_context(LocalBundle(Path(path))) for path in have])
        with suppress(NndeployError):  # nothing is there, or something else than a bundle
            local.add(stack.enter_context(LocalBundle(out)))
        kept = stack.enter_context(KeptBlobs(out))
        connection = stack.enter_context(Connection(registry_of(named, options), options))
        remote = Remote(connection, named)
        manifest = remote.manifest()
        there = replace(named, digest=digest_of(manifest))
        if key is not None:
            check_signed(connection, there, key)
        artifact = _artifact(manifest, remote.where)
        kept.keep_only({blob.sha256 for member in artifact.members for blob in member.blobs})
        was_begun = not kept.is_empty
        source = _Source(local, BlobDownload(remote, kept))
        listed = _checked_manifest(artifact, source, remote.where)
        try:
            _check_room(artifact, listed, source, kept, out)
        except InputOutputError:
            if not was_begun:
                kept.keep_only(())  # the manifest, which told how much is needed
            raise
        parts = {member.name: source.part(member, listed.get(member.name)) for member in artifact.members}
        replace_file(out, _checked(container_pieces(parts), artifact.bundle_sha256, remote.where))
    return Pulled(
        there, out, artifact.bundle_sha256, container_size({member.name: member.size for member in artifact.members}),
        len(parts), source.download.num_bytes, source.download.num_kept, source.local_bytes,
    )  # fmt: skip


class LocalMembers:
    """What bundles that are here hold, by hash: whole members, and blocks of the large ones."""

    def __init__(self, bundles: Sequence[LocalBundle]) -> None:
        self._bundles: list[LocalBundle] = []
        self._places: dict[Member, list[tuple[LocalBundle, str]]] = {}
        self._blocks: dict[int, dict[Blob, Part]] = {}
        for bundle in bundles:
            self.add(bundle)

    def add(self, bundle: LocalBundle) -> None:
        """Adds what a bundle holds."""
        self._bundles.append(bundle)
        for name, member in bundle.members.items():
            self._places.setdefault(member, []).append((bundle, name))

    def member(self, member: Member) -> Part | None:
        """Returns a member that some bundle holds, its hash compared; None where none does."""
        places = self._places.get(member, ())
        return next((part for bundle, name in places if (part := bundle.part(name)) is not None), None)

    def may_have(self, member: Member) -> bool:
        """Returns whether some bundle says that it holds a member."""
        return member in self._places

    def block(self, blob: Blob, block_bytes: int) -> Part | None:
        """Returns a block of such members as are cut into blocks of `block_bytes`; None where no bundle holds it."""
        if block_bytes not in self._blocks:
            self._blocks[block_bytes] = {
                one: part for bundle in self._bundles for one, part in bundle.blocks(block_bytes)
            }
        return self._blocks[block_bytes].get(blob)


class _Source:
    """Members of an artifact, hashed, from here or from the registry."""

    def __init__(self, local: LocalMembers, download: BlobDownload) -> None:
        self.local, self.download = local, download
        self.local_bytes = 0
        self._members: dict[Member, Part] = {}
        self._blobs: dict[Blob, Part] = {}

    def part(self, member: ArtifactMember, listed: Member | None) -> Part:
        """Returns a member; `listed` is what the bundle's manifest lists of it, None where it cannot."""
        known = listed or Member(member.blobs[0].sha256, member.size)
        if known not in self._members:
            whole = self.local.member(known)
            self.local_bytes += 0 if whole is None else whole.size
            self._members[known] = whole or joined([self._blob(blob, member) for blob in member.blobs])
        return self._members[known]

    def missing(self, members: Iterable[ArtifactMember], listed: Mapping[str, Member]) -> set[Blob]:
        """Returns the blobs that no bundle here says that it holds."""
        away = (one for one in members if one.name not in listed or not self.local.may_have(listed[one.name]))
        return {blob for member in away for blob in member.blobs if self._local_block(blob, member) is None}

    def _blob(self, blob: Blob, member: ArtifactMember) -> Part:
        if blob not in self._blobs:
            found = self._local_block(blob, member)
            self.local_bytes += 0 if found is None else found.size
            self._blobs[blob] = self.download.part(blob, member.name) if found is None else found
        return self._blobs[blob]

    def _local_block(self, blob: Blob, member: ArtifactMember) -> Part | None:
        return self.local.block(blob, member.blobs[0].size) if len(member.blobs) > 1 else None


def _artifact(manifest: bytes, where: str) -> Artifact:
    try:
        return decode_artifact(manifest)
    except BundleError as err:
        err.within(where)
        raise


def _checked_manifest(artifact: Artifact, source: _Source, where: str) -> Mapping[str, Member]:
    """Returns what the bundle's own manifest lists, which are the artifact's members; nothing else was fetched yet."""
    members = {member.name: member for member in artifact.members}
    text = b"".join(source.part(members[MANIFEST_NAME], None).pieces())
    try:
        manifest = decode_manifest(text)
        check_manifest(manifest)
        _check_same(manifest.members, members)
    except BundleError as err:
        err.within(f"{where}: {MANIFEST_NAME}")
        raise
    return manifest.members


def _check_same(listed: Mapping[str, Member], members: Mapping[str, ArtifactMember]) -> None:
    """Compares names, sizes and, of members that are one blob, hashes; the hash of the bundle decides of the others."""
    for name in sorted(listed.keys() | members.keys() - UNLISTED):
        one, other = listed.get(name), members.get(name)
        if (
            one is None
            or other is None
            or one.size_bytes != other.size
            or (len(other.blobs) == 1 and one.sha256 != other.blobs[0].sha256)
        ):
            raise BundleError(f"the manifest and the artifact do not agree about the member {name!r}")


def _check_room(artifact: Artifact, listed: Mapping[str, Member], source: _Source, kept: KeptBlobs, out: Path) -> None:
    """Refuses what the disk cannot take: what is still to come, and then the whole bundle beside it."""
    missing = sum(blob.size - kept.size(blob.sha256) for blob in source.missing(artifact.members, listed))
    needed = missing + container_size({one.name: one.size for one in artifact.members})
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
