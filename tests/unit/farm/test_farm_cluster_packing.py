# SPDX-License-Identifier: Apache-2.0
"""What travels to a worker is the job: the parts of its key are the same there, wherever its files lay."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nndeploy.build_cache.entry import Blob
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.compiler.cache_key import parts_of
from nndeploy.compiler.outputs import outputs_of
from nndeploy.errors import BusyError, DataError
from nndeploy.farm.cluster.blob_folder import PIECE_BYTES, BlobFolder
from nndeploy.farm.cluster.packed_job import OUTPUT, PackedJob, packed, packed_from_json, unpacked
from nndeploy.farm.job import Job, limits_of
from nndeploy.farm.job_options import given_here

SENDER = "client-1"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that names files of all kinds in several folders: weights, samples, a pipeline's model, a box."""
    here = tmp_path / "mine"
    for folder in ("models/weights", "samples", "pipes", "boxes"):
        (here / folder).mkdir(parents=True)
    weights = numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph([], "g", [], [], [weights])
    model = helper.make_model(graph)
    onnx.save_model(
        model, here / "models/a.onnx", save_as_external_data=True, location="weights/a.bin", size_threshold=0
    )
    (here / "samples/1.npz").write_bytes(b"sample")
    (here / "samples/readme.txt").write_bytes(b"no sample")
    (here / "pipes/labels.txt").write_bytes(b"cat")
    (here / "pipes/p.toml").write_text('labels = "labels.txt"\nother = "../samples/1.npz"\n')
    (here / "boxes/b.toml").write_text('arch = "x86_64"\n')
    given: dict[str, Any] = {
        "samples": str(here / "samples"), "pipeline": str(here / "pipes/p.toml"),
        "decisions": str(here / "new/decisions.json"),
        "targets": ["raspberry-pi-5", f"{here}/boxes/b.toml+onnxruntime"], "num_goldens": 1,
    }  # fmt: skip
    return Job("a/b", "a", "b", "", str(here / "models/a.onnx"), given, {}, str(here / "dist/a.nnd"))


def travelled(job: Job, folder: Path) -> Job:
    """Returns the job as a worker has it, whose folder holds nothing else."""
    one = packed(job, FileDigests())
    blobs = BlobFolder(folder / "blobs", 1 << 30)
    for name, blob in one.files.items():
        blobs.store(blob, SENDER, 0, Path(one.base + name).read_bytes())
    return unpacked(packed_from_json(one.to_json()), blobs.copy, folder)


def test_the_key_has_the_same_parts_on_both_sides(job: Job, tmp_path: Path) -> None:
    def parts(of: Job) -> dict[str, str]:
        return parts_of(Path(of.source), given_here(of.given), limits_of(of), FileDigests())

    there, here = travelled(job, tmp_path / "worker"), parts(job)
    shutil.rmtree(tmp_path / "mine")
    assert parts(there) == here
    assert "external:weights/a.bin" in here
    assert "option:pipeline:0:../samples/1.npz" in here


def test_only_what_the_job_names_travels(job: Job) -> None:
    one = packed(job, FileDigests())
    assert sorted(one.files) == [
        "/boxes/b.toml", "/models/a.onnx", "/models/weights/a.bin", "/pipes/labels.txt", "/pipes/p.toml",
        "/samples/1.npz",
    ]  # fmt: skip
    assert str(one.base) not in str(one.to_json())


def test_what_the_job_makes_is_known_on_both_sides(job: Job, tmp_path: Path) -> None:
    there = travelled(job, tmp_path / "worker")
    assert (outputs_of(there.output, there.given).keys() == outputs_of(job.output, job.given).keys() == {
        "bundle", "decisions"
    })  # fmt: skip
    assert there.output == str(tmp_path / "worker" / OUTPUT)
    assert (there.id, there.limits, there.given["targets"][0]) == (job.id, job.limits, "raspberry-pi-5")


def test_decisions_that_are_there_travel_and_are_not_made(job: Job, tmp_path: Path) -> None:
    Path(job.given["decisions"]).parent.mkdir()
    Path(job.given["decisions"]).write_text("{}")
    there = travelled(job, tmp_path / "worker")
    assert outputs_of(there.output, there.given).keys() == {"bundle"}


