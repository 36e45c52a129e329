# SPDX-License-Identifier: Apache-2.0
"""Members of a bundle -> the same, smaller: weights stand once, samples are deflated.

Comes in: the members as they are, and the manifest that names them. Goes out: the members as they are stored, and what
the manifest says of those that are compressed. What the best variant of a submodel opens first stays as it is, so it
loads as fast as before; a file that repeats most of a plain one (the weights of a fallback, a compiled model) is
stored as its difference. Law: a member is compressed only where that saves the share of its bytes that is said here.
"""

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from nndeploy.bundle.compress_member import Piece, copy, encode, items, literal
from nndeploy.bundle.compressed_member import COPY, MAX_OWN_BYTES, MAX_PIECES
from nndeploy.bundle.manifest import Compressed, Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.repeated_parts import RepeatedParts
from nndeploy.files.file_content import Content, KnownHashes, let_go_of_pages

Contents: TypeAlias = Mapping[str, Content]

LEAST_BYTES, LEAST_BASE_BYTES, LEAST_TEXT_BYTES = 4 << 10, 16 << 10, 32 << 10
"""Smaller members stay as they are, are no bases, or stay where they are a first variant's: it is to be there soon."""
MOST_OF_SAMPLES, MOST_OF_REPEATED, MOST_OF_TEXT = 7 / 8, 3 / 4, 1 / 4
"""The share of its bytes that a member may have left for it to be worth the time of expanding it."""
MAX_BASES = 32


class Smaller(NamedTuple):
    """What is stored of a member, and of which members parts of it are; nothing where it stays as it is."""

    stored: bytes = b""
    bases: tuple[str, ...] = ()


Kept: TypeAlias = dict[tuple[str, ...], Smaller]
"""What came of members before, by their SHA-256 and the names of what they were compared with."""


def compressed(
    manifest: Manifest, contents: Contents, hashes: KnownHashes, kept: Kept
) -> tuple[dict[str, Content], dict[str, Compressed]]:
    """Returns the members as they are stored, and what those that are compressed really are.

    What is `kept` of an earlier call for the same compile is not made again.
    """
    stored, found = dict(contents), dict[str, Compressed]()
    for name, smaller in (
        *_samples(manifest, contents, hashes, kept),
        *_variant_files(manifest, contents, hashes, kept),
    ):
        if smaller.stored:
            found[name] = Compressed(hashes.of(contents[name]), len(contents[name]), smaller.bases)
            stored[name] = smaller.stored
    return stored, found


def _samples(manifest: Manifest, contents: Contents, hashes: KnownHashes, kept: Kept) -> Iterator[tuple[str, Smaller]]:
    names = (name for golden in manifest.goldens for name in (golden.inputs, golden.outputs, golden.boundaries))
    for name in dict.fromkeys(filter(None, names)):
        data = memoryview(contents[name])
        if LEAST_BYTES <= len(data) <= MAX_OWN_BYTES:
            key = (hashes.of(contents[name]),)
            if key not in kept:
                small = encode(list(_values(data)))
                kept[key] = Smaller(small if len(small) <= MOST_OF_SAMPLES * len(data) else b"")
            yield name, kept[key]


def _values(data: memoryview) -> Iterator[Piece]:
    """Yields the pieces of a values member: its header, then each tensor by its elements."""
    (header_bytes,) = struct.unpack_from("<Q", data)
    start = 8 + header_bytes
    yield literal(data[:start])
    entries = json.loads(bytes(data[8:start]))
    entries.pop("__metadata__")
    for entry in sorted(entries.values(), key=lambda entry: entry["data_offsets"]):
        begin, end = entry["data_offsets"]
        bits = re.sub(r"\D", "", entry["dtype"])
        if begin < end:
            yield items(data[start + begin : start + end], int(bits) // 8 if bits else 1)


def _variant_files(
    manifest: Manifest, contents: Contents, hashes: KnownHashes, kept: Kept
) -> Iterator[tuple[str, Smaller]]:
    """Yields the files of variants that repeat others, or deflate well, in the order of the variants."""
    bases = dict[str, memoryview]()
    submodels = all_submodels(manifest)
    first = {name for submodel in submodels for name in submodel.variants[0].files.values()}
    every = (variant for submodel in submodels for variant in submodel.variants)
    for name in dict.fromkeys(name for variant in every for name in sorted(variant.files.values())):
        data = memoryview(contents[name])
        if len(data) < LEAST_BYTES:
            continue
        key = (hashes.of(contents[name]), str(name in first), *bases)
        if key not in kept:
            kept[key] = _smaller(data, bases, is_text=name not in first or len(data) >= LEAST_TEXT_BYTES)
            for content in (data, *bases.values()):
                let_go_of_pages(content)
        yield name, kept[key]
        if not kept[key].stored and len(data) >= LEAST_BASE_BYTES and len(bases) < MAX_BASES:
            bases[name] = data


def _smaller(data: memoryview, bases: Mapping[str, memoryview], *, is_text: bool) -> Smaller:
    """Returns what would be stored of a file; `is_text`: also where it repeats no base and deflates well."""
    can_repeat = sum(map(len, bases.values())) >= (1 - MOST_OF_REPEATED) * len(data)
    pieces = list(_pieces(data, RepeatedParts(list(bases.values()) if can_repeat else [])))
    own = sum(len(piece.consumed) for piece in pieces)
    repeats = own <= MOST_OF_REPEATED * len(data)
    if own > MAX_OWN_BYTES or len(pieces) > MAX_PIECES or not (repeats or is_text):
        return Smaller()
    used = sorted({piece.numbers[0] for piece in pieces if piece.kind == COPY})
    small = encode([_numbered(piece, used) for piece in pieces])
    if len(small) > (MOST_OF_REPEATED if repeats else MOST_OF_TEXT) * len(data):
        return Smaller()
    return Smaller(small, tuple(list(bases)[number] for number in used))


def _numbered(piece: Piece, used: Sequence[int]) -> Piece:
    """Returns a piece whose base is numbered among those that are used."""
    return copy(used.index(piece.numbers[0]), *piece.numbers[1:]) if piece.kind == COPY else piece


def _pieces(data: memoryview, parts: RepeatedParts) -> Iterator[Piece]:
    end = 0
    for part in parts.of(data):
        if end < part.at:
            yield literal(data[end : part.at])
        yield copy(part.base, part.offset, part.size)
        end = part.at + part.size
    if end < len(data):
        yield literal(data[end:])
