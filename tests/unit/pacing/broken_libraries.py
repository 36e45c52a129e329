# SPDX-License-Identifier: Apache-2.0
"""Libraries of delays whose operator of ONNX Runtime is broken or not there."""

from pathlib import Path

from c_library import library_from_source
from nndeploy_kernels.build import SOURCES

from nndeploy.pacing.run.library import PaceLibrary


def library_of(operator: str, workdir: Path) -> PaceLibrary:
    """Returns a library of delays with a source in place of the operator's."""
    pace = (SOURCES / "pacing" / "pace.c").read_text(encoding="utf-8")
    return PaceLibrary(library_from_source([pace, operator], workdir))
