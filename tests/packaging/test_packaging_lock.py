# SPDX-License-Identifier: Apache-2.0
"""The locks pin what targets of make install: exact versions with hashes, nothing of any machine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SITE, SBOM, WHEEL = (f"configs/{name}/requirements.lock" for name in ("site", "sbom", "wheel"))
LOCKS = {
    name: (ROOT / name).read_text()
    for name in (
        "requirements.lock",
        "requirements-base.lock",
        "requirements-demo.lock",
        "requirements-pythons.lock",
        SITE,
        SBOM,
        WHEEL,
    )
}
PINNED = re.compile(r"([a-z0-9][a-z0-9-]*)==([0-9][0-9a-z.]*)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)")
EXTRAS = {
    "requirements.lock": (
        "compile", "cpu", "openvino", "tensorrt-rtx", "cudnn", "triton", "vision", "video", "loadgen", "pacing",
        "pkcs11", "registry", "farm", "serve", "text", "dev",
    ),
    "requirements-demo.lock": ("compile", "cpu", "vision"),
    "requirements-pythons.lock": ("compile", "cpu", "vision", "dev"),
}  # fmt: skip
EACH_LOCK = pytest.mark.parametrize("lock", LOCKS)


def pinned_versions(lock: str) -> dict[str, str]:
    return {name: version for name, version, _ in PINNED.findall(LOCKS[lock])}


def wanted() -> list[tuple[str, Requirement]]:
    """Returns what pyproject.toml asks for and each lock installs."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    groups = pyproject["dependency-groups"]
    always = [*project["dependencies"], *pyproject["build-system"]["requires"], *groups["kernels"]]
    of_extras = project["optional-dependencies"]
    texts = {
        lock: (*always, *(text for extra in extras for text in of_extras[extra])) for lock, extras in EXTRAS.items()
    } | {
        "requirements-base.lock": project["dependencies"],
        SITE: groups["site"],
        SBOM: groups["sbom"],
        WHEEL: pyproject["build-system"]["requires"],
    }
    texts["requirements.lock"] += tuple(groups["clients"])
    return [(lock, Requirement(text)) for lock, of_lock in texts.items() for text in of_lock]


@EACH_LOCK
def test_lock_holds_only_comments_and_exact_versions_with_hashes(lock: str) -> None:
    without_comments = re.sub(r"^ *#.*\n", "", LOCKS[lock], flags=re.MULTILINE)
    assert re.sub(r"\s", "", PINNED.sub("", without_comments)) == ""
    assert len(pinned_versions(lock)) == len(PINNED.findall(LOCKS[lock])) > 5


@EACH_LOCK
def test_lock_has_no_address_and_no_index_option(lock: str) -> None:
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host", LOCKS[lock])


@pytest.mark.parametrize(("lock", "requirement"), wanted(), ids=str)
def test_lock_pins_what_the_project_asks_for(lock: str, requirement: Requirement) -> None:
    version = pinned_versions(lock)[requirement.name]
    assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}: run `make lock`"


def test_lock_leaves_out_what_only_the_training_script_needs() -> None:
    assert not {"torch", "scikit-learn"} & set(pinned_versions("requirements.lock"))


def test_the_demo_has_the_versions_that_are_tested_and_no_toolchain_for_gpus() -> None:
    demo, tested = pinned_versions("requirements-demo.lock"), pinned_versions("requirements.lock")
    assert pinned_versions("requirements-base.lock").items() <= demo.items() <= tested.items()
    assert pinned_versions(WHEEL).items() <= tested.items()
    assert not [
        name for name in demo | pinned_versions(WHEEL) if name.startswith(("nvidia", "triton", "tensorrt", "cuda"))
    ]
