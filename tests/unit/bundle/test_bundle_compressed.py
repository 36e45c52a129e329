# SPDX-License-Identifier: Apache-2.0
"""Compressed members: what was encoded comes back, each damage has its message, and nothing else is ever read."""

import hashlib
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.bundle.compress_member import Piece, copy, encode, items, literal
from nndeploy.bundle.compressed_member import COPY, LITERAL, MAX_PIECES, PLANES, TABLE, expand
from nndeploy.bundle.manifest import Compressed, Manifest
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.bundle.writer import write_bundle
from nndeploy.compiler.compressed_members import compressed
from nndeploy.errors import BundleError
from nndeploy.files.file_content import KnownHashes

BASES = (bytes(range(200)), b"abc")
GOLDEN, TAIL = "goldens/0/inputs.safetensors", "submodels/tail/portable/model.onnx"
HEAD = "submodels/head/portable/model.onnx"


def expanded(stored: bytes, size: int, bases: Sequence[bytes] = BASES) -> bytes:
    target = bytearray(size)

    def read_base(number: int, offset: int, part: memoryview) -> None:
        part[:] = bases[number][offset : offset + len(part)]

    expand(memoryview(stored), memoryview(target), [len(base) for base in bases], read_base)
    return bytes(target)


@given(st.lists(st.one_of(
    st.binary(min_size=1, max_size=40).map(lambda data: (literal(memoryview(data)), data)),
    st.tuples(st.integers(0, 199), st.integers(1, 200)).map(lambda part: (
        copy(0, part[0], size := min(part[1], 200 - part[0])), BASES[0][part[0] :][:size]
    )),
    st.tuples(st.sampled_from((1, 2, 3, 4, 8, 16)), st.integers(1, 90), st.integers(1, 255)).map(lambda form: (
        items(memoryview(data := some_items(*form)), form[0]), data
    )),
)))  # fmt: skip
def test_pieces_come_back_one_after_the_other(pieces: list[tuple[Piece, bytes]]) -> None:
    whole = b"".join(data for _, data in pieces)
    assert expanded(encode([piece for piece, _ in pieces]), len(whole)) == whole


def some_items(item: int, count: int, seed: int) -> bytes:
    dice = np.random.default_rng(seed)
    kinds = dice.integers(0, 256, (seed, item), np.uint8)
    return kinds[dice.integers(0, seed, count)].tobytes()


@pytest.mark.parametrize(("kinds", "width"), [(256, 1), (257, 2), (1 << 16, 2)])
def test_items_of_few_kinds_become_a_table(kinds: int, width: int) -> None:
    numbers = np.random.default_rng(0).permutation(np.arange(kinds, dtype=np.uint64).repeat(4))
    data = (numbers * np.uint64(0x9E3779B97F4A7C15)).tobytes()  # no plane of them deflates
    piece = items(memoryview(data), 8)
    assert (piece.kind, piece.numbers[2], len(piece.consumed)) == (TABLE, kinds, 8 * kinds + width * 4 * kinds)
    assert expanded(encode([piece]), len(data)) == data


def test_items_of_many_kinds_become_planes() -> None:
    data = np.random.default_rng(0).standard_normal(70_000).astype("<f4").tobytes()
    assert items(memoryview(data), 4).kind == PLANES


def deflated(*pieces: tuple[int, int, int, int], consumed: bytes = b"", count: int | None = None) -> bytes:
    head = struct.pack("<Q", len(pieces) if count is None else count)
    return zlib.compress(head + b"".join(struct.pack("<4q", *piece) for piece in pieces) + consumed)


TEN = deflated((LITERAL, 10, 0, 0), consumed=bytes(10))


