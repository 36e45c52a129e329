# SPDX-License-Identifier: Apache-2.0
"""Sizes of files, times and counts, as people write them."""


def size_text(num_bytes: int) -> str:
    """Returns a size as people write it."""
    size = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{num_bytes} B" if unit == "B" else f"{size:.1f} {unit}"


def ms_text(milliseconds: float) -> str:
    """Returns a time as people write it, to three digits or the millisecond."""
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"


def counted(number: int, noun: str) -> str:
    """Returns a count with its noun, as people write it."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
