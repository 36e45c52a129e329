# SPDX-License-Identifier: Apache-2.0
"""Pictures of `inspect --tables`: a cell for each window, the last of what is left; what is no size cuts nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from nndeploy.bundle.manifest import Manifest
from nndeploy.cli.views.inspect_tables import show_tables
from nndeploy.errors import UnavailableError
from nndeploy.runtime.inspect_bundle import Inspection, VariantSteps
from nndeploy.values.plan_steps import PlanStep

PAIR: PlanStep = {"kernel": "pair", "shape": "1x8x7x100", "window": "3x60x32", "buffer_bytes": 8192, "what": "3x3"}
PICTURE = """s0/v0-native: 1 step on this machine
   0 pair: 3x3
     1x8x7x100 in 3 x 2 windows of 3x60x32, buffer 8 KiB
         60   40
       +----+----+
     3 |    |    |
       +----+----+
     3 |    |    |
       +----+----+
     1 |    |    |
       +----+----+
"""


def inspection(*steps: PlanStep) -> Inspection:
    return Inspection(Path("m.nnd"), 1, cast(Manifest, None), {}, (VariantSteps("s0", "v0-native", steps),))


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that returns what is printed of steps."""

    def shown(*steps: PlanStep) -> str:
        show_tables(inspection(*steps), as_json=False)
        return capsys.readouterr().out

    return shown


def test_a_cell_is_a_window_and_the_last_is_what_is_left(shown: Callable[..., str]) -> None:
    assert shown(PAIR) == PICTURE


def test_of_many_windows_the_middle_is_left_out(shown: Callable[..., str]) -> None:
    lines = shown({**PAIR, "shape": "1x8x301x60"}).splitlines()
    assert "in 101 x 1 windows" in lines[2]
    assert [line.split(" |")[0].strip() for line in lines if " |" in line] == ["3", "3", "...", "1"]


def test_pixels_are_cut_in_one_row(shown: Callable[..., str]) -> None:
    lines = shown({"kernel": "convolution", "shape": "2x8x7x10", "window_pixels": 48}).splitlines()
    assert lines[2].strip() == "2x8x7x10 in 1 x 2 windows of 48 pixels"
    assert lines[3].split() == ["48", "22"]


def test_one_window_needs_no_picture(shown: Callable[..., str]) -> None:
    text = shown({**PAIR, "window": "9x100x32"})
    assert "in 1 x 1 windows of 9x100x32" in text
    assert "+" not in text


def test_a_step_without_windows_is_told_in_words(shown: Callable[..., str]) -> None:
    assert shown({"kernel": "pool", "shape": "1x8", "how": "mean 7x7"}).splitlines()[2].strip() == "1x8, mean 7x7"


@pytest.mark.parametrize("step", [
    {"window": "0x60x32"}, {"window": "of the box"}, {"window": "3x60"}, {"window": "-3x60x32"}, {"window": 7},
    {"window": "3x60x32\x1b[2J"}, {"shape": "8"}, {"window": "", "window_pixels": 0}, {"windows": "rows", "window": ""},
], ids=str)  # fmt: skip
def test_what_is_no_size_cuts_nothing(shown: Callable[..., str], step: PlanStep) -> None:
    text = shown({**PAIR, **step})
    assert "+" not in text
    assert "\x1b" not in text


def test_a_bundle_of_which_nobody_tells_is_refused() -> None:
    with pytest.raises(UnavailableError, match=r"m\.nnd: no backend"):
        show_tables(inspection({"kernel": "separable", "window": "3x60x32"}), as_json=False)
