# SPDX-License-Identifier: Apache-2.0
"""Names by which a person tells files apart: the stem, with as many folders before it as are needed.

    vision/resnet.onnx, audio/resnet.onnx, vision/yolo.onnx  ->  vision-resnet, audio-resnet, yolo

Law: no two files get the same name, and the order of the files does not matter.
"""

from collections import Counter
from collections.abc import Iterable, Set
from pathlib import PurePath

from nndeploy.errors import DataError
from nndeploy.farm.job import why_no_name


def unique_names(files: Iterable[str], what: str, where: str, taken: Set[str] = frozenset()) -> dict[str, str]:
    """Returns path -> name; paths are relative, `taken` are names that others have.

    Raises:
        DataError: two cannot be told apart, or a name cannot be one.
    """
    parts = {file: _name_parts(file) for file in files}
    depth = dict.fromkeys(parts, 1)
    while True:
        names = {file: "-".join(parts[file][-depth[file] :]) for file in parts}
        counts = Counter(names.values())
        alike = [file for file, name in names.items() if counts[name] > 1 or name in taken]
        if not alike:
            break
        short = [file for file in alike if depth[file] < len(parts[file])]
        if not short:
            first, *others = sorted(file for file in alike if names[file] == names[alike[0]])
            and_others = f" and {others[0]!r:.120}" if others else " and another"
            raise DataError(
                f"two {what} are called {names[first]!r:.80}: {first!r:.120}{and_others}",
                where=where, hint="rename one of them",
            )  # fmt: skip
        for file in short:
            depth[file] += 1
    for file, name in names.items():
        if reason := why_no_name(name):
            raise DataError(f"the name {name!r:.80} of {file!r:.120} {reason}", where=where, hint="rename the file")
    return names


def _name_parts(file: str) -> tuple[str, ...]:
    path = PurePath(file)
    folders = [part for part in path.parts[:-1] if part not in ("..", "/")]
    return (*folders, path.stem)
