# SPDX-License-Identifier: Apache-2.0
"""H.264 as a camera sends it: encoded, cut into RTP packets, described in SDP, and played.

A picture is an access unit: a list of NAL units. One that fits is a packet, parameter sets are packed together
(STAP-A), a larger one is cut into fragments (FU-A); the last packet of a picture carries the marker.

Source: RFC 6184 (RTP Payload Format for H.264), 5.6, 5.7.1, 5.8 and 8.2.1; RFC 3550, 5.1 for the header.
"""

import base64
import io
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import av
import numpy as np
from cameras import RtspCamera

CLOCK_HZ, RATE_HZ = 90_000, 25
PAYLOAD_TYPE, PAYLOAD_BYTES = 96, 300
KEY, SEQUENCE_PARAMETERS, PICTURE_PARAMETERS, STAP_A, FU_A = 5, 7, 8, 24, 28
FIRST_SEQUENCE, FIRST_TICKS = 65_530, 2**32 - 5 * 3600
"""Both counts of RTP begin anew within a few pictures."""
START_CODE = re.compile(b"\0\0\0?\1")
HEIGHT, WIDTH = 64, 96

Picture = tuple[bytes, ...]
"""The NAL units of an encoded picture."""


@dataclass(frozen=True)
class Clip:
    """What an encoder made: pictures in the order in which they are sent, with their places in that of showing."""

    pictures: tuple[Picture, ...]
    places: tuple[int, ...]
    images: tuple[np.ndarray, ...]
    """By FFmpeg's decoder, from the encoder's packets, in the order in which they are shown."""

    @property
    def parameter_sets(self) -> Picture:
        return tuple(unit for unit in self.pictures[0] if _is_parameter_set(unit))

    def has_key_frame(self, number: int) -> bool:
        """Returns whether a picture is one from which on none before it is needed (IDR)."""
        return any(unit[0] & 31 == KEY for unit in self.pictures[number])

    def description(self, *, has_parameter_sets: bool = True) -> str:
        """Returns the SDP of a camera that sends it."""
        sets = ",".join(base64.b64encode(unit).decode() for unit in self.parameter_sets)
        told = f";sprop-parameter-sets={sets}" if has_parameter_sets else ""
        profile = self.parameter_sets[0][1:4].hex().upper()
        return "\r\n".join((
            "v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=test", "t=0 0", f"m=video 0 RTP/AVP {PAYLOAD_TYPE}",
            f"a=rtpmap:{PAYLOAD_TYPE} H264/{CLOCK_HZ}",
            f"a=fmtp:{PAYLOAD_TYPE} packetization-mode=1;profile-level-id={profile}{told}", "a=control:track", "",
        ))  # fmt: skip

    def packets(self, *, are_sets_in_band: bool = True, payload_bytes: int = PAYLOAD_BYTES) -> list[list[bytes]]:
        """Returns the RTP packets of each picture."""
        made, sequence = [], FIRST_SEQUENCE
        for picture, place in zip(self.pictures, self.places, strict=True):
            payloads = list(_payloads(picture, are_sets_in_band, payload_bytes))
            ticks = FIRST_TICKS + place * CLOCK_HZ // RATE_HZ
            heads = [
                struct.pack(">BBHII", 0x80, PAYLOAD_TYPE | marker << 7, sequence + i & 0xFFFF, ticks & 0xFFFFFFFF, 1)
                for i, marker in enumerate([0] * (len(payloads) - 1) + [1])
            ]
            made.append([head + payload for head, payload in zip(heads, payloads, strict=True)])
            sequence += len(payloads)
        return made


class H264Camera(RtspCamera):
    """Plays RTP packets of a clip, session after session."""

    def __init__(self, clip: Clip, sessions: Iterable[Sequence[Sequence[bytes]]], *, tells_sets: bool = True) -> None:
        """`sessions` has the packets of each picture."""
        self.description = clip.description(has_parameter_sets=tells_sets)
        super().__init__(b"".join(framed(packet) for picture in one for packet in picture) for one in sessions)

    def media(self, data: bytes) -> bytes:
        """Returns what it was given, which is RTP."""
        return data


def framed(packet: bytes) -> bytes:
    """Returns an RTP packet as it goes over the connection of RTSP."""
    return struct.pack(">cBH", b"$", 0, len(packet)) + packet


