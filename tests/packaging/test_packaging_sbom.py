# SPDX-License-Identifier: Apache-2.0
"""The bill of materials names every distribution that the base install brings, with version and licence."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from check_sbom import LOCK, faults
from wheel_builds import ROOT, base_needs, built, clean_environment

GENERATOR = ROOT / "build" / "sbom-env" / "bin" / "cyclonedx-py"
BILL: dict[str, Any] = {
    "metadata": {"component": {"name": "nndeploy-toolchain", "version": "0.2.0"}},
    "components": [
        {"name": "Pygments", "version": "2.21.0", "licenses": [{"license": {"id": "BSD-2-Clause"}}]},
    ],
}


def test_a_bill_that_has_all_is_right() -> None:
    assert faults(BILL, "pygments==2.21.0 \\\n") == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "other"}, "pygments is missing"),
        ({"name": "other"}, "other is not in the lock"),
        ({"version": "2.20.0"}, "pygments is 2.20.0, in the lock 2.21.0"),
        ({"licenses": []}, "pygments has no licence"),
    ],
)
def test_what_a_bill_lacks_is_found(change: dict[str, Any], fault: str) -> None:
    bill = copy.deepcopy(BILL)
    bill["components"][0] |= change
    assert fault in faults(bill, "pygments==2.21.0 \\\n")


@pytest.mark.slow
@pytest.mark.skipif(not GENERATOR.exists(), reason="`make sbom` has not installed the generator")
def test_the_generator_names_all_that_the_base_install_brings(tmp_path: Path) -> None:
    wheel = built("wheel", ROOT, tmp_path / "toolchain")
    python = clean_environment(tmp_path / "box", (wheel,), base_needs(wheel))
    pyproject = re.sub("^dynamic = .*", 'version = "1"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(pyproject)
    command = [GENERATOR, "environment", "--pyproject", tmp_path / "pyproject.toml", "-o", tmp_path / "bill.json"]
    subprocess.run([*map(str, command), str(python)], check=True, capture_output=True)
    assert faults(json.loads((tmp_path / "bill.json").read_text()), LOCK.read_text()) == []
