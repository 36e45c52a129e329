# SPDX-License-Identifier: Apache-2.0
"""H.264: each frame that is given out is one that the camera saw, whatever gets lost on the way."""

import contextlib
import os
import random
import threading
from dataclasses import replace

import numpy as np
import pytest
from streaming import within_limit

from nndeploy.errors import InputError, InputOutputError
from nndeploy.stream.sources.addresses import address_from_text
from nndeploy.stream.sources.frame_numbers import FrameNumbers
from nndeploy.stream.sources.live_video import live_frames
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.sources.video_decoder import DAMAGED

pytest.importorskip("av", reason="the extra video is not installed")
pytest.importorskip("PIL", reason="the extra vision is not installed")
from cameras import Camera
from h264_over_rtp import FU_A, KEY, RATE_HZ, H264Camera, annex_b, clip, transport_stream

RULES = ReadRules(reconnect=2, backoff_ns=1_000_000, backoff_most_ns=2_000_000)


def seen(camera, made, stop, rules=RULES):
    """Returns what comes of all sessions, and the figures: the place of a whole frame, or the text of an error."""
    address, figures, found = address_from_text(f"rtsp://127.0.0.1:{camera.port}/"), SourceFigures("camera"), []
    assert address is not None

    def read():
        for number, item in enumerate(live_frames(address, rules, stop, figures)):
            assert item.origin.endswith(f" frame {number}")
            try:
                found.append(place_of(item.load()["image"], made.images))
            except InputError as err:
                found.append(str(err))

    with pytest.raises(InputOutputError, match="Connection refused"):
        within_limit(read, 60)
    camera.close()
    return found, figures


def place_of(image, images):
    """Returns which of the images it is, to the last bit; -1: none."""
    return next((place for place, known in enumerate(images) if np.array_equal(image, known)), -1)


