# SPDX-License-Identifier: Apache-2.0
"""Reading a bundle: nothing is handed out unchecked or changes later, and what is no bundle is one clear error."""

import gc
import hashlib
import mmap
import os
import subprocess
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nndeploy.bundle import private_copy, reader
from nndeploy.bundle.container import directory, encode_container, entry_at, local_header
from nndeploy.bundle.manifest import Manifest, Member
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.errors import BundleError, InputOutputError, MissingInputError, UsageError

TAIL = "submodels/tail/portable/model.onnx"
GOLDEN = "goldens/0/inputs.safetensors"
GIB = 1 << 30


def forged(manifest: Manifest, contents: dict[str, bytes]) -> bytes:
    """A container with these members and this manifest, whether or not they fit."""
    return b"".join(encode_container({**contents, "manifest.json": encode_manifest(manifest)}))


def listed(contents: dict[str, bytes]) -> dict[str, Member]:
    return {name: Member(hashlib.sha256(data).hexdigest(), len(data)) for name, data in contents.items()}


BARE = Manifest("m", "0" * 64, (), (), (), {})
REPORT = {"report.json": b"{}"}


def bare(contents: dict[str, bytes]) -> bytes:
    """A bundle with nothing but these members, all listed as they are."""
    return forged(replace(BARE, members=listed(contents)), contents)


def opened(data: bytes) -> Bundle:
    return Bundle(data, Path("x.nnd"))


def test_hands_out_what_was_packed(bundle_path: Path, manifest: Manifest, members: dict[str, bytes]) -> None:
    with open_bundle(bundle_path) as bundle:
        assert bundle.path == bundle_path
        assert bundle.size_bytes == bundle_path.stat().st_size
        assert replace(bundle.manifest, members={}) == manifest
        assert {name: bytes(bundle.member(name)) for name in members} == members
        assert bundle.report() == {"model": "digits"}
        values = bundle.values(GOLDEN)
        assert values["mask"] is None
        assert np.array_equal(values["image/:0"], np.ones((1, 3, 8, 8), np.float32))


def test_members_are_views_of_one_copy_that_cannot_be_written(bundle_path: Path) -> None:
    with open_bundle(bundle_path) as bundle:
        view = bundle.member("submodels/head/portable/model.onnx")
        array = bundle.values(GOLDEN)["image/:0"]
    assert view.readonly
    assert isinstance(view.obj, mmap.mmap)
    assert not array.flags.writeable
    assert array.__array_interface__["data"][0] % 64 == 0


def test_views_and_arrays_outlive_the_bundle(bundle_path: Path, members: dict[str, bytes]) -> None:
    with open_bundle(bundle_path) as bundle:
        view, array = bundle.member(TAIL), bundle.values(GOLDEN)["image/:0"]
    del bundle
    bundle_path.unlink()
    gc.collect()
    assert bytes(view) == members[TAIL]
    assert array.sum() == 3 * 64


def test_the_memory_is_let_go_when_the_last_view_is_gone(bundle_path: Path) -> None:
    bundle = open_bundle(bundle_path)
    view = bundle.member(TAIL)
    mapping = weakref.ref(view.obj)
    bundle.close()
    assert mapping() is not None
    view.release()
    del view
    assert mapping() is None


