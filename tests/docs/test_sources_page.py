# SPDX-License-Identifier: Apache-2.0
"""The pipelines in docs/reference/sources.md are pipelines, each as a whole."""

import re
from pathlib import Path

import pytest

from nndeploy.processors.parameters import FilesBeside, no_files
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "sources.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_a_pipeline(block: str) -> None:
    beside = FilesBeside(no_files, PAGE.parent, is_here=False)
    file = pipeline_from_toml(block.encode(), str(PAGE), beside)
    if all(one.runner is None for one in file.pipelines):
        assert checked_plan(file, {})[0].fields
