# SPDX-License-Identifier: Apache-2.0
"""Libraries of delays whose operator of ONNX Runtime is broken or not there."""

from pathlib import Path

from nndeploy_native.library import SOURCES, library_from_source

from nndeploy.pacing.library import PaceLibrary
from nndeploy.target.target import host_target


def library_of(operator: str, workdir: Path) -> PaceLibrary:
    """Returns a library of delays with a source in place of the operator's."""
    pace = (SOURCES / "pacing" / "pace.c").read_text(encoding="utf-8")
    return PaceLibrary(library_from_source([pace, operator], host_target().arch, workdir))