@pytest.mark.parametrize(("in_band", "in_description"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("tune", ["zerolatency", "film"])
def test_frames_are_those_of_the_encoder_wherever_the_parameter_sets_are(tune, in_band, in_description, stop) -> None:
    made = clip(tune=tune)
    camera = H264Camera(made, [made.packets(are_sets_in_band=in_band)], tells_sets=in_description)
    found, figures = seen(camera, made, stop)
    assert found == list(range(20))
    assert figures.num_skipped == 0


@pytest.mark.parametrize("num_before", [1, 4])
def test_what_comes_before_the_first_key_frame_is_counted_and_no_record(num_before, stop) -> None:
    made = clip()
    camera = H264Camera(made, [made.packets()[5 - num_before :]])
    found, figures = seen(camera, made, stop)
    assert found == list(range(5, 20))
    assert figures.num_skipped == num_before


def test_times_are_those_of_the_pictures_from_the_first_packet_on(stop) -> None:
    made = clip()
    camera = H264Camera(made, [made.packets()[3:], made.packets()])
    address, times = address_from_text(f"rtsp://127.0.0.1:{camera.port}/"), []

    def read():
        for item in live_frames(address, RULES, stop, SourceFigures("camera")):
            assert item.load()["seconds"] == item.known["seconds"]
            times.append(item.known["seconds"])

    with pytest.raises(InputOutputError):
        within_limit(read)
    camera.close()
    assert times == pytest.approx([*(i / RATE_HZ for i in range(2, 17)), *(i / RATE_HZ for i in range(20))])


def without(pictures, place, *parts):
    """Returns the packets of pictures without some of one; without all of it where no parts are named."""
    left = [one for i, one in enumerate(pictures[place]) if parts and i - len(pictures[place]) not in parts]
    return [*pictures[:place], left, *pictures[place + 1 :]]


@pytest.mark.parametrize(("options", "place", "parts", "num_damaged"), [
    ({}, 7, (), 2),  # nothing tells of the 7th itself
    ({}, 6, (-1,), 4),
    ({}, 5, (), 4),  # a key frame
    ({}, 9, (), 0),  # the last of its group: no other depends on it
    ({"more": "slices=4"}, 6, (-3,), 4),
])  # fmt: skip
def test_a_lost_packet_costs_the_frames_that_depend_on_its_picture(options, place, parts, num_damaged, stop) -> None:
    made = clip(**options)
    found, figures = seen(H264Camera(made, [without(made.packets(), place, *parts)]), made, stop)
    assert found == [*range(place), *[DAMAGED] * num_damaged, *range(10, 20)]
    assert figures.num_skipped == 0


@pytest.mark.parametrize("options", [{"more": "slices=2"}, {"tune": "film", "more": "open-gop=1"}])
def test_no_frame_is_given_out_that_the_camera_did_not_see(options, stop) -> None:
    dice = random.Random(1)  # noqa: S311 - no secret
    made = clip(num=40, group=8, **options)
    sessions = [[left_of(picture, loss, dice) for picture in made.packets()] for loss in (0.01, 0.05, 0.2) * 6]
    found, _ = seen(H264Camera(made, sessions), made, stop, replace(RULES, reconnect=20))
    assert -1 not in found
    assert sum(isinstance(one, int) for one in found) > 100
    assert sum(isinstance(one, str) for one in found) > 50


def left_of(picture, loss, dice):
    """Returns the packets of a picture without some, and with each what of its NAL unit comes behind it.

    That a piece is missing within one is nothing that a decoder always finds.
    """
    left, is_lost = [], False
    for packet in picture:
        goes_on = packet[12] & 31 == FU_A and not packet[13] & 0x80
        is_lost = (is_lost and goes_on) or dice.random() < loss
        if not is_lost:
            left.append(packet)
    return left


@pytest.mark.parametrize("left_out", [None, 6])
@pytest.mark.parametrize("codec", ["libx264", "libx265"])
@pytest.mark.parametrize("where", ["tcp", "fifo"])
def test_a_picture_that_a_transport_stream_lacks_costs_those_that_depend_on_it(
    where, codec, left_out, stop, tmp_path
) -> None:
    data, images = transport_stream(codec, left_out)
    os.mkfifo(tmp_path / "video")
    with contextlib.closing(Camera([data])) if where == "tcp" else Writer(tmp_path / "video", data) as camera:
        address = address_from_text(f"tcp:127.0.0.1:{camera.port}" if where == "tcp" else str(tmp_path / "video"))
        found = []

        def read():
            for item in live_frames(address, ReadRules(), stop, SourceFigures("camera")):
                try:
                    found.append(place_of(item.load()["image"], images))
                except InputError as err:
                    found.append(str(err))

        within_limit(read)
    assert found == ([*range(20)] if left_out is None else [*range(6), *[DAMAGED] * 3, *range(10, 20)])


class Writer(threading.Thread):
    """Writes a FIFO."""

    def __init__(self, path, data):
        super().__init__(target=lambda: path.write_bytes(data), daemon=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join(10)


@pytest.mark.parametrize("options", [
    {"tune": "film"}, {"group": 40}, {"more": "cabac=0:slices=3"}, {"more": "tff=1"}, {"pix_fmt": "yuv444p"},
    {"pix_fmt": "yuv422p", "more": "cqm=jvt"}, {"group": 8, "more": "intra-refresh=1"},
])  # fmt: skip
def test_numbers_have_a_gap_where_a_picture_is_missing_on_which_others_depend(options) -> None:
    pictures = [(annex_b(picture), picture[-1][0]) for picture in clip(num=40, **options).pictures]
    missed = 0
    for left_out in range(len(pictures)):
        numbers = FrameNumbers(None)
        gaps = [place for place, one in enumerate(pictures) if place != left_out and numbers.is_gap_before(one[0])]
        is_reference, is_next_key = pictures[left_out][1] & 0x60, pictures[(left_out + 1) % 40][1] & 31 == KEY
        if pictures[left_out][1] & 31 == KEY:  # the count begins anew, so that it depends on the length of the group
            assert set(gaps) <= {left_out + 1}
            continue
        assert gaps == ([left_out + 1] if is_reference and not is_next_key and left_out < 39 else [])
        missed += len(gaps)
    assert missed > 10


def test_what_is_damaged_tells_nothing_and_breaks_nothing() -> None:
    dice = random.Random(5)  # noqa: S311 - no secret
    whole, numbers = annex_b(clip(more="cqm=jvt").pictures[0]), FrameNumbers(b"\0\0\1")
    for _ in range(500):
        damaged = bytearray(whole[: dice.randrange(1, len(whole))])
        for _ in range(dice.randrange(8)):
            damaged[dice.randrange(min(60, len(damaged)))] = dice.randrange(256)
        numbers.is_gap_before(bytes(damaged))
