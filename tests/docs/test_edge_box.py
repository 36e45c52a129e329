# SPDX-License-Identifier: Apache-2.0
"""The packages that docs/guide/edge-box.md installs are enough for what it says a box does with them."""

import importlib.util
import re
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "edge-box.md").read_text()
OURS = "nndeploy-toolchain"


def installed_by_the_page() -> set[str]:
    """Returns the distributions that the page installs, with what they need."""
    (line,) = re.findall(r"^pip install ((?:[a-z-]+ ?)+)$", PAGE.replace("--no-deps", ""), re.MULTILINE)
    found, waiting = set(), line.split()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [re.split(r"[ <>=!~;\[(]", text)[0] for text in requires(name) or [] if "extra ==" not in text]
    return found


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with those packages and the tree, and nothing else."""
    folder = tmp_path_factory.mktemp("packages")
    names = installed_by_the_page()
    for module, distributions in packages_distributions().items():
        if names & {name.lower() for name in distributions} and (spec := importlib.util.find_spec(module)):
            place = Path(spec.submodule_search_locations[0] if spec.submodule_search_locations else spec.origin or "")
            (folder / place.name).symlink_to(place)
            shared = place.with_name(f"{module}.libs")  # shared objects that a wheel brings
            if shared.exists():
                (folder / shared.name).symlink_to(shared)
    for package in (ROOT / "nndeploy", *(ROOT / "backends").iterdir()):
        (folder / package.name).symlink_to(package)
    entries = distribution(OURS).read_text("entry_points.txt")
    metadata = folder / f"{OURS.replace('-', '_')}-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {OURS}\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(entries or "")
    return folder


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import nndeploy

    path = tmp_path_factory.mktemp("bundle") / "digits.nnd"
    options = nndeploy.CompileOptions(
        backends=("native",), objective="priority", shapes={"image": (1, 1, 8, 8)}, keep_fallback=False
    )
    nndeploy.compile_model(ROOT / "examples" / "digits" / "digits.onnx", path, options)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "BUNDLE", "--input", str(ROOT / "examples" / "digits" / "lines.jsonl"), "--output", "-"],
        ["verify", "BUNDLE"],
        ["inspect", "BUNDLE", "--here"],
        ["probe"],
        ["backends"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_box_with_these_packages_alone_does_it(arguments: list[str], packages: Path, bundle: Path) -> None:
    given = [str(bundle) if word == "BUNDLE" else word for word in arguments]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "nndeploy", *given],
        env={"PYTHONPATH": str(packages)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_page_installs_no_compiler() -> None:
    assert not {"onnx", "onnx-ir", "ziglang", "onnxruntime"} & installed_by_the_page()
