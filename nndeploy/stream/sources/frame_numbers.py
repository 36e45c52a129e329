# SPDX-License-Identifier: Apache-2.0
"""Whether a picture of H.264 is missing on which others depend, by the numbers that pictures carry.

FFmpeg's decoder shows a copy of another picture in place of a missing one, and does not report it. `frame_num` counts
the pictures on which others depend; it has no gaps, unless the sequence allows them. Packets are those of transport
streams and RTP (Annex B); what cannot be read tells nothing. A picture that resets the count (memory management
operation 5) looks like a gap.

Source: ITU-T H.264 (08/2021), 7.3.1, 7.3.2.1, 7.3.2.2, 7.3.3, 7.4.1.1, 7.4.3 and 9.1.
"""

import re

START_CODE, MAX_UNIT_BYTES = re.compile(b"\0\0\1"), 1024
SLICES, IDR, SEQUENCE, PICTURE, INTRA_SLICE = (1, 2, 5), 5, 7, 8, 2
HIGH_PROFILES = (44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244)


class FrameNumbers:
    """The numbers of the pictures of one stream, in the order of decoding."""

    def __init__(self, extradata: bytes | None) -> None:
        """`extradata` has the parameter sets that came before the first packet."""
        self.is_intra = False
        """Whether the last picture depends on no other."""
        self._sequences = dict[int, tuple[int, bool]]()
        """Of each sequence the bits of a number, and whether two fields of one picture may share it."""
        self._sequence_of = dict[int, int]()
        self._last: int | None = None
        self.is_gap_before(extradata or b"")

    def is_gap_before(self, packet: "bytes | memoryview") -> bool:
        """Takes the next packet; returns whether a picture is missing before it."""
        for code in START_CODE.finditer(packet):
            unit = bytes(packet[code.end() : code.end() + MAX_UNIT_BYTES])
            try:
                kind, bits = unit[0] & 31, _Bits(unit)
                if kind == SEQUENCE:
                    self._take_sequence(bits)
                elif kind == PICTURE:
                    picture = bits.count()
                    self._sequence_of[picture] = bits.count()
                elif kind in SLICES:
                    return self._is_gap(bits, is_idr=kind == IDR, is_reference=bool(unit[0] & 0x60))
            except (LookupError, ValueError):  # damaged, or its parameter sets never came
                continue
        return False

    def _is_gap(self, bits: "_Bits", *, is_idr: bool, is_reference: bool) -> bool:
        bits.count()  # first_mb_in_slice
        self.is_intra = bits.count() % 5 == INTRA_SLICE
        num_bits, may_have_fields = self._sequences[self._sequence_of[bits.count()]]
        number, last = bits.number(num_bits), self._last
        follows = last is None or number == (last + 1) % (1 << num_bits) or (may_have_fields and number == last)
        if is_idr or follows:
            self._last = number if is_reference else last
            return False
        self._last = number if is_reference else (number - 1) % (1 << num_bits)
        return True

    def _take_sequence(self, bits: "_Bits") -> None:
        profile = bits.number(8)
        bits.number(16)  # constraints and level
        identifier = bits.count()
        self._sequences.pop(identifier, None)  # of one that is not read further, no number is known
        if profile in HIGH_PROFILES and not bits.pass_colours():
            return
        num_bits = bits.count() + 4
        order = bits.count()  # pic_order_cnt_type
        if order == 0:
            bits.count()
        elif order == 1:
            bits.number(1)
            bits.counts(2)
            bits.counts(bits.count())
        bits.count()  # max_num_ref_frames
        may_have_gaps = bits.number(1)
        bits.counts(2)  # width and height
        if num_bits <= 16 and not may_have_gaps:
            self._sequences[identifier] = num_bits, not bits.number(1)


class _Bits:
    """Reads the bits of a NAL unit behind its first byte; a ValueError says that there are no more."""

    def __init__(self, unit: bytes) -> None:
        data = unit[1:].replace(b"\0\0\3", b"\0\0")  # emulation prevention
        self._bits = f"{int.from_bytes(data):0{8 * len(data)}b}"
        self._place = 0

    def number(self, length: int) -> int:
        """Returns an unsigned number of so many bits."""
        text = self._bits[self._place : self._place + length]
        self._place += length
        return int(text if len(text) == length else "", 2)

    def count(self) -> int:
        """Returns a number in the code of Exp-Golomb."""
        zeros = self._bits.index("1", self._place) - self._place
        self._place += zeros
        return self.number(zeros + 1) - 1

    def counts(self, num: int) -> list[int]:
        """Returns so many of them."""
        return [self.count() for _ in range(num)]

    def pass_colours(self) -> bool:
        """Passes over colours and scaling lists; returns False where colours are coded as pictures of their own."""
        is_444 = self.count() == 3
        if is_444 and self.number(1):
            return False
        self.counts(2)  # bit depths
        self.number(1)
        num_lists = (12 if is_444 else 8) * self.number(1)
        for index in range(num_lists):
            if self.number(1):
                self._pass_scaling_list(16 if index < 6 else 64)
        return True

    def _pass_scaling_list(self, size: int) -> None:
        last = following = 8
        for _ in range(size):
            if following:
                code = self.count()
                following = (last + ((code + 1) // 2 if code % 2 else -(code // 2))) % 256
            last = following or last
