# SPDX-License-Identifier: Apache-2.0
"""Whether a picture of H.264 is missing on which others are built, by the numbers that the pictures carry.

FFmpeg's decoder puts a copy of another picture in the place of one that is missing, and does not tell; what is built
on it then looks like a picture and is none. Every picture has a number, `frame_num`, that counts those which others
are built on; it does not jump unless the stream says that it may. In come the packets of a live stream in Annex B, as
FFmpeg's demuxers for RTP and MPEG-TS give them; what of them cannot be read tells nothing.

A picture that resets the count in the middle of a group (memory management operation 5, which encoders of cameras do
not use) counts as a jump. As many as the count can hold that are missing at once are not seen.

Source: ITU-T H.264 (08/2021), 7.3.1 (NAL units), 7.3.2.1 and 7.3.2.2 (parameter sets), 7.3.3 and 7.4.3 (slices).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

START_CODE = re.compile(b"\0\0\1")
SLICES = {1, 2, 5}
IDR, SEQUENCE_PARAMETERS, PICTURE_PARAMETERS = 5, 7, 8
HIGH_PROFILES = {44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244}
"""Those whose sequence parameters tell of colours and scaling lists."""
MAX_PARAMETER_BYTES = 1024
SLICE_BYTES = 32
"""So much of a slice holds its number."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """What the parameters of a sequence say of its numbers: they are less than `end`."""

    end: int
    has_colour_planes: bool
    may_jump: bool
    may_have_fields: bool
    """Whether two in a row may have one number: the two fields of a picture."""


class References:
    """The pictures of one stream on which others are built, as they come."""

    def __init__(self, extradata: bytes | None) -> None:
        """`extradata` are the parameter sets that were told beforehand."""
        self._sequences = dict[int, Sequence]()
        self._sequence_of = dict[int, int]()
        self._last: int | None = None
        self.stands_for_itself = False
        self.is_one_missing_before(extradata or b"")

    def is_one_missing_before(self, packet: "bytes | memoryview") -> bool:
        """Takes the next packet; returns whether one is missing between it and the packet before."""
        for unit in _units(packet):
            kind = unit[0] & 31
            try:
                if kind == SEQUENCE_PARAMETERS:
                    number, sequence = _sequence(_Bits(unit[:MAX_PARAMETER_BYTES]))
                    self._sequences[number] = sequence
                elif kind == PICTURE_PARAMETERS:
                    bits = _Bits(unit[:SLICE_BYTES])
                    number = bits.count()
                    self._sequence_of[number] = bits.count()
                elif kind in SLICES:
                    return self._is_jump(unit)
            except (ValueError, KeyError):  # damaged, or its parameters never came: the decoder has a word for that
                continue
        return False

    def _is_jump(self, unit: bytes) -> bool:
        bits = _Bits(unit[:SLICE_BYTES])
        bits.count()  # first_mb_in_slice
        self.stands_for_itself = bits.count() % 5 == 2  # slice_type I
        sequence = self._sequences[self._sequence_of[bits.count()]]
        if sequence.has_colour_planes:
            bits.number(2)
        number, end, last = bits.number(sequence.end.bit_length() - 1), sequence.end, self._last
        is_built_on = bool(unit[0] & 0x60)  # nal_ref_idc
        is_jump = (
            last is not None
            and unit[0] & 31 != IDR
            and not sequence.may_jump
            and number != (last + 1) % end
            and not (sequence.may_have_fields and number == last)
        )
        if is_built_on or is_jump:
            self._last = number if is_built_on else (number - 1) % end
        return is_jump


def _units(packet: "bytes | memoryview") -> Iterator[bytes]:
    """Yields the beginning of each NAL unit, as much as is looked at."""
    for code in START_CODE.finditer(packet):
        if unit := bytes(packet[code.end() : code.end() + MAX_PARAMETER_BYTES]):
            yield unit


def _sequence(bits: "_Bits") -> tuple[int, Sequence]:
    """Returns the number of a sequence's parameters, and what they say."""
    profile = bits.number(8)
    bits.number(16)  # constraints and level
    identifier, has_colour_planes = bits.count(), False
    if profile in HIGH_PROFILES:
        colours = bits.count()
        if is_444 := colours == 3:
            has_colour_planes = bool(bits.number(1))
        bits.count()  # bit_depth_luma_minus8
        bits.count()  # bit_depth_chroma_minus8
        bits.number(1)  # qpprime_y_zero_transform_bypass_flag
        if bits.number(1):
            for index in range(12 if is_444 else 8):
                if bits.number(1):
                    _pass_scaling_list(bits, 16 if index < 6 else 64)
    log2_end = bits.count() + 4
    if log2_end > 16:
        raise ValueError(log2_end)
    match bits.count():  # pic_order_cnt_type
        case 0:
            bits.count()
        case 1:
            bits.number(1)
            bits.signed()
            bits.signed()
            for _ in range(bits.count()):
                bits.signed()
    bits.count()  # max_num_ref_frames
    may_jump = bool(bits.number(1))
    bits.count()  # pic_width_in_mbs_minus1
    bits.count()  # pic_height_in_map_units_minus1
    return identifier, Sequence(1 << log2_end, has_colour_planes, may_jump, may_have_fields=not bits.number(1))


def _pass_scaling_list(bits: "_Bits", size: int) -> None:
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last


class _Bits:
    """Reads the bits of a NAL unit behind its first byte; a ValueError says that there are no more."""

    def __init__(self, unit: bytes) -> None:
        data = unit[1:].replace(b"\0\0\3", b"\0\0")  # emulation prevention, 7.4.1.1
        self._bits = f"{int.from_bytes(data):0{8 * len(data)}b}"
        self._place = 0

    def number(self, length: int) -> int:
        """Returns the number that the next so many bits write."""
        text = self._bits[self._place : self._place + length]
        if len(text) < length:
            raise ValueError(length)
        self._place += length
        return int(text, 2)

    def count(self) -> int:
        """Returns an unsigned number in Exp-Golomb's code (9.1)."""
        zeros = self._bits.index("1", self._place) - self._place
        self._place += zeros
        return self.number(zeros + 1) - 1

    def signed(self) -> int:
        """Returns a signed number in that code (9.1.1)."""
        count = self.count()
        return (count + 1) // 2 if count % 2 else -count // 2
