# SPDX-License-Identifier: Apache-2.0
"""Steps as a pipeline makes them: from tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.processors.processor import ProcessorStep
from nndeploy.processors.registry import processor_from_table


@pytest.fixture
def step(tmp_path: Path) -> Callable[..., ProcessorStep]:
    """Returns a function: name, parameters (underscores for dashes) -> step; files lie in the test's folder."""

    def make(use: str, **parameters: object) -> ProcessorStep:
        table = {key.replace("_", "-"): value for key, value in parameters.items()}
        return processor_from_table({"use": use, **table}, "p.toml", lambda name: (tmp_path / name).read_bytes())

    return make