@pytest.mark.parametrize(("stored", "message"), [
    (b"", "does not end where its stream does"),
    (b"text", "cannot be inflated"),
    (TEN[:-5], "does not end where its stream does"),
    (TEN[:-1] + bytes([TEN[-1] ^ 1]), "cannot be inflated"),
    (TEN + b"\0", "does not end where its stream does"),
    (zlib.compress(b""), "it has 0 pieces"),
    (zlib.compress(b"\1"), "it has 1 pieces"),
    (deflated(count=2**63), "it has 9223372036854775808 pieces"),
    (deflated((LITERAL, 10, 0, 0), consumed=bytes(10), count=2), "it has 2 pieces"),
    (deflated((7, 10, 0, 0), consumed=bytes(10)), "it has a piece that is none: 7, 10, 0, 0"),
    (deflated((-1, 10, 0, 0)), "it has a piece that is none"),
    (deflated((LITERAL, 0, 0, 0)), "it has a piece that is none"),
    (deflated((LITERAL, -1, 0, 0)), "it has a piece that is none"),
    (deflated((LITERAL, 10, 1, 0), consumed=bytes(10)), "it has a piece that is none: 0, 10, 1, 0"),
    (deflated((LITERAL, 10, 0, 1), consumed=bytes(10)), "it has a piece that is none"),
    (deflated((PLANES, 2, 5, 1), consumed=bytes(10)), "it has a piece that is none"),
    (deflated((LITERAL, 9, 0, 0), consumed=bytes(9)), "make 9 bytes of 10, and leave 0"),
    (deflated((LITERAL, 11, 0, 0), consumed=bytes(11)), "make more than 10 bytes"),
    (deflated((LITERAL, 2**62, 0, 0)), "make more than 10 bytes"),
    (deflated((LITERAL, 10, 0, 0), consumed=bytes(9)), "consumes 10 bytes of 9"),
    (deflated((LITERAL, 10, 0, 0), consumed=bytes(11)), "make 10 bytes of 10, and leave 1"),
    (deflated((COPY, 0, 191, 10)), "outside of its base: 10 bytes at 191 of 0"),
    (deflated((COPY, 0, -1, 10)), "outside of its base"),
    (deflated((COPY, 0, 2**63 - 1, 10)), "outside of its base"),
    (deflated((COPY, 1, 0, 10)), "outside of its base"),
    (deflated((COPY, 2, 0, 10)), "outside of its base"),
    (deflated((COPY, -1, 0, 10)), "outside of its base"),
    (deflated((COPY, 0, 0, 0)), "it has a piece that is none"),
    (deflated((COPY, 0, 0, 6), (COPY, 0, 0, 6)), "make more than 10 bytes"),
    (deflated((PLANES, 0, 10, 0)), "it has a piece that is none"),
    (deflated((PLANES, 17, 1, 0)), "it has a piece that is none"),
    (deflated((PLANES, -2, -5, 0)), "it has a piece that is none"),
    (deflated((PLANES, 16, 2**62, 0)), "make more than 10 bytes"),
    (deflated((PLANES, 2, 5, 0), consumed=bytes(9)), "consumes 10 bytes of 9"),
    (deflated((TABLE, 2, 5, 0), consumed=bytes(5)), "a piece of 5 items has 0 kinds"),
    (deflated((TABLE, 2, 5, -1), consumed=bytes(9)), "has -1 kinds"),
    (deflated((TABLE, 2, 5, 6), consumed=bytes(17)), "has 6 kinds"),
    (deflated((TABLE, 2, 5, 2), consumed=bytes(8)), "consumes 9 bytes of 8"),
    (deflated((TABLE, 2, 5, 2), consumed=bytes(8) + b"\2"), "an item is of kind 2 of 2"),
])  # fmt: skip
def test_refuses(stored: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        expanded(stored, 10)
    assert str(caught.value).isprintable()


def test_a_bomb_is_refused_before_it_has_its_memory() -> None:
    bomb = zlib.compress(bytes(256 << 20), 9)
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="inflates to more than it says"):
            expanded(bomb, 1000)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_more_pieces_than_allowed_are_refused() -> None:
    pieces = [(LITERAL, 1, 0, 0)] * (MAX_PIECES + 1)
    with pytest.raises(BundleError, match=r"more than it says|it has 65537 pieces"):
        expanded(deflated(*pieces, consumed=bytes(len(pieces))), len(pieces))


Made = Callable[..., Path]


@pytest.fixture
def compressed_bundle(tmp_path: Path, manifest: Manifest, members: dict[str, bytes]) -> Made:
    """Writes a bundle whose tail is a difference from its head, and whose golden is deflated."""

    def made(**changes: object) -> Path:
        tail = members[HEAD][100:5000] + b"of its own"
        stored = {
            **members,
            TAIL: encode([copy(0, 100, 4900), literal(memoryview(b"of its own"))]),
            GOLDEN: encode([literal(memoryview(members[GOLDEN]))]),
        }
        real = {
            TAIL: Compressed(hashlib.sha256(tail).hexdigest(), len(tail), (HEAD,)),
            GOLDEN: Compressed(hashlib.sha256(members[GOLDEN]).hexdigest(), len(members[GOLDEN])),
        }
        real[TAIL] = replace(real[TAIL], **changes)
        write_bundle(tmp_path / "x.nnd", replace(manifest, compressed=real), stored, {})
        return tmp_path / "x.nnd"

    return made


def test_a_reader_hands_out_what_a_member_really_is(compressed_bundle: Made, members: dict[str, bytes]) -> None:
    with open_bundle(compressed_bundle()) as bundle:
        bundle.verify()
        assert bytes(bundle.member(TAIL)) == members[HEAD][100:5000] + b"of its own"
        assert bundle.member(TAIL).readonly
        assert bytes(bundle.member(GOLDEN)) == members[GOLDEN]
        assert np.array_equal(bundle.values(GOLDEN)["image/:0"], np.ones((1, 3, 8, 8)))
        assert len(bundle.stored(TAIL)) == bundle.manifest.members[TAIL].size_bytes < 100


