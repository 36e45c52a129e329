# SPDX-License-Identifier: Apache-2.0
"""The name of a bundle in a registry: oci://REGISTRY/REPOSITORY:TAG, with @sha256:... behind it or in place of the tag.

Law: `reference_from_text(str(reference)) == reference`. A tag may name another bundle tomorrow, a digest never does.

Source: OCI Distribution Specification 1.1, "Pulling manifests", for the grammar of names and tags.
"""

import os
import re
from dataclasses import dataclass

from nndeploy.errors import UsageError
from nndeploy.registry.web_address import is_loopback_host

SCHEME = "oci://"
MAX_REFERENCE_BYTES = 1024
DOCKER_HUB, DOCKER_HUB_HOST = "docker.io", "registry-1.docker.io"
"""How people call Docker's own registry, and where it answers."""
_HOST = re.compile(r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HINT = "for example oci://registry.example/vision/faces:1.4"


@dataclass(frozen=True, slots=True)
class Reference:
    """A repository of a registry, and in it a tag, a digest or both; "" where there is none."""

    registry: str
    repository: str
    tag: str
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{SCHEME}{self.registry}/{self.repository}{tag}{digest}"

    @property
    def address(self) -> str:
        """The host, with the port where one is given, that answers for the registry."""
        return DOCKER_HUB_HOST if self.registry == DOCKER_HUB else self.registry

    @property
    def manifest(self) -> str:
        """What the manifest is asked by: the digest, which says more than a tag does."""
        return self.digest or self.tag


def reference_from_text(text: str) -> Reference:
    """Returns the reference that a text says; the scheme before it may be left out, as docker and oras have none.

    Raises:
        UsageError: it says none. A text with a password in it is not repeated.
    """
    if len(text) > MAX_REFERENCE_BYTES:
        raise UsageError(f"a reference of {len(text)} characters; at most {MAX_REFERENCE_BYTES} are allowed")
    if "://" in text and not text.startswith(SCHEME):
        raise UsageError(f"{text!r:.100} is no reference: {SCHEME} stands before one, or nothing", hint=_HINT)
    registry, slash, rest = text.removeprefix(SCHEME).partition("/")
    if "@" in registry:
        raise UsageError("a reference holds no username or password", hint="--username with --password-stdin")
    path, at, digest = rest.partition("@")
    repository, colon, tag = path.partition(":")
    faults = (
        (bool(_is_host(registry)), f"{registry!r:.100} is no registry"),
        (bool(slash and _REPOSITORY.fullmatch(repository)) and len(repository) <= 255,
         f"{repository!r:.100} is no repository: lower-case letters, digits and single . _ - between them"),
        (bool(_TAG.fullmatch(tag)) if colon else bool(at), f"{tag!r:.100} is no tag" if colon else "it has no tag"),
        (not at or bool(DIGEST.fullmatch(digest)), f"{digest!r:.100} is no digest: sha256: and 64 digits 0-9a-f"),
    )  # fmt: skip
    for is_right, fault in faults:
        if not is_right:
            raise UsageError(f"{text!r:.200} is no reference: {fault}", hint=_HINT)
    return Reference(registry, repository, tag, digest)


def is_reference(text: str) -> bool:
    """Returns whether a text that could name a file as well is a reference: one with a scheme, else one with a tag.

    A file that is there is never one.
    """
    if text.startswith(SCHEME):
        return True
    try:
        reference_from_text(text)
        return not os.path.lexists(text)
    except UsageError:
        return False


def is_loopback(registry: str) -> bool:
    """Returns whether a registry is on this machine, by its name or address alone."""
    found = _HOST.fullmatch(registry)
    return found is not None and is_loopback_host(found["host"].strip("[]").lower())


def _is_host(text: str) -> bool:
    found = _HOST.fullmatch(text)
    return found is not None and ".." not in text and (found["port"] is None or 0 < int(found["port"]) < 65536)