def num_open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_file_stays_open(bundle_path: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.nnd").write_bytes(b"PK")
    before = num_open_files()
    for _ in range(3):
        open_bundle(bundle_path).close()
        with pytest.raises(BundleError):
            open_bundle(tmp_path / "bad.nnd")
        with pytest.raises(BundleError):
            open_bundle(tmp_path)
    assert num_open_files() == before


def test_a_closed_bundle_refuses(bundle_path: Path) -> None:
    bundle = open_bundle(bundle_path)
    bundle.close()
    bundle.close()
    for use in (lambda: bundle.member(TAIL), bundle.report, bundle.verify, lambda: bundle.values(GOLDEN)):
        with pytest.raises(UsageError, match="the bundle is closed"):
            use()


def test_an_unknown_member_is_refused_with_the_nearest_name(bundle_path: Path) -> None:
    with open_bundle(bundle_path) as bundle:
        with pytest.raises(
            UsageError, match=r"no member 'goldens/0/input\.safetensors'.*did you mean 'goldens/0/inputs"
        ):
            bundle.member("goldens/0/input.safetensors")
        for name in ("manifest.json", "signature"):
            with pytest.raises(UsageError, match="there is no member"):
                bundle.member(name)


def counting(monkeypatch: pytest.MonkeyPatch, seconds: float = 0) -> list[int]:
    """A list that grows by one with each hash that the reader computes; each takes `seconds`."""
    calls: list[int] = []
    real = hashlib.sha256

    class Hash:
        def __init__(self, data: bytes | memoryview = b"") -> None:
            calls.append(len(data))
            time.sleep(seconds)
            self._hash = real(data)

        def update(self, data: memoryview) -> None:
            calls[-1] += len(data)
            self._hash.update(data)

        def hexdigest(self) -> str:
            return self._hash.hexdigest()

    class Hashes:
        sha256 = Hash

    monkeypatch.setattr(private_copy, "hashlib", Hashes)
    return calls


def test_a_member_is_hashed_once_and_before_it_is_handed_out(bundle_path, monkeypatch) -> None:
    calls = counting(monkeypatch)
    with open_bundle(bundle_path) as bundle:
        assert calls == []
        for _ in range(3):
            bundle.member(TAIL)
        assert calls == [4]
        bundle.verify()
        assert len(calls) == 2 + len(bundle.manifest.members)  # that of the manifest comes along


def test_many_threads_may_ask_for_one_member(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counting(monkeypatch, seconds=0.05)
    barrier = threading.Barrier(8)
    with open_bundle(bundle_path) as bundle, ThreadPoolExecutor(8) as pool:

        def ask(_: int) -> bytes:
            barrier.wait()
            return bytes(bundle.member(TAIL))

        assert set(pool.map(ask, range(8))) == {b"tail"}
    assert calls == [4]


def damaged(path: Path, name: str) -> Bundle:
    """The bundle at `path` with the last byte of one member changed."""
    data = bytearray(path.read_bytes())
    entry = Bundle(bytes(data), path)._entries[name]
    data[entry.end - 1] ^= 1
    return Bundle(bytes(data), path)


def test_a_damaged_member_is_never_handed_out(bundle_path: Path) -> None:
    bundle = damaged(bundle_path, TAIL)
    for _ in range(2):
        with pytest.raises(BundleError, match="damaged: its SHA-256 is") as caught:
            bundle.member(TAIL)
        assert caught.value.where == f"{bundle_path}: {TAIL}"
    with pytest.raises(BundleError, match="damaged"):
        bundle.verify()
    assert bytes(bundle.member("weights/shared.bin")) == b""


def test_damaged_values_and_a_damaged_report_are_refused(bundle_path: Path) -> None:
    with pytest.raises(BundleError, match="damaged"):
        damaged(bundle_path, GOLDEN).values(GOLDEN)
    with pytest.raises(BundleError, match="damaged"):
        damaged(bundle_path, "report.json").report()


def test_a_damaged_manifest_is_refused_when_it_is_opened(bundle_path: Path) -> None:
    with pytest.raises(BundleError, match=r"manifest\.json: damaged: its CRC-32"):
        damaged(bundle_path, "manifest.json")


def test_verify_also_checks_the_crc_that_other_tools_use() -> None:
    contents = {**REPORT, "w": b"data"}
    members = {**contents, "manifest.json": encode_manifest(replace(BARE, members=listed(contents)))}
    entries, data, position = [], b"", 0
    for name in sorted(members):
        entry = entry_at(position, name, len(members[name]), zlib.crc32(members[name]) ^ (name == "w"))
        data += local_header(entry) + members[name]
        entries.append(entry)
        position = entry.end
    bundle = opened(data + directory(entries))
    assert bytes(bundle.member("w")) == b"data"
    with pytest.raises(BundleError, match=r"x\.nnd: w: damaged: its CRC-32 is not that of its data"):
        bundle.verify()


def test_values_that_are_none_are_refused_with_their_place() -> None:
    with pytest.raises(BundleError, match=r"x\.nnd: w: 4 bytes are too few for values"):
        opened(bare({**REPORT, "w": b"none"})).values("w")


@pytest.mark.parametrize(("report", "message"), [
    (b"[]", "the report is no object"), (b"{", "not JSON"), (b'{"a":1,"a":2}', "twice"), (b"[" * 99999, "deeper")
], ids=["list", "cut", "repeated key", "deep"])  # fmt: skip
def test_a_report_that_is_no_plain_object_is_refused(report: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=f"x.nnd: report.json: .*{message}"):
        opened(bare({"report.json": report})).report()


def test_a_report_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_REPORT_BYTES", 1)
    with pytest.raises(BundleError, match="2 bytes of JSON; at most 1"):
        opened(bare(REPORT)).report()


NEWER = b'{"format":{"major":2,"minor":0,"name":"nndeploy-bundle"}}'


@pytest.mark.parametrize(("data", "message"), [
    (forged(replace(BARE, members=listed(REPORT)), {**REPORT, "extra": b""}), "does not list the member 'extra'"),
    (forged(replace(BARE, members=listed({**REPORT, "lost": b""})), REPORT), "'lost', which the manifest lists"),
    (b"".join(encode_container(REPORT)), r"has no manifest\.json"),
    (forged(BARE, {}), r"x\.nnd: manifest\.json: members: the member 'report\.json' is missing"),
    (b"".join(encode_container({"manifest.json": NEWER})), r"made by a newer nndeploy \(format 2\).*hint: upgrade"),
], ids=["not listed", "missing", "no manifest", "does not fit", "newer"])  # fmt: skip
def test_a_container_that_its_manifest_does_not_tell_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        opened(data)


def test_a_member_of_another_size_is_refused_before_it_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counting(monkeypatch)
    with pytest.raises(BundleError, match=r"report\.json: 2 bytes, the manifest lists 3"):
        opened(forged(replace(BARE, members=listed({"report.json": b"{ }"})), REPORT))
    assert calls == []


def test_a_signature_is_let_pass_and_its_bytes_are_checked() -> None:
    data = forged(replace(BARE, members=listed(REPORT)), {**REPORT, "signature": b"later"})
    opened(data).verify()
    position = data.index(b"later")
    with pytest.raises(BundleError, match="signature: damaged"):
        opened(data[:position] + b"L" + data[position + 1 :]).verify()


def test_a_signature_that_is_too_large_is_refused() -> None:
    manifest = replace(BARE, members=listed(REPORT))
    opened(forged(manifest, {**REPORT, "signature": bytes(4 << 20)}))
    with pytest.raises(BundleError, match="signature: 4194305 bytes; at most 4194304"):
        opened(forged(manifest, {**REPORT, "signature": bytes((4 << 20) + 1)}))


def make(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def make_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


NO_BUNDLES: list[tuple[Callable[[Path], Path], type[Exception], str]] = [
    (lambda tmp: tmp / "missing.nnd", MissingInputError, "missing.nnd: no such bundle"),
    (lambda tmp: make(tmp / "file", b"") / "x.nnd", MissingInputError, "no such bundle"),
    (lambda tmp: tmp / "x\0.nnd", MissingInputError, "no such bundle"),
    (lambda tmp: tmp / ("x" * 300), MissingInputError, "cannot be read: File name too long"),
    (lambda tmp: tmp, BundleError, "is a folder, not a bundle"),
    (lambda tmp: make_pipe(tmp / "pipe.nnd"), BundleError, "is not a regular file"),
    (lambda tmp: Path("/dev/null"), BundleError, "is not a regular file"),
    (lambda tmp: make(tmp / "empty.nnd", b""), BundleError, "the file is empty"),
    (lambda tmp: make(tmp / "text.nnd", b"hello"), BundleError, "does not begin like one.*nndeploy compile makes"),
    (
        lambda tmp: make(tmp / "m.onnx", b"\x08\x08\x12\x04"),
        BundleError,
        r"m\.onnx: not a bundle.*hint: compile it first: nndeploy compile .*m\.onnx -o .*m\.nnd",
    ),
]


@pytest.mark.parametrize(("make_path", "error", "message"), NO_BUNDLES, ids=[message for _, _, message in NO_BUNDLES])
def test_what_is_no_bundle_is_one_clear_error(tmp_path, make_path, error, message) -> None:
    with pytest.raises(error, match=message):
        open_bundle(make_path(tmp_path))


def test_a_file_for_which_there_is_no_memory_is_one_clear_error(bundle_path, monkeypatch) -> None:
    def refuse(*args: object, **kwargs: object) -> mmap.mmap:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(InputOutputError, match="there is no memory for"):
        open_bundle(bundle_path)


@pytest.mark.slow
def test_the_last_byte_of_a_member_past_32_bits_counts(tmp_path: Path) -> None:
    """Source: RAUC CVE-2026-34155, where a size cut to 32 bits left the rest of a bundle unhashed."""
    size = 4 * GIB + 1
    zeros = "fbb82f7b353676bb562eb82157fcf0ea42c36492ca13ee56dbf82c08b6802c5c"  # SHA-256 of so many
    listing = {"aa-large": Member(zeros, size), **listed(REPORT)}
    rest = {**REPORT, "manifest.json": encode_manifest(replace(BARE, members=listing))}
    path = tmp_path / "large.nnd"
    entries = [entry_at(0, "aa-large", size, 0)]
    with path.open("wb") as file:
        file.write(local_header(entries[0]))
        for name in sorted(rest):
            entries.append(entry_at(entries[-1].end, name, len(rest[name]), zlib.crc32(rest[name])))
            file.seek(entries[-1].header)
            file.write(local_header(entries[-1]) + rest[name])
        file.write(directory(entries))
    with open_bundle(path) as bundle:
        assert len(bundle.member("aa-large")) == size
    with path.open("r+b") as file:
        file.seek(entries[0].end - 1)
        file.write(b"\1")
    with open_bundle(path) as bundle, pytest.raises(BundleError, match="damaged"):
        bundle.member("aa-large")


LARGE = 3 << 20


def write_large(path: Path) -> tuple[bytes, int]:
    """Writes a bundle with a member of several pieces; returns that member and where it begins."""
    large = np.random.default_rng(0).integers(0, 256, LARGE, np.uint8).tobytes()
    data = bare({**REPORT, "w": large})
    path.write_bytes(data)
    return large, data.index(large)


def test_what_was_handed_out_stays_as_it_was_whatever_happens_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.nnd"
    large, begin = write_large(path)
    with open_bundle(path) as bundle:
        view = bundle.member("w")
        assert view.obj is not None
        with path.open("r+b") as file:
            file.seek(begin)
            file.write(bytes(LARGE))
        assert view == large
        with pytest.raises(BundleError, match=r"x\.nnd: w: damaged"):
            bundle.verify()
        os.truncate(path, 0)
        assert view == large
        assert bundle.member("w") == large
        with pytest.raises(InputOutputError, match=r"x\.nnd: the file was cut short while it was in use"):
            bundle.verify()


def test_a_member_that_changed_before_it_was_asked_for_is_never_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "x.nnd"
    _, begin = write_large(path)
    with open_bundle(path) as bundle:
        with path.open("r+b") as file:
            file.seek(begin + LARGE - 1)
            file.write(b"\0")
        for _ in range(2):
            with pytest.raises(BundleError, match=r"x\.nnd: w: damaged"):
                bundle.member("w")
        os.truncate(path, begin + 1)
        with pytest.raises(InputOutputError, match="cut short"):
            bundle.member("w")


def test_another_file_under_the_same_name_does_not_count(tmp_path: Path) -> None:
    path, other = tmp_path / "x.nnd", tmp_path / "y.nnd"
    large, _ = write_large(path)
    other.write_bytes(bare({**REPORT, "w": b"other"}))
    with open_bundle(path) as bundle:
        other.replace(path)
        assert bundle.member("w") == large


def test_data_of_members_are_not_read_before_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.nnd"
    write_large(path)
    read: list[int] = []

    class Counted(private_copy.PrivateCopy):
        def _read(self, target: memoryview, begin: int) -> int:
            read.append(super()._read(target, begin))
            return read[-1]

    bundle = Bundle(Counted(path, "bundle"), path)
    assert sum(read) < 128 << 10
    bundle.member("w")
    bundle.member("w")
    assert LARGE <= sum(read) < LARGE + (128 << 10)
    bundle.close()


def test_the_reader_loads_nothing_of_the_compile_half() -> None:
    script = "import sys, nndeploy.bundle.reader; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert not roots & {"onnx", "onnx_ir", "onnxruntime", "openvino", "rich", "click", "safetensors", "ml_dtypes"}


@pytest.mark.parametrize("least", [1, 1 << 40], ids=["read ahead", "read and hashed in turn"])
def test_what_is_taken_is_the_callers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr(private_copy, "_READ_AHEAD_FROM", least)
    path = tmp_path / "x.nnd"
    large, begin = write_large(path)
    with open_bundle(path) as bundle:
        taken = bundle.taken("w")
        assert taken == large
        taken[:10] = bytes(10)
        assert bundle.taken("w") == large == bundle.member("w")
        with path.open("r+b") as file:
            file.seek(begin + LARGE - 1)
            file.write(b"\0")
        with pytest.raises(BundleError, match=r"x\.nnd: w: damaged"):
            bundle.taken("w")
        os.truncate(path, begin + LARGE // 2)
        with pytest.raises(InputOutputError, match="cut short"):
            bundle.taken("w")
    with pytest.raises(UsageError, match="closed"):
        bundle.taken("w")
    assert taken[10:] == large[10:]
