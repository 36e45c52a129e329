# SPDX-License-Identifier: Apache-2.0
"""H.264 over RTP: each frame that is given out is one that the camera saw, whatever gets lost on the way."""

import contextlib
import os
import random
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from streaming import within_limit

from nndeploy.errors import InputError, InputOutputError
from nndeploy.stream.sources import readers
from nndeploy.stream.sources.addresses import address_from_text
from nndeploy.stream.sources.live_video import live_frames
from nndeploy.stream.sources.merging import merged_items
from nndeploy.stream.sources.readers import Feed, Readers, SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.stopping import Stop

pytest.importorskip("av", reason="the extra video is not installed")
pytest.importorskip("PIL", reason="the extra vision is not installed")
from cameras import Camera
from h264_over_rtp import (
    FU_A,
    PAYLOAD_BYTES,
    RATE_HZ,
    SEQUENCE_PARAMETERS,
    H264Camera,
    clip,
    framed,
    transport_stream,
)

RULES = ReadRules(reconnect=2, backoff_ns=1_000_000, backoff_most_ns=2_000_000)
LOST, MADE_UP = (
    "cannot be decoded: it is built on one that is missing or damaged",
    "is damaged: a part of it is made up",
)


@pytest.fixture
def stop():
    made = Stop()
    yield made
    made.close()


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
    left = [
        packet for i, packet in enumerate(pictures[place]) if i not in [part % len(pictures[place]) for part in parts]
    ]
    return [*pictures[:place], left if parts else [], *pictures[place + 1 :]]


@pytest.mark.parametrize(
    ("options", "place", "parts", "expected"),
    [
        ({}, 7, (), [*range(7), LOST, LOST]),  # nothing tells of the 7th itself
        ({}, 6, (0,), [*range(6), LOST, LOST, LOST]),  # its fragments without the first look like a part of the 5th
        ({}, 6, (1,), [*range(6), MADE_UP, LOST, LOST, LOST]),
        ({}, 6, (-1,), [*range(6), MADE_UP, LOST, LOST, LOST]),
        ({}, 5, (), [*range(5), LOST, LOST, LOST, LOST]),  # a key frame, of which the others of its group are built
        ({}, 9, (), range(9)),  # the last of its group: no other is built on it
        ({"more": "slices=4"}, 6, (1,), [*range(6), MADE_UP, LOST, LOST, LOST]),
        ({"more": "slices=4"}, 6, (0,), [*range(6), MADE_UP, LOST, LOST, LOST]),
    ],
)
def test_a_lost_packet_costs_the_frames_that_are_built_on_its_picture(options, place, parts, expected, stop) -> None:
    made = clip(**options)
    found, figures = seen(H264Camera(made, [without(made.packets(), place, *parts)]), made, stop)
    assert found == [*expected, *range(10, 20)]
    assert figures.num_skipped == 0


def test_a_frame_that_is_shown_before_a_damaged_one_is_not_built_on_it_in_secret(stop) -> None:
    made = clip(tune="film", group=10, more="bframes=1:b-adapt=0:b-pyramid=none")
    assert made.places[:5] == (0, 2, 1, 4, 3)
    found, _ = seen(H264Camera(made, [without(made.packets(payload_bytes=120), 3, 1)]), made, stop)
    assert found[:5] == [0, 1, 2, LOST, MADE_UP]
    assert found[5:10] == [LOST] * 5
    assert found[10:] == list(range(10, 20))


def test_a_camera_that_sends_no_key_frame_again_is_seen_again_after_a_refresh(stop) -> None:
    made = clip(num=30, group=8, more="intra-refresh=1")
    found, figures = seen(H264Camera(made, [without(made.packets(), 5), made.packets()[3:]]), made, stop)
    first, second = found[: found.index(29) + 1], found[found.index(29) + 1 :]
    assert first[:5] == list(range(5))
    assert LOST in first
    for part in (first, second):
        whole = [one for one in part[5:] if one != LOST]
        assert whole == list(range(whole[0], 30))
        assert whole[0] < 3 * 8
    assert figures.num_skipped + len(second) == 27


