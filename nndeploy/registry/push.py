# SPDX-License-Identifier: Apache-2.0
"""A bundle to a registry: the members that it does not have, then the manifest that names them all.

Comes in: a path and a reference. Goes out: an artifact, whose digest the same bundle always has. Laws: a damaged bundle
is not sent; the tag names the old artifact or the new one, whole; what it names was signed before, if it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import UsageError
from nndeploy.registry.artifact import (
    EMPTY_DATA,
    EMPTY_DIGEST,
    Artifact,
    ArtifactMember,
    block_bytes_for,
    encode_artifact,
)
from nndeploy.registry.connection import Connection
from nndeploy.registry.cosign import add_signatures
from nndeploy.registry.member_parts import BlockBody, LocalBundle
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import Reference, reference_from_text
from nndeploy.registry.remote import Remote, digest_of, registry_of
from nndeploy.registry.simple_signing import payload_of
from nndeploy.trust.signers import Signer


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push brought: `reference` with the digest of the manifest, the file, its SHA-256 and size.

    Of the bytes of members, `sent_bytes` were sent; the registry had `present_bytes` already. `key_ids` are the keys
    whose signatures were put beside it.
    """

    reference: Reference
    path: Path
    sha256: str
    size_bytes: int
    num_members: int
    sent_bytes: int
    present_bytes: int
    key_ids: tuple[str, ...] = ()


def push(
    bundle: str | Path,
    reference: Reference | str,
    *,
    signers: Sequence[Signer] = (),
    options: RegistryOptions = RegistryOptions(),
) -> Pushed:
    """Puts the bundle at a path under the tag of a reference, and returns what was sent.

    Each of `signers` signs the artifact as cosign does, and the signatures lie beside it in the registry.

    Raises:
        UsageError: the reference has no tag, or a digest.
        MissingInputError: there is no such bundle, or no such repository.
        BundleError: it is not a bundle, or damaged.
        DataError: what lies beside it as its signatures is none.
        UnavailableError: the registry cannot be reached or does not take it, the library is not installed, or a signer
            does not sign.
        PolicyError: the registry refuses the credentials.
        InputOutputError: reading failed.
    """
    named = reference_from_text(reference) if isinstance(reference, str) else reference
    if named.digest or not named.tag:
        raise UsageError(f"{named}: a bundle is pushed under a tag; its digest follows from what it holds")
    with LocalBundle(Path(bundle)) as local, Connection(registry_of(named, options), options) as connection:
        artifact = _artifact(local)
        manifest = encode_artifact(artifact)
        there = Reference(named.registry, named.repository, named.tag, digest_of(manifest))
        payload = payload_of(there)
        signatures = [signer.sign(payload) for signer in signers]  # who cannot sign sends nothing
        remote = Remote(connection, named)
        sent, present = _bring_members(remote, artifact, local)
        if not remote.has_blob(EMPTY_DIGEST):
            remote.put_blob(EMPTY_DIGEST, EMPTY_DATA)
        if signatures:
            add_signatures(connection, there, payload, signatures)
        remote.put_manifest(manifest)
        return Pushed(
            there, local.path, artifact.bundle_sha256, local.size_bytes, len(artifact.members), sent, present,
            tuple(signer.public.id for signer in signers),
        )  # fmt: skip


def _artifact(local: LocalBundle) -> Artifact:
    block_bytes = block_bytes_for(member.size_bytes for member in local.members.values())
    members = (ArtifactMember(name, local.checked_blocks(name, block_bytes)) for name in sorted(local.members))
    return Artifact(tuple(members), local.file_sha256())


def _bring_members(remote: Remote, artifact: Artifact, local: LocalBundle) -> tuple[int, int]:
    """Returns how many bytes were sent, and how many were there, of blobs of different hashes."""
    sent = present = 0
    seen = set[str]()
    for member in artifact.members:
        begin = 0
        for blob in member.blobs:
            if blob.sha256 not in seen:
                seen.add(blob.sha256)
                if remote.has_blob(blob.digest):
                    present += blob.size
                else:
                    remote.put_blob(blob.digest, BlockBody(local, member.name, begin, blob.size))
                    sent += blob.size
            begin += blob.size
    return sent, present
