# SPDX-License-Identifier: Apache-2.0
"""Distributions built offline by hatchling, and environments that hold nothing but what is put into them."""

import email
import os
import platform
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import distribution, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def built(kind: str, source: Path, folder: Path, **variables: str) -> Path:
    """Returns the one file that hatchling builds of `kind` ("wheel", "sdist") from the tree `source`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    return file


def base_needs(wheel: Path) -> set[str]:
    """Returns the distributions that a wheel needs without any extra, and those that these need."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(name))
    found: set[str] = set()
    waiting = _without_extras(metadata.get_all("Requires-Dist") or ())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _without_extras(requires(name) or ())
    return found


def _without_extras(needs: Iterable[str]) -> list[str]:
    parsed = [Requirement(text) for text in needs]
    return [canonicalize_name(one.name) for one in parsed if not one.marker or one.marker.evaluate({"extra": ""})]


def clean_environment(folder: Path, wheels: Sequence[Path], packages: Iterable[str]) -> Path:
    """Returns the Python of a new environment with wheels and those packages of this one; nothing else is imported."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        found = distribution(package)
        for name in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            (site / name).symlink_to(str(found.locate_file(name)))
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    if wheels:
        subprocess.run([*pip, *map(str, wheels)], check=True)
    return python


def wheel_again(package: str, folder: Path) -> Path:
    """Returns a wheel made of the files of a distribution that is installed here, as it was installed from one."""
    found = distribution(package)
    tags = email.message_from_string(found.read_text("WHEEL") or "").get_all("Tag") or ()
    python, abi, _ = tags[0].split("-")
    platforms = ".".join(dict.fromkeys(tag.rpartition("-")[2] for tag in tags))
    stem = f"{canonicalize_name(package).replace('-', '_')}-{found.version}"
    path = folder / f"{stem}-{python}-{abi}-{platforms}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in found.files or ():
            if file.parts[0] != ".." and file.suffix != ".pyc":
                archive.write(str(found.locate_file(file)), str(file))
    return path


def wheelhouse_of_this_machine(folder: Path) -> Path:
    """Returns a wheelhouse in a folder, of our wheel as it is built and the others as they are installed here."""
    wheel = built("wheel", ROOT, folder / "dist")
    for package in base_needs(wheel):
        wheel_again(package, folder / "dist")
    words = ["--for", platform.machine(), "--glibc", platform.libc_ver()[1], "--find-links", "dist", "-o", "house"]
    command = [sys.executable, "-m", "nndeploy", "wheelhouse", *words]
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, cwd=folder, env=offline, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sh house/install.sh /opt/nndeploy" in done.stdout
    return folder / "house"
