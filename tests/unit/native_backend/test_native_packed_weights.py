# SPDX-License-Identifier: Apache-2.0
"""Packed weights in a file of the cache: later openings read no weights and give the same bits, or it is not taken."""

import errno
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from bundled_files import Files
from native_models import Array, built, model_of, reals
from nndeploy_native import packed_weights as module
from nndeploy_native.kernel_library import kernel_library
from nndeploy_native.opened_model import OpenedModel, Options
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.probe import probe
from nndeploy_native.session import open_session

from nndeploy.errors import BundleError, InputOutputError
from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import host_target

TEXT = """g (float[n,512] x, int64[n] at) => (float[n,300] y, float[n,300] rows) {
  a = MatMul(x, w) b = Add(a, c) y = MatMul(b, v) rows = Gather(table, at) }"""
SIZES = {"w": (512, 600), "c": (600,), "v": (600, 300), "table": (400, 300)}
X, AT = reals(3, 512, seed=9), np.array([0, 7, 399])


def artifact_of(seed: int) -> Artifact:
    return built(model_of(TEXT, {name: reals(*sizes, seed=seed) for name, sizes in SIZES.items()}))


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    if not (found := probe(host_target())).can_run:
        pytest.skip(found.reason)
    return artifact_of(1)


def outputs(artifact: Artifact, folder: Path | None, threads: int = 1) -> tuple[dict[str, Array], bool]:
    """Returns what a session gives, with packed weights in a folder, and whether it read the weights."""
    files = Files(artifact.files)
    how = OpenOptions(threads=threads, cache_dir=str(folder or ""), shares_weights=folder is not None)
    with closing(open_session(files, artifact.metadata, how)) as session:
        found = {name: np.asarray(value) for name, value in session.run({"x": X, "at": AT}).items()}
    return found, "weights.bin" in files.read


def the_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one) and one.keys() == other.keys()


def test_later_openings_read_no_weights_and_give_the_same_bits(artifact: Artifact, tmp_path: Path) -> None:
    wanted, _ = outputs(artifact, None)
    first, read_first = outputs(artifact, tmp_path)
    later, read_later = outputs(artifact, tmp_path, threads=2)
    assert (read_first, read_later) == (True, False)
    assert same(first, wanted)
    assert same(later, wanted)


def test_the_file_is_as_large_on_disk_as_the_weights_are_packed(artifact: Artifact, tmp_path: Path) -> None:
    outputs(artifact, tmp_path)
    kept, packed = the_file(tmp_path).stat(), 4 * (512 * 608 + 600 * 304)
    assert kept.st_size > packed + 4 * 400 * 300
    assert kept.st_blocks * 512 < packed + 4 * 400 * 300 + (4 << 16)  # what was packed is a hole but for its ends


def test_processes_map_one_file(artifact: Artifact, tmp_path: Path) -> None:
    outputs(artifact, tmp_path)
    files = Files(artifact.files)
    how = OpenOptions(threads=1, cache_dir=str(tmp_path), shares_weights=True)
    with closing(open_session(files, artifact.metadata, how)):
        assert str(the_file(tmp_path)) in Path("/proc/self/maps").read_text()


def test_ways_that_are_tried_leave_no_file(artifact: Artifact, tmp_path: Path) -> None:
    how = OpenOptions(threads=1, cache_dir=str(tmp_path), shares_weights=True)
    with closing(open_session(Files(artifact.files), artifact.metadata, how)) as session:
        assert isinstance(session, PlanSession)
        before = the_file(tmp_path).stat().st_ino
        session._opened(bytes([1, 1, 1]))
        assert the_file(tmp_path).stat().st_ino == before


@pytest.mark.parametrize(
    "other",
    [
        lambda monkeypatch: monkeypatch.setattr(module, "_processor", lambda: "another processor"),
        lambda monkeypatch: monkeypatch.setattr(module, "_library_sha256", lambda _: b"another library"),
    ],
)
def test_another_machine_packs_its_own(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Callable[[pytest.MonkeyPatch], None]
) -> None:
    outputs(artifact, tmp_path)
    before = the_file(tmp_path).stat().st_ino
    other(monkeypatch)
    assert outputs(artifact, tmp_path)[1]
    assert the_file(tmp_path).stat().st_ino != before
    assert not outputs(artifact, tmp_path)[1]


def test_other_weights_of_the_same_plan_are_packed_anew(artifact: Artifact, tmp_path: Path) -> None:
    other = artifact_of(2)
    assert other.files["plan.bin"] == artifact.files["plan.bin"]
    outputs(artifact, tmp_path)
    found, has_read = outputs(other, tmp_path)
    assert has_read
    assert same(found, outputs(other, None)[0])


def test_a_file_that_others_could_have_written_is_not_taken(artifact: Artifact, tmp_path: Path) -> None:
    outputs(artifact, tmp_path)
    the_file(tmp_path).chmod(0o666)
    assert outputs(artifact, tmp_path)[1]


def test_a_damaged_file_is_not_taken_or_gives_numbers(artifact: Artifact, tmp_path: Path) -> None:
    wanted, _ = outputs(artifact, tmp_path)
    path, numbers = the_file(tmp_path), np.random.default_rng(4)
    whole = path.read_bytes()
    for turn in range(60):
        data = bytearray(whole)
        if turn % 3 == 0:
            del data[numbers.integers(len(data)) :]
        elif turn % 3 == 1:
            data[numbers.integers(64)] ^= 1 << int(numbers.integers(8))
        else:
            data[numbers.integers(4096, len(data))] ^= 1 << int(numbers.integers(8))
        path.write_bytes(data)
        found, has_read = outputs(artifact, tmp_path)
        assert {name: one.shape for name, one in found.items()} == {name: one.shape for name, one in wanted.items()}
        if turn % 3 < 2:
            assert has_read
            assert same(found, wanted)


def test_a_folder_that_cannot_be_written_fails(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputOutputError, match="--cache"):
        outputs(artifact, tmp_path / "file")


def test_a_full_disk_fails_and_leaves_nothing(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputOutputError):
        outputs(artifact, tmp_path)
    assert not list(tmp_path.iterdir())


def test_weights_that_are_too_small_to_be_packed_late_leave_no_file(tmp_path: Path) -> None:
    small = built(model_of("g (float[2,8] x) => (float[2,8] y) { y = MatMul(x, w) }", {"w": reals(8, 8, seed=1)}))
    how = OpenOptions(threads=1, cache_dir=str(tmp_path), shares_weights=True)
    open_session(Files(small.files), small.metadata, how).close()
    assert not list(tmp_path.iterdir())


def test_an_image_of_another_size_is_refused_by_the_library(artifact: Artifact, tmp_path: Path) -> None:
    weights = memoryview(bytearray(artifact.files["weights.bin"]))
    with pytest.raises(BundleError):
        OpenedModel(
            kernel_library("fp32"), bytes(artifact.files["plan.bin"]), weights, Options(0, 0, 1, image_is_packed=1),
            np.zeros(1 << 12, np.uint8),
        )  # fmt: skip