@pytest.mark.parametrize("name", ["../x", "/../x", "/a/../../x", "x", "/a\0"])
def test_no_file_leaves_the_tree(name: str, tmp_path: Path) -> None:
    one = PackedJob({"given": {}, "source": "/a"}, "", {name: Blob("a" * 64, 1)})
    with pytest.raises(DataError, match="no path of a tree"):
        unpacked(one, lambda blob, place: None, tmp_path)


class TestBlobs:
    CONTENT = bytes(range(256)) * 8_000
    BLOB = Blob(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))

    def sent(self, blobs: BlobFolder, content: bytes = CONTENT, sender: str = SENDER, size: int = 1 << 19) -> None:
        for offset in range(0, len(content), size):
            blobs.store(self.BLOB, sender, offset, content[offset : offset + size])

    def test_a_file_is_there_when_all_of_it_came(self, tmp_path: Path) -> None:
        blobs = BlobFolder(tmp_path / "blobs", 1 << 30)
        blobs.store(self.BLOB, SENDER, 0, self.CONTENT[:100])
        assert not blobs.has(self.BLOB)
        self.sent(blobs, sender="another")
        assert blobs.has(self.BLOB)
        assert b"".join(blobs.read(self.BLOB, at) for at in range(0, self.BLOB.size, PIECE_BYTES)) == self.CONTENT

    def test_an_empty_file_travels_too(self, tmp_path: Path) -> None:
        blobs, blob = BlobFolder(tmp_path / "blobs", 1 << 30), Blob(hashlib.sha256(b"").hexdigest(), 0)
        blobs.store(blob, SENDER, 0, b"")
        assert blobs.has(blob)

    def test_what_is_cut_off_begins_anew(self, tmp_path: Path) -> None:
        blobs = BlobFolder(tmp_path / "blobs", 1 << 30)
        blobs.store(self.BLOB, SENDER, 0, b"half of another try")
        self.sent(blobs)
        assert blobs.has(self.BLOB)

    def test_what_changed_or_has_a_hole_is_not_taken(self, tmp_path: Path) -> None:
        blobs = BlobFolder(tmp_path / "blobs", 1 << 30)
        with pytest.raises(BusyError, match="changed while it was sent"):
            self.sent(blobs, self.CONTENT[:-1] + b"?")
        with pytest.raises(BusyError, match="piece of a file was lost"):
            blobs.store(self.BLOB, SENDER, 1, self.CONTENT[1:])
        assert list((tmp_path / "blobs").glob(self.BLOB.sha256)) == []

    def test_damage_on_the_disk_of_a_worker_is_found(self, tmp_path: Path) -> None:
        blobs = BlobFolder(tmp_path / "blobs", 1 << 30)
        self.sent(blobs)
        (tmp_path / "blobs" / self.BLOB.sha256).write_bytes(b"?" + self.CONTENT[1:])
        with pytest.raises(BusyError, match="has changed"):
            blobs.copy(self.BLOB, tmp_path / "copy")
        assert not blobs.has(self.BLOB)

    def test_a_name_that_is_no_digest_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no digest"):
            BlobFolder(tmp_path / "blobs", 1 << 30).store(Blob("../x", 1), SENDER, 0, b"x")

    def test_the_oldest_go_where_there_are_too_many_and_what_is_in_use_stays(self, tmp_path, monkeypatch) -> None:
        from nndeploy.farm.cluster import blob_folder

        blobs, found = BlobFolder(tmp_path / "blobs", 250), []
        for number in range(4):
            content = bytes([number]) * 100
            found.append(Blob(hashlib.sha256(content).hexdigest(), 100))
            blobs.store(found[-1], SENDER, 0, content)
        assert [blobs.has(one) for one in found] == [True] * 4, "all of them were used within the hour"
        now = blob_folder.time.time()
        monkeypatch.setattr(blob_folder.time, "time", lambda: now + 7200)
        blobs.store(Blob(hashlib.sha256(b"new").hexdigest(), 3), SENDER, 0, b"new")
        assert sum((tmp_path / "blobs" / one.sha256).exists() for one in found) == 2
