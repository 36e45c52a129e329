# SPDX-License-Identifier: Apache-2.0
"""Sizes on the command line of `compile`, and what becomes of them in a target."""

import pytest

from nndeploy.cli.compile_cmd import num_bytes
from nndeploy.compiler.options import CompileOptions
from nndeploy.errors import UsageError
from nndeploy.target.target import Target, with_window_buffer


@pytest.mark.parametrize(
    ("text", "size"),
    [("8KiB", 8192), ("256KiB", 262144), ("1MiB", 1 << 20), ("1GiB", 1 << 30), ("65536", 65536), ("100 B", 100)],
)
def test_sizes_are_bytes_or_have_a_binary_unit(text: str, size: int) -> None:
    assert num_bytes(text, "--cache-buffer") == size


@pytest.mark.parametrize(
    "text", ["", "KiB", "-1", "1.5KiB", "256KB", "256kib", "1TiB", "0x10", "1 2", "9" * 19, "\u0663"]
)
def test_other_sizes_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--cache-buffer: .* is not a size") as caught:
        num_bytes(text, "--cache-buffer")
    assert "256KiB" in caught.value.hint


@pytest.mark.parametrize("size", [0, -1, (1 << 30) + 1])
def test_buffer_beyond_its_limits_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="1 byte to 1 GiB"):
        CompileOptions(cache_buffer=size)


def test_buffer_takes_the_place_of_the_target_s_own_among_its_caches() -> None:
    box = Target("box", "x86_64", caches=(("buffer", 5), ("l2", 7)))
    assert with_window_buffer(box, 9).caches == (("buffer", 9), ("l2", 7))
    assert with_window_buffer(Target("bare", "x86_64"), 9) == Target("bare", "x86_64", caches=(("buffer", 9),))
