# SPDX-License-Identifier: Apache-2.0
"""What a compile may be asked, and what is refused before any work."""

import pytest

from nndeploy.compiler.options import CompileOptions
from nndeploy.errors import UsageError
from nndeploy.target.target import Target, with_window_buffer


@pytest.mark.parametrize("size", [0, -1, (1 << 30) + 1])
def test_buffer_beyond_its_limits_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="1 byte to 1 GiB"):
        CompileOptions(cache_buffer=size)


def test_a_text_in_place_of_several_names_is_refused() -> None:
    with pytest.raises(UsageError, match="backends must be a tuple, not the string 'openvino'"):
        CompileOptions(backends="openvino")  # type: ignore[arg-type]


def test_buffer_takes_the_place_of_the_target_s_own_among_its_caches() -> None:
    box = Target("box", "x86_64", caches=(("buffer", 5), ("l2", 7)))
    assert with_window_buffer(box, 9).caches == (("buffer", 9), ("l2", 7))
    assert with_window_buffer(Target("bare", "x86_64"), 9) == Target("bare", "x86_64", caches=(("buffer", 9),))
