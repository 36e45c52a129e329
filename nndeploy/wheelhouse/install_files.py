# SPDX-License-Identifier: Apache-2.0
"""What stands beside the wheels: their versions with the hashes that pip checks, and a script for the box."""

from collections.abc import Sequence
from pathlib import Path

from nndeploy.wheelhouse.box import Box
from nndeploy.wheelhouse.wheels import Wheel, sha256_of

REQUIREMENTS, SCRIPT = "requirements.txt", "install.sh"
_SCRIPT = """#!/bin/sh
# Installs nndeploy from the wheels beside this file, without a network, into a new environment:
#     sh install.sh /opt/nndeploy
# The wheels are for {box}.
# PYTHON names an interpreter that is not on the path. pip checks every wheel against its hash.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
environment=${{1:?name the folder of the new environment, such as /opt/nndeploy}}
"${{PYTHON:-python{python}}}" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$here" \\
    --only-binary=:all: --require-hashes -r "$here/{requirements}"
"$environment/bin/nndeploy" --version
"""


def write_install_files(folder: Path, wheels: Sequence[Wheel], box: Box) -> None:
    """Writes both into the folder of the wheels."""
    lines = [f"{wheel.name}=={wheel.version} \\\n    --hash=sha256:{sha256_of(wheel)}\n" for wheel in wheels]
    head = f"# For {box}; made by nndeploy wheelhouse.\n"
    (folder / REQUIREMENTS).write_text(head + "".join(lines), encoding="utf-8")
    script = folder / SCRIPT
    script.write_text(_SCRIPT.format(box=box, python=box.python_version, requirements=REQUIREMENTS), encoding="utf-8")
    script.chmod(script.stat().st_mode | 0o111 & script.stat().st_mode >> 2)
