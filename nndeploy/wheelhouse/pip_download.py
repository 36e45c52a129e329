# SPDX-License-Identifier: Apache-2.0
"""pip, asked for the wheels of another machine: the only code of ours that lets a program use the network.

It obeys the user's own settings of pip (index, certificates, proxies). Law: wheels alone, so nothing of what is
downloaded is built or run.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nndeploy.errors import UnavailableError
from nndeploy.wheelhouse.box import Box

ALWAYS = ("--quiet", "--no-input", "--progress-bar", "off", "--disable-pip-version-check", "--only-binary=:all:")


def download(requirements: Sequence[str], folder: Path, box: Box, find_links: Sequence[Path]) -> None:
    """Gets what `requirements` ask for, and what that needs, into a folder.

    Raises:
        UnavailableError: something is nowhere to be had; pip's own words.
    """
    tags = [word for platform in box.platforms for word in ("--platform", platform)]
    tags += ["--implementation", "cp", "--python-version", box.python_version]
    links = [word for place in find_links for word in ("--find-links", str(place))]
    command = [sys.executable, "-m", "pip", "download", *ALWAYS, *tags, *links, "--dest", str(folder)]
    try:
        done = subprocess.run(
            [*command, "--", *requirements], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=os.environ | {"PYTHONWARNINGS": "ignore"}, check=False,
        )  # fmt: skip
    except OSError as err:
        raise UnavailableError(f"pip cannot be started: {err.strerror}") from err
    if done.returncode:
        raise UnavailableError(f"pip finds no wheels for {box}: {_reason(done.stderr)}", hint=_hint(done.stderr))


def _reason(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return next(iter([*errors, *lines[-1:]]), "it says nothing")


def _hint(log: str) -> str:
    if "nndeploy" in _reason(log).partition("(from")[0]:
        return "`make wheel` in the source tree writes ours into dist; name it with --find-links"
    if "after connection broken" in log:
        return "is the package index reachable from here?"
    return "another --glibc, --python or --with may have wheels"
