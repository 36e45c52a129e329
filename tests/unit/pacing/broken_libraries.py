# SPDX-License-Identifier: Apache-2.0
"""Libraries of delays whose operator of ONNX Runtime is broken or not there, and what they are compiled for."""

from pathlib import Path

import pytest
from nndeploy_native.isa import Isa, isa_for
from nndeploy_native.library import HEADERS, library_from_source

from nndeploy.pacing.library import PaceLibrary
from nndeploy.target.target import host_target


def isa_of_this_machine() -> Isa:
    """Returns the widest instruction set that this machine has; skips where there is none."""
    isa = isa_for(host_target())
    if isa is None:
        pytest.skip("no kernels for this machine")
    return isa


def library_of(operator: str, workdir: Path) -> PaceLibrary:
    """Returns a library of delays with a source in place of the operator's."""
    pace = (HEADERS / "pacing" / "pace.c").read_text(encoding="utf-8")
    return PaceLibrary(library_from_source([pace, operator], isa_of_this_machine(), workdir))