def test_the_message_of_a_lost_picture_makes_no_other_one_whole(stop) -> None:
    made = clip(num=30, group=8, tune="film", more="open-gop=1")
    begins = [number for number, picture in enumerate(made.pictures) if picture[0][0] & 31 == SEQUENCE_PARAMETERS]
    assert not made.has_key_frame(begins[1]), "a message says that one may begin here"
    pictures = made.packets()
    num_lost = sum(len(unit) > PAYLOAD_BYTES for unit in made.pictures[begins[1]])
    assert num_lost == 1
    lost = [packet for packet in pictures[begins[1]] if packet[12] & 31 != FU_A]
    assert len(lost) == 2
    found, _ = seen(H264Camera(made, [[*pictures[: begins[1]], lost, *pictures[begins[1] + 1 :]]]), made, stop)
    first, second = (made.places[number] for number in begins[1:3])
    assert [one for one in found if isinstance(one, int)] == [*range(first), *range(second, 30)]
    assert set(found[first : found.index(second)]) == {LOST}


def test_a_connection_that_ends_in_a_picture_costs_that_picture(stop) -> None:
    made = clip()
    pictures = made.packets()
    cut = [*pictures[:8], pictures[8][:1]]
    found, figures = seen(H264Camera(made, [cut, pictures[3:], cut]), made, stop)
    assert found == [*range(8), MADE_UP, *range(5, 20), *range(8), MADE_UP]
    assert figures.num_skipped == 2
    assert figures.num_reconnects == 2 + 2


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
    """Returns the packets of a picture of which some are lost, and with each what of its NAL unit comes behind it.

    That a piece is missing within one is nothing that a decoder always finds.
    """
    left, is_lost = [], False
    for packet in picture:
        goes_on = packet[12] & 31 == FU_A and not packet[13] & 0x80
        is_lost = (is_lost and goes_on) or dice.random() < loss
        if not is_lost:
            left.append(packet)
    return left


def test_frames_that_are_too_old_are_dropped_and_the_others_are_whole(stop, monkeypatch) -> None:
    made, is_old, offset = clip(group=20), threading.Event(), [0]
    clock = SimpleNamespace(monotonic=time.monotonic, monotonic_ns=lambda: time.monotonic_ns() + offset[0])
    monkeypatch.setattr(readers, "time", clock)
    data = [b"".join(framed(packet) for packet in picture) for picture in made.packets()]

    class Pausing(H264Camera):
        def play(self, connection, _):
            super().play(connection, b"".join(data[:10]))
            assert is_old.wait(20)
            connection.sendall(b"".join(data[10:]))

    camera = Pausing(made, [[]])
    address = address_from_text(f"rtsp://127.0.0.1:{camera.port}/")
    feed = Feed(
        "camera",
        lambda own, figures: live_frames(address, ReadRules(), own, figures),
        ReadRules(buffer=20, drop="oldest", max_age_ns=600 * 10**9),
    )
    made_readers = Readers([feed], stop)
    try:
        (figures,) = made_readers.figures()
        made_readers.start()
        within_limit(lambda: wait_until(lambda: figures.num_read == 9))  # of the 10th only the next tells its end
        offset[0] = 1000 * 10**9
        is_old.set()
        items = within_limit(lambda: list(merged_items(made_readers, ["camera"])))
    finally:
        made_readers.close()
    camera.close()
    assert [place_of(item.load()["image"], made.images) for item in items] == list(range(9, 20))
    assert figures.num_dropped == 9


@pytest.mark.parametrize("left_out", [None, 6])
@pytest.mark.parametrize("codec", ["libx264", "libx265"])
@pytest.mark.parametrize("where", ["tcp", "fifo"])
def test_a_picture_that_a_transport_stream_lacks_costs_those_that_are_built_on_it(
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
    assert found == ([*range(20)] if left_out is None else [*range(6), LOST, LOST, LOST, *range(10, 20)])


class Writer(threading.Thread):
    """Writes a FIFO."""

    def __init__(self, path, data):
        super().__init__(target=lambda: path.write_bytes(data), daemon=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join(10)


def wait_until(is_so):
    while not is_so():
        time.sleep(0.001)
