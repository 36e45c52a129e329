# SPDX-License-Identifier: Apache-2.0
"""Sizes and times are written with the digits that people read."""

import pytest

from nndeploy.values.amounts import ms_text, size_text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1234, "1.2 kB"), (2_714_290, "2.7 MB"), (5 * 10**12, "5000.0 GB")]
)
def test_sizes_are_written_as_people_do(size, text) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(("ms", "text"), [
    (0.04211, "0.0421 ms"), (9.126, "9.13 ms"), (99.94, "99.9 ms"), (112.6, "113 ms"), (1450.0, "1,450 ms")
])  # fmt: skip
def test_times_are_written_as_people_do(ms, text) -> None:
    assert ms_text(ms) == text
