# SPDX-License-Identifier: Apache-2.0
"""Video: what the sink writes, the source reads; damaged files are records with errors, never a hang or a crash."""

import numpy as np
import pytest

from nndeploy.errors import CannotCreateError, DataError, InputError
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.video_sink import VideoSink
from nndeploy.stream.sources.record_sources import FIELDS
from nndeploy.stream.sources.video_source import frames_of

pytest.importorskip("av", reason="the extra video is not installed")


def done(index, image):
    return Outcome(index, f"frame {index}", "x", {"image": image})


def failed(index):
    return Outcome(index, f"frame {index}", "x", None, InputError("bad"))


def shade(value, size=(48, 64)):
    return np.full((*size, 3), value, np.uint8)


@pytest.fixture
def video(tmp_path):
    """Returns an MP4 of ten frames, each brighter than the one before."""
    sink = VideoSink(tmp_path / "v.mp4", rate_hz=10)
    for i in range(10):
        sink.write(done(i, shade(20 * i + 20)))
    sink.finish()
    return tmp_path / "v.mp4"


def images_of(path):
    return [item.load()["image"] for item in frames_of(path, 0)]


def test_what_is_written_is_read(video) -> None:
    items = list(frames_of(video, 5))
    assert [item.index for item in items] == list(range(5, 15))
    assert items[3].origin == f"{video} frame 3"
    assert items[3].stem == "v-000003"
    for number, item in enumerate(items):
        fields = item.load()
        assert set(fields) == set(FIELDS["video"])
        assert fields["frame"] == number
        assert fields["seconds"] == pytest.approx(number / 10)
        assert fields["image"].shape == (48, 64, 3)
        assert abs(fields["image"].astype(int) - (20 * number + 20)).max() <= 4


def test_colours_stay_what_they_were(tmp_path) -> None:
    image = shade(0)
    image[:, :32] = (200, 30, 30)
    image[:, 32:] = (20, 40, 180)
    sink = VideoSink(tmp_path / "v.mp4")
    sink.write(done(0, image))
    sink.finish()
    (found,) = images_of(tmp_path / "v.mp4")
    assert abs(found[:, 4:28].astype(int) - (200, 30, 30)).max() <= 12
    assert abs(found[:, 36:60].astype(int) - (20, 40, 180)).max() <= 12


def test_a_failed_record_shows_the_image_before_it(tmp_path) -> None:
    sink = VideoSink(tmp_path / "v.mp4")
    for outcome in (failed(0), done(1, shade(50)), failed(2), done(3, shade(200))):
        sink.write(outcome)
    sink.finish()
    assert [round(image.mean() / 10) for image in images_of(tmp_path / "v.mp4")] == [5, 5, 20]


def test_images_of_other_sizes_are_fitted(tmp_path) -> None:
    sink = VideoSink(tmp_path / "v.mp4")
    sink.write(done(0, shade(90, (49, 65))))
    sink.write(done(1, shade(90, (48, 16))))
    sink.finish()
    first, second = images_of(tmp_path / "v.mp4")
    assert first.shape == second.shape == (48, 64, 3)
    assert second[:, :16].max() < 20
    assert abs(second[10:40, 28:36].astype(int) - 90).max() <= 8


def test_no_image_is_no_file_and_what_is_discarded_is_gone(tmp_path) -> None:
    sink = VideoSink(tmp_path / "v.mp4")
    sink.write(failed(0))
    sink.finish()
    sink = VideoSink(tmp_path / "v.mp4")
    sink.write(done(0, shade(1)))
    sink.discard()
    assert list(tmp_path.iterdir()) == []
    sink = VideoSink(tmp_path / "v.mp4")
    with pytest.raises(DataError, match="the record has no field 'image'"):
        sink.write(Outcome(0, "a", "a", {"picture": shade(1)}))
    sink.discard()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CannotCreateError):
        VideoSink(tmp_path / "file" / "v.mp4")


@pytest.mark.parametrize(("name", "data", "message"), [
    ("a.mp4", b"", "is no .mp4 video, or damaged|is damaged"),
    ("a.mp4", b"hello" * 100, "is no .mp4 video, or damaged"),
    ("a.mkv", b"hello" * 100, "is no .mkv video, or damaged"),
    ("a.txt", b"#EXTM3U\n/etc/passwd\n", "is no video file that is taken .*known: .mp4"),
    ("a.mp4", b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n", "is no .mp4 video"),
])  # fmt: skip
def test_what_is_no_video_is_one_error_record(tmp_path, name, data, message) -> None:
    (tmp_path / name).write_bytes(data)
    (item,) = frames_of(tmp_path / name, 3)
    assert item.index == 3
    with pytest.raises(InputError, match=message):
        item.load()


def test_a_video_that_is_cut_off_or_damaged_is_frames_and_errors(video, tmp_path) -> None:
    data = video.read_bytes()
    rng = np.random.default_rng(7)
    for trial in range(30):
        mutant = bytearray(data[: rng.integers(1, len(data))] if trial % 2 else data)
        for place in rng.integers(0, len(mutant), trial):
            mutant[place] = rng.integers(0, 256)
        (tmp_path / "m.mp4").write_bytes(mutant)
        outcomes = 0
        for item in frames_of(tmp_path / "m.mp4", 0):
            outcomes += 1
            try:
                assert item.load()["image"].ndim == 3
            except InputError as err:
                assert "\n" not in str(err)  # noqa: PT017 - most are frames
        assert outcomes
