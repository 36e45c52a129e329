# SPDX-License-Identifier: Apache-2.0
"""The members of a container against what its manifest lists: names, sizes, hashes; below the readers."""

from collections.abc import Collection, Mapping

from nndeploy.bundle.container import Entry
from nndeploy.bundle.manifest import Member
from nndeploy.errors import BundleError


def data_of(view: memoryview, entry: Entry) -> memoryview:
    """Returns the bytes of a member, unchecked."""
    return view[entry.offset : entry.end].toreadonly()


def check_lists_agree(members: Mapping[str, Member], entries: Mapping[str, Entry], unlisted: Collection[str]) -> None:
    """Checks that a container holds what is listed, in the sizes listed, and nothing else but `unlisted`.

    Raises:
        BundleError: it does not.
    """
    if unknown := entries.keys() - members.keys() - set(unlisted):
        raise BundleError(f"the manifest does not list the member {min(unknown)!r}")
    if missing := members.keys() - entries.keys():
        raise BundleError(f"the member {min(missing)!r}, which the manifest lists, is missing")
    for name, member in members.items():
        if entries[name].size != member.size_bytes:
            raise BundleError(f"{entries[name].size} bytes, the manifest lists {member.size_bytes}", where=name)


def check_hash(member: Member, found: str, where: str, hint: str) -> None:
    """Compares a member's SHA-256 with the one listed.

    Raises:
        BundleError: they differ.
    """
    if found != member.sha256:
        raise BundleError(
            f"damaged: its SHA-256 is {found:.12}..., the manifest lists {member.sha256:.12}...", where=where, hint=hint
        )


def check_crc(entry: Entry, found: int, where: str) -> None:
    """Compares a member's CRC-32 with that of its data.

    Raises:
        BundleError: they differ.
    """
    if found != entry.crc32:
        raise BundleError("damaged: its CRC-32 is not that of its data", where=where)
