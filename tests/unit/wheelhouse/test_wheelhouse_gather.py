# SPDX-License-Identifier: Apache-2.0
"""`nndeploy wheelhouse`: what it gathers is enough for the box, whole or not there, and a failure is one line.

pip is asked for small made-up wheels, in a folder or behind an index that is one; no network is there.
"""

import hashlib
import importlib.util
import re
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from nndeploy.cli.main import run_command
from nndeploy.version import __version__

ANY, ARM, X86 = "py3-none-any", "py3-none-manylinux_2_17_aarch64", "py3-none-manylinux_2_17_x86_64"
NEEDS = (
    "numpy>=2", 'only-on-312; python_version >= "3.12"', 'only-before-312; python_version < "3.12"',
    'only-on-arm; platform_machine == "aarch64"', 'only-on-windows; sys_platform == "win32"',
    'pillow>=11; extra == "vision"', 'onnxruntime; extra == "cpu"',
)  # fmt: skip


def put(folder: Path, name: str, version: str = "1.0", tag: str = ANY, needs: Sequence[str] = ()) -> Path:
    """Writes a wheel that pip takes and that holds nothing."""
    stem = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {n}" for n in needs)]
    extras = set(re.findall(r'extra == "(\w+)"', " ".join(needs)))
    files = {
        "METADATA": "\n".join([*lines, *(f"Provides-Extra: {extra}" for extra in extras)]) + "\n",
        "WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(f"{stem}.dist-info/{file}", text)
        archive.writestr(f"{stem}.dist-info/RECORD", "".join(f"{stem}.dist-info/{f},,\n" for f in (*files, "RECORD")))
    return path


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Returns a folder with wheels of ours and of others."""
    folder = tmp_path / "shelf"
    for tag in (ARM, X86):
        put(folder, "nndeploy-toolchain", __version__, tag, needs=NEEDS)
    for python in ("cp311-cp311", "cp312-cp312"):
        for arch in ("aarch64", "x86_64"):
            put(folder, "numpy", "2.1", f"{python}-manylinux_2_28_{arch}")
    for name in ("only-on-312", "only-before-312", "only-on-arm", "pillow", "onnxruntime"):
        put(folder, name, "12.0")
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.chdir(tmp_path)


def made(*arguments: str) -> set[str]:
    """Returns the names of the wheels of a box."""
    assert run_command(["wheelhouse", "-o", "box", "--find-links", "shelf", *arguments]) == 0
    return {path.name for path in Path("box").glob("*.whl")}


def failure(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """Returns the one line with which a call fails; nothing stays behind."""
    assert run_command(["wheelhouse", "-o", "box", *arguments]) == code
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert out == ""
    assert not Path("box").exists()
    assert not list(Path().glob(".nndeploy-*"))
    return line


@pytest.mark.parametrize(("box", "arch", "platform", "python"), [
    ("raspberry-pi-5", "aarch64", ARM, "3.11"), ("x86_64", "x86_64", X86, "3.12"),
])  # fmt: skip
def test_wheels_are_those_of_the_box_and_not_of_this_machine(box, arch, platform, python, shelf) -> None:
    tag = f"cp{python.replace('.', '')}"
    own = {f"nndeploy_toolchain-{__version__}-{platform}.whl"}
    version = f"only_{'before' if python == '3.11' else 'on'}_312-12.0-{ANY}.whl"
    arm = {f"only_on_arm-12.0-{ANY}.whl"} if arch == "aarch64" else set()
    numpy = f"numpy-2.1-{tag}-{tag}-manylinux_2_28_{arch}.whl"
    assert made("--for", box, "--python", python) == own | {version, numpy} | arm
    assert_every_wheel_is_listed_with_its_hash()


def test_backends_and_extras_are_added(shelf: Path) -> None:
    more = [word for name in ("vision", "onnxruntime", "native") for word in ("--with", name)]
    found = {wheel.partition("-")[0] for wheel in made("--for", "x86_64", "--python", "3.11", *more)}
    assert found == {"nndeploy_toolchain", "numpy", "only_before_312", "pillow", "onnxruntime"}


def assert_every_wheel_is_listed_with_its_hash() -> None:
    listed = re.findall(
        r"^([\w-]+)==(\S+) \\\n    --hash=sha256:(\w+)$", Path("box/requirements.txt").read_text(), re.M
    )
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("box").glob("*.whl")}
    assert {digest for _, _, digest in listed} == digests
    assert ("nndeploy-toolchain", __version__) in {(name, version) for name, version, _ in listed}


def test_our_wheels_come_from_the_folder_before_the_index(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wheel in shelf.glob("nndeploy_toolchain*aarch64.whl"):
        stranger = put(Path("index/nndeploy-toolchain"), "nndeploy-toolchain", __version__, ARM, needs=["stranger"])
        (stranger.parent / "index.html").write_text(f'<a href="{stranger.name}">{stranger.name}</a>')
        assert stranger.read_bytes() != wheel.read_bytes()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", Path("index").absolute().as_uri())
    made("--for", "aarch64")
    name = f"nndeploy_toolchain-{__version__}-{ARM}.whl"
    assert Path("box", name).read_bytes() == (shelf / name).read_bytes()


def test_our_wheels_come_from_the_index_where_no_folder_has_them(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wheel in [*shelf.glob("nndeploy_*.whl")]:
        project = Path("index", wheel.name.partition("-")[0].replace("_", "-"))
        project.mkdir(exist_ok=True, parents=True)
        wheel.rename(project / wheel.name)
        (project / "index.html").write_text("".join(f'<a href="{w.name}">w</a>' for w in project.glob("*.whl")))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", Path("index").absolute().as_uri())
    assert f"nndeploy_toolchain-{__version__}-{X86}.whl" in made("--for", "x86_64")


@pytest.mark.parametrize(("spoil", "more", "says"), [
    (Path.unlink, (), ["Could not find a version that satisfies the requirement numpy>=2"]),
    (lambda wheel: wheel.write_bytes(b"no archive"), (), []),
    (Path.exists, ("--glibc", "2.27"), ["aarch64 with glibc 2.27 or later", "another --glibc"]),
], ids=["not there", "no wheel", "an older system"])  # fmt: skip
def test_what_pip_cannot_get_or_read_is_one_line(shelf, capsys, spoil, more, says) -> None:
    for wheel in shelf.glob("numpy*"):
        spoil(wheel)
    line = failure(capsys, 69, "--for", "aarch64", "--find-links", "shelf", *more)
    assert all(part in line for part in says)


def test_missing_wheels_of_ours_say_how_they_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert "`make wheel`" in failure(capsys, 69, "--for", "aarch64", "--find-links", "empty")


@pytest.mark.parametrize(("arguments", "code", "says"), [
    (["--for", "aarch63"], 2, "an architecture: aarch64, x86_64"),
    (["--for", "none.toml"], 66, "none.toml"),
    (["--for", "aarch64", "--python", "3.10"], 2, "needs Python 3.11"),
    (["--for", "aarch64", "--python", "2.7"], 2, "--python takes a version such as 3.11"),
    (["--for", "aarch64", "--glibc", "two"], 2, "--glibc takes a version such as 2.28"),
    (["--for", "aarch64", "--with", "onnxruntim"], 2, "did you mean 'onnxruntime'"),
    (["--for", "aarch64", "-o", "nowhere/box"], 73, "there is no folder 'nowhere'"),
])  # fmt: skip
def test_what_has_no_meaning_ends_before_pip_is_asked(arguments, code, says, capsys, monkeypatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    assert says in failure(capsys, code, *arguments)


def test_a_folder_that_holds_something_is_left_alone(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("box").mkdir()
    Path("box/mine").touch()
    assert run_command(["wheelhouse", "-o", "box", "--for", "aarch64", "--find-links", "shelf"]) == 73
    assert [path.name for path in Path("box").iterdir()] == ["mine"]


@pytest.mark.parametrize(("module", "says"), [("pip", "-m ensurepip"), ("packaging", "nndeploy-toolchain[compile]")])
def test_a_python_without_what_it_needs_is_one_line(module, says, capsys, monkeypatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else real(name))
    assert says in failure(capsys, 69, "--for", "aarch64")
