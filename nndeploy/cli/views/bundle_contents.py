# SPDX-License-Identifier: Apache-2.0
"""What a person sees of the bytes of a bundle: a line by kind, or with more words a table by member."""

from collections.abc import Mapping, Sequence

from nndeploy.bundle.contents import KINDS, Content, bytes_by_kind
from nndeploy.cli.console import print_line, print_table
from nndeploy.values.amounts import size_text


def print_contents(contents: Sequence[Content], *, verbose: bool, sha256: Mapping[str, str] | None = None) -> None:
    """Prints what the bytes of a bundle are for; `sha256` of the members, where a table is to have them."""
    by_kind = bytes_by_kind(tuple(contents))
    line = ", ".join(f"{kind} {size_text(by_kind[kind])}" for kind in KINDS if by_kind[kind])
    smaller = [row for row in contents if row.real_bytes != row.size_bytes]
    saved = sum(row.real_bytes - row.size_bytes for row in smaller)
    shared = sum(bool(row.bases) for row in smaller)
    print_line(line)
    if smaller:
        counts = {"compressed": len(smaller) - shared, "deduplicated": shared}
        told = ", ".join(f"{number} {how}" for how, number in counts.items() if number)
        print_line(f"members: {told}; {size_text(saved)} saved")
    if verbose:
        _print_table(contents, sha256 or {})
    else:
        for row in contents:
            if row.note:
                print_line(f"{row.member} ({size_text(row.size_bytes)}) {row.note}")


def _print_table(contents: Sequence[Content], sha256: Mapping[str, str]) -> None:
    rows = [
        (
            row.member,
            row.what,
            size_text(row.size_bytes),
            size_text(row.real_bytes),
            _how(row),
            sha256.get(row.member, ""),
        )
        for row in contents
    ]
    columns = ("member", "what", "stored", "really", "how", "sha256")
    count = len(columns) if sha256 else len(columns) - 1
    print_table("members", columns[:count], [row[:count] for row in rows], right=("stored", "really"))


def _how(row: Content) -> str:
    if row.bases:
        return f"deduplicated with {', '.join(row.bases)}"
    return row.note or ("deflated" if row.real_bytes != row.size_bytes else "uncompressed")