def moving_image(number: int) -> np.ndarray:
    """Returns an image that is like no other: a patch moves over a ground that grows brighter."""
    image = np.full((HEIGHT, WIDTH, 3), 20 + 5 * number % 200, np.uint8)
    left = 3 * number % (WIDTH - 32)
    image[20:44, left : left + 32] = np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8)
    return image


@cache
def clip(num: int = 20, group: int = 5, tune: str = "zerolatency", more: str = "", pix_fmt: str = "yuv420p") -> Clip:
    """Returns a clip of moving images, of which each group begins with a key frame; `more` are options of x264."""
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = WIDTH, HEIGHT, pix_fmt
    encoder.framerate, encoder.time_base = Fraction(RATE_HZ), Fraction(1, RATE_HZ)
    options = f"threads=1:keyint={group}:min-keyint={group}:scenecut=0:repeat-headers=1:qp=20:{more}"
    encoder.options = {"preset": "superfast", "tune": tune, "x264-params": options}
    packets = []
    for number in range(num):
        frame = av.VideoFrame.from_ndarray(moving_image(number), format="rgb24")
        frame.pts, frame.time_base = number, encoder.time_base
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    decoder = av.CodecContext.create("h264", "r")
    frames = [frame for packet in (*packets, None) for frame in decoder.decode(packet)]
    pictures = tuple(
        tuple(unit for unit in START_CODE.split(bytes(packet)) if unit and not _is_about_the_encoder(unit))
        for packet in packets
    )
    images = tuple(frame.to_ndarray(format="rgb24") for frame in frames)
    return Clip(pictures, tuple(int(packet.pts) for packet in packets), images)


@cache
def transport_stream(codec: str, left_out: int | None = None) -> tuple[bytes, tuple[np.ndarray, ...]]:
    """Returns 20 pictures of a codec as MPEG-TS, without one of them, and what all of them look like."""
    file, packets = io.BytesIO(), []
    options = "threads=1:keyint=5:min-keyint=5:scenecut=0:qp=20"
    if codec == "libx265":
        options = options.replace("threads=1", "pools=none:frame-threads=1:log-level=none:repeat-headers=1")
    with av.open(file, "w", format="mpegts") as container:
        stream = container.add_stream(codec, rate=RATE_HZ)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"preset": "superfast", "tune": "zerolatency", codec.removeprefix("lib") + "-params": options}
        for number in range(20):
            packets += stream.encode(av.VideoFrame.from_ndarray(moving_image(number), format="rgb24"))
        packets += stream.encode(None)
        decoder = av.CodecContext.create("hevc" if codec == "libx265" else "h264", "r")
        decoder.extradata = stream.codec_context.extradata
        frames = [frame for packet in (*packets, None) for frame in decoder.decode(packet)]
        for number, packet in enumerate(packets):
            if number != left_out:
                container.mux(packet)
    return file.getvalue(), tuple(frame.to_ndarray(format="rgb24") for frame in frames)


def annex_b(picture: Picture) -> bytes:
    """Returns a picture as a byte stream."""
    return b"".join(b"\0\0\0\1" + unit for unit in picture)


def _is_parameter_set(unit: bytes) -> bool:
    return unit[0] & 31 in (SEQUENCE_PARAMETERS, PICTURE_PARAMETERS)


def _is_about_the_encoder(unit: bytes) -> bool:
    """Returns whether it is the text with which x264 says how it was called."""
    return unit[:2] == b"\6\5"


def _payloads(picture: Picture, are_sets_in_band: bool, payload_bytes: int) -> Iterator[bytes]:
    sets = [unit for unit in picture if _is_parameter_set(unit)]
    if sets and are_sets_in_band:
        yield bytes([0x60 | STAP_A]) + b"".join(struct.pack(">H", len(unit)) + unit for unit in sets)
    for unit in picture:
        if _is_parameter_set(unit):
            continue
        if len(unit) <= payload_bytes:
            yield unit
            continue
        parts = [unit[i : i + payload_bytes - 2] for i in range(1, len(unit), payload_bytes - 2)]
        for i, part in enumerate(parts):
            ends = (i == 0) << 7 | (i == len(parts) - 1) << 6
            yield bytes([unit[0] & 0xE0 | FU_A, ends | unit[0] & 31]) + part
