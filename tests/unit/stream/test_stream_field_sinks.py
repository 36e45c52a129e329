# SPDX-License-Identifier: Apache-2.0
"""Images, sounds, CSV and statistics of the fields that a pipeline made."""

import csv
import io
import json
import struct
import wave

import numpy as np
import pytest
from PIL import Image

from nndeploy.errors import CannotCreateError, DataError, InputError, NotTakenError, UsageError
from nndeploy.stream.items import Outcome
from nndeploy.stream.sinks.csv_sink import CsvSink
from nndeploy.stream.sinks.image_sink import ImageSink
from nndeploy.stream.sinks.sinks import FolderSink
from nndeploy.stream.sinks.statistics_sink import MAX_TEXTS, StatisticsSink
from nndeploy.stream.sinks.wav_sink import WavSink


def done(index=0, **fields):
    return Outcome(index, f"in/{index}.png", f"{index}", fields)


def untaken(index=0):
    return Outcome(index, f"in/{index}.png", f"{index}", None, NotTakenError("none takes it"), stage="level 1")


def failed(index=0):
    return Outcome(index, f"in/{index}.png", f"{index}", None, InputError("bad"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def picture(value=9):
    return np.full((4, 5, 3), value, np.uint8)


def encoded(kind):
    file = io.BytesIO()
    Image.fromarray(picture()).save(file, kind)
    return file.getvalue()


def test_images_one_file_a_record_or_an_element(tmp_path) -> None:
    sink = ImageSink(tmp_path / "out")
    sink.write(done(0, image=picture()))
    sink.write(done(1, image=[picture(1), encoded("JPEG")]))
    sink.write(done(2, image=encoded("PNG")))
    sink.write(failed(3))
    sink.finish()
    assert names(tmp_path / "out") == [
        "000000_0.png", "000001_1_0.png", "000001_1_1.jpg", "000002_2.png", "000003_3.error.json",
    ]  # fmt: skip
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / "000000_0.png")), picture())
    assert (tmp_path / "out" / "000002_2.png").read_bytes() == encoded("PNG")
    error = json.loads((tmp_path / "out" / "000003_3.error.json").read_text())
    assert error == {"index": 3, "origin": "in/3.png", "error": {"code": "bad-input", "message": "bad"}}


@pytest.mark.parametrize(("fields", "message"), [
    ({}, "no field 'image'"), ({"image": b"GIF89a"}, "no PNG or JPEG"), ({"image": 3}, "an image is uint8")
])  # fmt: skip
def test_what_is_no_image_is_not_written(tmp_path, fields, message) -> None:
    sink = ImageSink(tmp_path, kind="jpeg")
    with pytest.raises(DataError, match=message):
        sink.write(done(0, **fields))
    sink.discard()
    assert names(tmp_path) == []


@pytest.mark.parametrize("shape", [(6,), (1, 6), (3, 2)])
def test_sounds_of_16_bits_are_what_the_standard_library_reads(tmp_path, shape) -> None:
    sink = WavSink(tmp_path / "out")
    sink.write(done(0, samples=np.array([0, 0.50002, -1, 1, 2, -3], np.float32).reshape(shape), rate=np.int64(8000)))
    sink.write(failed(1))
    sink.finish()
    assert names(tmp_path / "out") == ["000000_0.wav", "000001_1.error.json"]
    with wave.open(str(tmp_path / "out" / "000000_0.wav")) as file:
        channels = 2 if shape == (3, 2) else 1
        assert file.getparams()[:4] == (channels, 2, 8000, 6 // channels)
        found = np.frombuffer(file.readframes(6), "<i2")
    assert found.tolist() == [0, 16385, -32768, 32767, 32767, -32768]


@pytest.mark.parametrize("samples", [[0.1, -2.5, 1e-9], []])
def test_floating_sounds_keep_every_bit(tmp_path, samples) -> None:
    sink = WavSink(tmp_path, "sound", "hz", "float32")
    sink.write(done(0, sound=np.array(samples, np.float32), hz=44100))
    sink.finish()
    data = (tmp_path / "000000_0.wav").read_bytes()
    assert struct.unpack_from("<4sI4s", data) == (b"RIFF", len(data) - 8, b"WAVE")
    assert struct.unpack_from("<4sIHHIIHH", data, 12) == (b"fmt ", 16, 3, 1, 44100, 176400, 4, 32)
    assert struct.unpack_from("<4sII", data, 36) == (b"fact", 4, len(samples))
    assert struct.unpack_from("<4sI", data, 48) == (b"data", 4 * len(samples))
    assert data[56:] == np.array(samples, "<f4").tobytes()


@pytest.mark.parametrize(("fields", "message"), [
    ({"samples": [0.5]}, "no field 'rate'"), ({"samples": "x", "rate": 9}, "samples must be numbers"),
    ({"samples": np.zeros((2, 2, 2)), "rate": 9}, r"samples must be \(N,\)"),
    ({"samples": [np.nan], "rate": 9}, "NaN or infinity"), ({"samples": [0.5], "rate": 0}, "a rate of 0 Hz"),
    ({"samples": np.zeros((3, 65)), "rate": 9}, "3 samples of 65 channels are too many"),
])  # fmt: skip
def test_what_is_no_sound_is_not_written(tmp_path, fields, message) -> None:
    sink = WavSink(tmp_path)
    with pytest.raises(DataError, match=message):
        sink.write(done(0, **fields))
    sink.discard()
    assert names(tmp_path) == []


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_csv_has_a_row_for_each_record(tmp_path) -> None:
    sink = CsvSink(tmp_path / "r.csv", ["label", "score", "box"])
    sink.write(done(0, label='a "quoted", one', score=np.float32(0.9), box=np.array([1, 2.5], np.float32)))
    sink.write(failed(1))
    sink.write(done(2, label=None, score=np.array([[3]]), box={"k": [True, None, "ä", np.nan, b"xy"]}))
    assert not (tmp_path / "r.csv").exists()
    sink.finish()
    assert rows(tmp_path / "r.csv") == [
        ["index", "origin", "label", "score", "box", "error"],
        ["0", "in/0.png", 'a "quoted", one', "0.9", "[1.0, 2.5]", ""],
        ["1", "in/1.png", "", "", "", "bad"],
        ["2", "in/2.png", "", "3", '{"k": [true, null, "ä", null, "2 bytes"]}', ""],
    ]
    assert (tmp_path / "r.csv").read_bytes().endswith(b"\r\n")


def test_csv_has_a_row_for_each_element(tmp_path) -> None:
    sink = CsvSink(tmp_path / "r.csv", ["label", "box", "size"], each=["label", "box"])
    sink.write(done(0, label=["a", "b"], box=np.array([[1, 2], [3, 4]], np.float32), size=7))
    sink.write(done(1, label=[], box=np.zeros((0, 2)), size=7))
    sink.write(failed(2))
    sink.finish()
    assert rows(tmp_path / "r.csv")[1:] == [
        ["0", "in/0.png", "0", "a", "[1.0, 2.0]", "7", ""],
        ["0", "in/0.png", "1", "b", "[3.0, 4.0]", "7", ""],
        ["2", "in/2.png", "", "", "", "", "bad"],
    ]


def test_csv_refuses_what_does_not_stand_side_by_side(tmp_path) -> None:
    sink = CsvSink(tmp_path / "r.csv", ["a", "b"], each=["a", "b"])
    with pytest.raises(DataError, match=r"lists of one length \(a: 1, b: 2\)"):
        sink.write(done(0, a=[1], b=[1, 2]))
    with pytest.raises(DataError, match=r"\(a: no list, b: 2\)"):
        sink.write(done(0, a=1, b=[1, 2]))
    with pytest.raises(DataError, match="no field 'b'"):
        sink.write(done(0, a=1))
    sink.discard()
    assert names(tmp_path) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CannotCreateError):
        CsvSink(tmp_path / "file" / "r.csv", ["a"])
    with pytest.raises(UsageError, match="each names b, which is not among the fields"):
        CsvSink(tmp_path / "r.csv", ["a"], each=["a", "b"])


