# SPDX-License-Identifier: Apache-2.0
"""Makes build/gpu-check: an environment over this interpreter's packages, with carried wheels and this checkout first.

    python3 tests/gpu/environment.py [--wheels FOLDER]

For a machine without internet on which somebody else's Python has torch: nothing of that Python is changed. What is in
FOLDER (whole wheels, and the parts that carry.sh made of large ones) is installed into the new environment and stands
before what the machine has. nndeploy is not built: a .pth file names the checkout, and a dist-info gives its entry
points, so that backends are found. Needs the standard library and pip, nothing else.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "gpu-check"
PART = ".part-"


def main() -> int:
    """Makes the environment and prints how to use it."""
    parser = argparse.ArgumentParser(description="an environment for `make gpu-check`")
    parser.add_argument("--wheels", type=Path, help="a folder with wheels, or with carry.sh's parts of them")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: build/gpu-check")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    venv.create(options.folder, symlinks=True, with_pip=False)
    packages = packages_of(options.folder)
    write_paths(packages)
    write_entry_points(packages)
    if options.wheels:
        wheels = joined_wheels(options.wheels, options.folder / "wheels")
        install(options.folder, wheels)
        print(f"{len(wheels)} wheels are installed")
        link_libraries(packages, machine_packages())
    python = options.folder / "bin" / "python"
    print(f"make gpu-check takes {os.path.relpath(python)}")
    return 0


def packages_of(folder: Path) -> Path:
    """Returns the site-packages of a virtual environment."""
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder), "platbase": str(folder)}))


def write_paths(packages: Path) -> None:
    """Puts the checkout, then the packages of this interpreter, behind the environment's own."""
    lines = [ROOT, ROOT / "backends", *machine_packages()]
    (packages / "gpu_check.pth").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def machine_packages() -> list[Path]:
    """Returns the folders of installed packages that this interpreter looks into, in its order."""
    return [Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def link_libraries(packages: Path, machine: list[Path]) -> None:
    """Links the machine's CUDA libraries beside the carried ones.

    NVIDIA's wheels look for each other in the folder of the one that asks: a carried cuDNN would not find the
    machine's cuBLAS.
    """
    carried = packages / "nvidia"
    for folder in [path / "nvidia" for path in machine if carried.is_dir() and path != packages]:
        for library in folder.glob("*/lib/*.so*"):
            link = carried / library.relative_to(folder)
            if library.parts[-3] != "cudnn" and not link.exists():  # two versions of cuDNN's parts do not mix
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(library)


def write_entry_points(packages: Path) -> None:
    """Describes the checkout as an installed distribution, from its pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = packages / f"{project['name'].replace('-', '_')}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n", encoding="utf-8")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [line for name, points in groups.items() for line in (f"[{name}]", *map(" = ".join, points.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def joined_wheels(source: Path, target: Path) -> list[Path]:
    """Returns the wheels of a folder and its subfolders; those that lie there in parts are put together in `target`."""
    files = sorted(path for path in source.rglob("*") if path.is_file())
    whole = [path for path in files if path.suffix == ".whl"]
    parts: dict[str, list[Path]] = {}
    for path in files:
        if PART in path.name:
            parts.setdefault(path.name.rpartition(PART)[0], []).append(path)
    target.mkdir()
    for name, pieces in parts.items():
        with (target / name).open("wb") as wheel:
            for piece in sorted(pieces, key=lambda piece: piece.name):
                wheel.write(piece.read_bytes())
        whole.append(target / name)
    return whole


def install(folder: Path, wheels: list[Path]) -> None:
    """Installs wheels as they are; what they need beside them is the machine's."""
    python = str(folder / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--ignore-installed", *map(str, wheels)], check=True)
    shutil.rmtree(folder / "wheels", ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
