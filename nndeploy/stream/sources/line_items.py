# SPDX-License-Identifier: Apache-2.0
"""Items of files that hold many: one a line, read when its turn comes; indices go on from file to file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from nndeploy.files.pieces import ANY_SIZE
from nndeploy.files.whole_files import open_regular, reading, safe_stem
from nndeploy.stream.formats.json_lines import read_lines
from nndeploy.stream.items import Item
from nndeploy.values.types import Value

ReadLine: TypeAlias = Callable[[bytes | None], dict[str, Value]]
"""Returns the values of a line; None is one that was too long."""


def items_of_lines(file: BinaryIO, origin: str, start: int, read: ReadLine) -> Iterator[Item]:
    """Yields an item for each line that is not blank, from index `start` on."""
    stem = safe_stem(Path(origin).stem)
    for index, (number, line) in enumerate(read_lines(file), start):
        yield Item(index, f"{origin}, line {number}", f"{stem}-{number}", partial(read, line))


def items_of_line_file(path: Path, start: int, read: ReadLine) -> Iterator[Item]:
    """Yields the items of a file of lines, from index `start` on."""
    with reading(path), open_regular(path, max_bytes=ANY_SIZE) as file:
        yield from items_of_lines(file, str(path), start, read)


def items_of_each(paths: Sequence[Path], items_of: Callable[[Path, int], Iterable[Item]]) -> Iterator[Item]:
    """Yields the items of one file after the other; `items_of` gives those of one, from an index on."""
    index = 0
    for path in paths:
        for item in items_of(path, index):
            yield item
            index = item.index + 1
