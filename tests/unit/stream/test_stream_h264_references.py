# SPDX-License-Identifier: Apache-2.0
"""That a picture of H.264 is missing is told by the numbers of the others, and by nothing that is whole."""

import random

import pytest

from nndeploy.stream.sources.h264_references import References

pytest.importorskip("av", reason="the extra video is not installed")
pytest.importorskip("PIL", reason="the extra vision is not installed")
from h264_over_rtp import annex_b, clip

KINDS = {
    "no-b": {},
    "b": {"tune": "film"},
    "long-group": {"group": 40},
    "cavlc": {"more": "cabac=0:slices=3"},
    "scaling-lists": {"more": "cqm=jvt"},
    "interlaced": {"more": "tff=1"},
    "high-444": {"pix_fmt": "yuv444p"},
    "high-422-scaled": {"pix_fmt": "yuv422p", "more": "cqm=jvt"},
    "refresh": {"group": 8, "more": "intra-refresh=1"},
}
IDR = 5


def kind_and_weight(picture):
    """Returns of a picture's first slice what it is, and whether others are built on it."""
    first = next(unit for unit in picture if unit[0] & 31 in (1, IDR))
    return first[0] & 31, first[0] & 0x60


def missing_before(pictures):
    references = References(None)
    return [number for number, one in enumerate(pictures) if references.is_one_missing_before(annex_b(one))]


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_of_a_whole_stream_none_is_missing(options) -> None:
    assert missing_before(clip(num=40, **options).pictures) == []


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_each_picture_that_others_are_built_on_is_missed_by_the_next(options) -> None:
    pictures = clip(num=40, **options).pictures
    num_missed = 0
    for left_out in range(1, len(pictures) - 1):
        kind, weight = kind_and_weight(pictures[left_out])
        next_kind, _ = kind_and_weight(pictures[left_out + 1])
        expected = [left_out] if weight and kind != IDR and next_kind != IDR else []
        if kind != IDR:  # of a key frame it depends on the length of the group, as the count begins anew
            assert missing_before(pictures[:left_out] + pictures[left_out + 1 :]) == expected
        num_missed += len(expected)
    assert num_missed > 10


@pytest.mark.parametrize("group", [2, 8, 18, 34])
def test_a_key_frame_that_is_missing_is_missed_where_the_count_tells(group) -> None:
    pictures = clip(num=40, group=group).pictures
    assert missing_before(pictures[:group] + pictures[group + 1 :]) == [group]


def test_parameter_sets_may_come_beforehand() -> None:
    pictures = clip().pictures
    references = References(annex_b(pictures[0][:2]))
    assert not references.is_one_missing_before(annex_b(pictures[0][2:]))
    assert references.is_one_missing_before(annex_b(pictures[2]))


def bits(*values) -> bytes:
    """Returns a sequence's parameters: (value, length) in plain, numbers in Exp-Golomb's code."""
    text = ""
    for value in values:
        if isinstance(value, tuple):
            text += f"{value[0]:0{value[1]}b}"
        else:
            code = f"{value + 1:b}"
            text += "0" * (len(code) - 1) + code
    text += "1" + "0" * (-(len(text) + 1) % 8)
    plain = int(text, 2).to_bytes(len(text) // 8)
    return plain.replace(b"\0\0\0", b"\0\0\3\0").replace(b"\0\0\1", b"\0\0\3\1")


def numbered_pictures(sequence: bytes, numbers, length) -> list[tuple[bytes, ...]]:
    """Returns pictures of these numbers, each one that others are built on, and no more of them than is looked at."""
    sets = (b"\x67" + sequence, b"\x68" + bits(0, 0))
    return [(*sets, b"\x41" + bits(0, 5, 0, (number, length), (0x55, 8))) for number in numbers]


@pytest.mark.parametrize(("may_jump", "expected"), [(0, [1]), (1, [])])
@pytest.mark.parametrize("order", [(0, 4), (1, (1, 1), 6, 3, 3, 1, 2, 5), (2,)])
def test_numbers_may_jump_where_the_sequence_says_so_however_it_counts_what_is_shown(may_jump, expected, order) -> None:
    # baseline, level 3, numbers of 5 bits; then the order of showing, references, jumps, size, frames alone
    sequence = bits((66, 8), (0, 8), (30, 8), 0, 1, *order, 4, (may_jump, 1), 5, 3, (1, 1))
    assert missing_before(numbered_pictures(sequence, [3, 9, 10, 11], 5)) == expected
    assert missing_before(numbered_pictures(sequence, [30, 31, 0, 1], 5)) == []


def test_lists_of_scales_before_the_numbers_are_passed_over() -> None:
    # high, level 3, 4:2:0, 8 bits; lists: one that ends at once, one of 16 scales, six that are not there
    lists = ((1, 1), (1, 1), 16, (1, 1), *[0] * 16, *[(0, 1)] * 6)
    sequence = bits((100, 8), (0, 8), (30, 8), 0, 1, 0, 0, (0, 1), *lists, 1, 2, 4, (0, 1), 5, 3, (1, 1))
    assert missing_before(numbered_pictures(sequence, [3, 9, 10, 11], 5)) == [1]
    assert missing_before(numbered_pictures(sequence, [30, 31, 0, 1], 5)) == []


def test_what_is_no_h264_or_damaged_tells_nothing_and_breaks_nothing() -> None:
    dice = random.Random(5)  # noqa: S311 - no secret
    whole = annex_b(clip().pictures[0])
    references = References(b"\0\0\1")
    for _ in range(500):
        damaged = bytearray(whole[: dice.randrange(len(whole))])
        for _ in range(dice.randrange(8)):
            if damaged:
                damaged[dice.randrange(min(60, len(damaged)))] = dice.randrange(256)
        references.is_one_missing_before(bytes(damaged))
        references.is_one_missing_before(b"\0\0\1" + dice.randbytes(40))