def statistics(tmp_path, fields, outcomes):
    sink = StatisticsSink(tmp_path / "s.json", fields)
    for outcome in outcomes:
        sink.write(outcome)
    assert not (tmp_path / "s.json").exists()
    sink.finish()
    return json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))


def test_statistics_count_texts_and_sum_numbers(tmp_path) -> None:
    outcomes = [
        done(0, labels=["cat", "dog"], scores=np.array([0.5, 1.0]), length=3),
        done(1, labels="cat", scores=[], length=np.nan),
        done(2, labels=[], scores=np.float32(0), length=5),
        failed(3),
    ]
    assert statistics(tmp_path, ["labels", "scores", "length"], outcomes) == {
        "records": 4,
        "failed": 1,
        "errors": {"bad-input": 1},
        "fields": {
            "labels": {"count": 3, "texts": {"cat": 2, "dog": 1}},
            "scores": {"numbers": {"count": 3, "mean": 0.5, "min": 0.0, "max": 1.0}},
            "length": {"numbers": {"count": 2, "mean": 4.0, "min": 3.0, "max": 5.0}, "non_finite": 1},
        },
    }


def test_statistics_do_not_grow_with_the_stream(tmp_path) -> None:
    texts = [f"text {i}" for i in range(MAX_TEXTS + 3)]
    found = statistics(tmp_path, ["t"], [done(0, t=texts), done(1, t=["text 0", "new"])])["fields"]["t"]
    assert len(found["texts"]) == MAX_TEXTS
    assert found["texts"]["text 0"] == 2
    assert found["others"] == 4
    assert found["count"] == sum(found["texts"].values()) + found["others"] == MAX_TEXTS + 5


def test_statistics_refuse_other_values(tmp_path) -> None:
    sink = StatisticsSink(tmp_path / "s.json", ["x"])
    with pytest.raises(DataError, match="statistics are of texts and numbers, this is a bytes"):
        sink.write(done(0, x=b"abc"))
    with pytest.raises(DataError, match="no field 'x'"):
        sink.write(done(0))
    sink.discard()
    assert names(tmp_path) == []


def test_what_no_pipeline_takes_is_counted_apart_also_over_a_resume(tmp_path) -> None:
    found = statistics(tmp_path, ("n",), [done(0, n=1), untaken(1), failed(2), untaken(3)])
    assert (found["records"], found["failed"], found["not_taken"]) == (4, 1, 2)
    first = StatisticsSink(tmp_path / "a.json", ("n",))
    first.write(untaken())
    second = StatisticsSink(tmp_path / "b.json", ("n",))
    second.resume(first.checkpoint())
    second.write(untaken(1))
    second.finish()
    first.discard()
    assert json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))["not_taken"] == 2


def test_what_no_pipeline_takes_is_a_file_of_its_own(tmp_path) -> None:
    sink = FolderSink(tmp_path / "out")
    sink.write(untaken(3))
    sink.finish()
    assert json.loads((tmp_path / "out" / "000003_3.error.json").read_text(encoding="utf-8")) == {
        "index": 3, "origin": "in/3.png", "not_taken": "level 1",
    }  # fmt: skip
