# SPDX-License-Identifier: Apache-2.0
"""`requirements.lock` pins what `make setup` installs: exact versions with hashes, and nothing of any machine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = re.compile(r"([a-z0-9][a-z0-9-]*)==([0-9][0-9a-z.]*)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)")
EXTRAS_INSTALLED = (
    "cpu",
    "openvino",
    "tensorrt-rtx",
    "cudnn",
    "triton",
    "native",
    "vision",
    "video",
    "loadgen",
    "pacing",
    "dev",
)


def pinned_versions() -> dict[str, str]:
    return {name: version for name, version, _ in PINNED.findall(LOCK)}


def wanted() -> list[Requirement]:
    """Returns what pyproject.toml asks for and `make setup` installs."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    texts = [*project["dependencies"], *pyproject["build-system"]["requires"]]
    for extra in EXTRAS_INSTALLED:
        texts += project["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


def test_lock_holds_only_comments_and_exact_versions_with_hashes() -> None:
    without_comments = re.sub(r"^ *#.*\n", "", LOCK, flags=re.MULTILINE)
    assert re.sub(r"\s", "", PINNED.sub("", without_comments)) == ""
    assert len(pinned_versions()) == len(PINNED.findall(LOCK)) > 20


def test_lock_has_no_address_and_no_index_option() -> None:
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host", LOCK)


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_lock_pins_what_the_project_asks_for(requirement: Requirement) -> None:
    version = pinned_versions()[requirement.name]
    assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}: run `make lock`"


def test_lock_leaves_out_what_only_the_training_script_needs() -> None:
    assert not {"torch", "scikit-learn"} & set(pinned_versions())
