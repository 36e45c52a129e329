# SPDX-License-Identifier: Apache-2.0
"""Steps as a pipeline makes them: from tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.files.whole_files import read_regular
from nndeploy.processors.processor import ProcessorStep
from nndeploy.processors.registry import processor_from_table


@pytest.fixture
def step(tmp_path: Path) -> Callable[..., ProcessorStep]:
    """Returns a function: name, parameters (underscores for dashes) -> step; files lie in the test's folder."""

    def make(use: str, **parameters: object) -> ProcessorStep:
        table = {key.replace("_", "-"): value for key, value in parameters.items()}
        return processor_from_table(
            {"use": use, **table}, "p.toml", lambda name: read_regular(tmp_path / name, 1 << 26)
        )

    return make
