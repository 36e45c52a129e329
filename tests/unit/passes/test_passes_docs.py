# SPDX-License-Identifier: Apache-2.0
"""docs/internals/passes.md names every pass, in the order in which they run."""

import re
from pathlib import Path

from nndeploy.graph.linear_filter import MAX_COPIED_BYTES
from nndeploy.passes import OPTIMISATIONS
from nndeploy.passes.decompose_batchnorm import MAX_AMPLIFICATION
from nndeploy.passes.fold_constants import MAX_GROWTH_BYTES, MAX_RESULT_BYTES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "internals" / "passes.md").read_text(encoding="utf-8")


def test_table_lists_the_passes_in_their_order() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE, flags=re.MULTILINE)
    assert listed == [optimisation.name for optimisation in OPTIMISATIONS]


def test_counts_speak_of_passes_that_exist() -> None:
    names = {optimisation.name for optimisation in OPTIMISATIONS}
    counted = set(re.findall(r"([a-z]+(?:-[a-z]+)+) \d+", PAGE))
    assert counted
    assert counted <= names


def test_limits_are_those_of_the_code() -> None:
    assert f"at most {MAX_RESULT_BYTES >> 20} MiB, or" in PAGE
    assert f"at most {MAX_GROWTH_BYTES >> 20} MiB in all" in PAGE
    assert f"abs(mean) > {MAX_AMPLIFICATION:.0f} deviations" in PAGE
    assert f"below {MAX_COPIED_BYTES >> 20} MiB" in PAGE