@pytest.mark.parametrize(("changes", "message"), [
    ({"sha256": "0" * 64}, f"{TAIL}: damaged: its SHA-256 is"),
    ({"size_bytes": 4909}, f"{TAIL}: its pieces make more than 4909 bytes"),
    ({"size_bytes": 4911}, f"{TAIL}: its pieces make 4910 bytes of 4911"),
    ({"bases": ()}, f"{TAIL}: a piece reaches outside of its base"),
    ({"bases": ("report.json",)}, f"{TAIL}: a piece reaches outside of its base: 4900 bytes at 100 of 0"),
])  # fmt: skip
def test_a_reader_refuses_what_is_not_as_the_manifest_says(compressed_bundle, changes, message) -> None:
    path = compressed_bundle(**changes)
    for use in (lambda bundle: bundle.member(TAIL), Bundle.verify):
        with open_bundle(path) as bundle, pytest.raises(BundleError, match=message):
            use(bundle)
    with open_bundle(path) as bundle:
        assert bundle.values(GOLDEN)  # which the damage does not concern


def test_a_base_that_changes_before_it_is_read_is_found_out(compressed_bundle: Made, members: dict[str, bytes]) -> None:
    path = compressed_bundle()
    with open_bundle(path) as bundle:
        at = path.read_bytes().index(members[HEAD]) + 200
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"\xff\xff")
        with pytest.raises(BundleError, match=f"{TAIL}: damaged"):
            bundle.member(TAIL)


def test_what_was_handed_out_does_not_change_with_the_file(compressed_bundle: Made, members: dict[str, bytes]) -> None:
    path = compressed_bundle()
    with open_bundle(path) as bundle:
        view = bundle.member(TAIL)
    path.write_bytes(b"")
    assert bytes(view) == members[HEAD][100:5000] + b"of its own"


WEIGHTS = np.random.default_rng(1).standard_normal(20_000).astype("<f4").tobytes()


def packed(manifest: Manifest, members: dict[str, bytes]) -> tuple[dict[str, bytes], dict[str, Compressed]]:
    """The members as the compile would store them; each comes back."""
    stored, real = compressed(manifest, members, KnownHashes(), {})
    for name, what in real.items():
        bases = [members[base] for base in what.bases]
        assert expanded(stored[name], what.size_bytes, bases) == members[name]
        assert not what.bases or all(base not in real for base in what.bases)
    return stored, real


def test_weights_that_stand_in_a_file_before_are_stored_once(manifest: Manifest, members: dict[str, bytes]) -> None:
    other = b"head" + WEIGHTS[40_000:] + b"middle" + WEIGHTS[:39_990] + b"tail"
    stored, real = packed(manifest, {**members, HEAD: WEIGHTS, TAIL: other})
    assert stored[HEAD] == WEIGHTS
    assert real[TAIL].bases == (HEAD,)
    assert len(stored[TAIL]) < 200


def test_weights_of_their_own_stay_as_they_are(manifest: Manifest, members: dict[str, bytes]) -> None:
    other = np.random.default_rng(2).standard_normal(20_000).astype("<f4").tobytes()
    stored, real = packed(manifest, {**members, HEAD: WEIGHTS, TAIL: other + WEIGHTS[:8000]})
    assert TAIL not in real
    assert stored[TAIL] == other + WEIGHTS[:8000]


def test_text_is_deflated_but_for_short_text_of_a_first_variant(manifest: Manifest, members: dict[str, bytes]) -> None:
    long, short = (b"<layer name='one'/>" * count for count in (2000, 300))
    assert TAIL in packed(manifest, {**members, TAIL: long})[1]
    assert TAIL not in packed(manifest, {**members, TAIL: short})[1]
    head, tail = manifest.submodels
    other = replace(tail.variants[0], id="other", files={"model.xml": "other"})
    second = replace(manifest, submodels=(head, replace(tail, variants=(*tail.variants, other))))
    assert "other" in packed(second, {**members, "other": short})[1]
    assert "other" not in packed(second, {**members, "other": short[:4000]})[1]


@pytest.mark.parametrize(("value", "share"), [
    ((np.random.default_rng(0).integers(0, 256, (3, 64, 64)) / 255).astype(np.float32), 0.30),
    ((np.random.default_rng(0).integers(0, 256, (3, 64, 64)) / 128 - 1).astype(np.float64), 0.17),
    (np.random.default_rng(0).standard_normal((3, 64, 64)).astype(np.float32), 0.88),
    (np.zeros((64, 64), np.int64), 0.01),
    (np.arange(9000) % 2 == 0, 0.05),
])  # fmt: skip
def test_samples_come_back_from_fewer_bytes(manifest, members, value, share) -> None:
    sample = {"image/:0": value, "mask": None, "s": ["text", {1: np.float16(2)}]}
    plain = encode_values(sample)
    stored, real = packed(manifest, {**members, GOLDEN: plain})
    assert len(stored[GOLDEN]) < share * len(plain)
    assert np.array_equal(decode_values(expanded(stored[GOLDEN], real[GOLDEN].size_bytes))["image/:0"], value)
