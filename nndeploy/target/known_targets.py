# SPDX-License-Identifier: Apache-2.0
"""The boxes that nndeploy knows by name: the files of configs/targets, which travel in the package.

A box is named on the command line by such a name or by the path of a target file; `+LIBRARY` behind it says that the
box has the library of that backend, which no file of configs/targets says.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

from nndeploy.errors import UsageError, nearest
from nndeploy.files.shipped_configs import config_files
from nndeploy.target.gpu_models import compute_capability_called
from nndeploy.target.target import ANY_VERSION, Target, target_from_toml


@cache
def known_targets() -> dict[str, Path]:
    """Returns name -> target file of every known box, sorted by name."""
    return {path.stem: path for path in config_files("targets")}


def target_file(text: str) -> Path:
    """Returns the target file that `text` means: the path of one, or the name of a known box.

    Raises:
        UsageError: no box of that name is known, and it is no path of a file.
    """
    path = Path(text)
    if path.is_file() or path.suffix == ".toml" or "/" in text:
        return path
    known = known_targets()
    if text.lower() not in known:
        guess = _of_same_capability(text) or (f"did you mean {near!r}?" if (near := nearest(text, known)) else "")
        others = f"known: {', '.join(known)}; `nndeploy probe -o box.toml` writes a target file"
        raise UsageError(f"no target is called {text!r:.80}", hint=" ".join(filter(None, (guess, others))))
    return known[text.lower()]


def _of_same_capability(text: str) -> str:
    """Says which known box serves a GPU that has no target file, "" where none does or the GPU is not known."""
    capability = compute_capability_called(text)
    for name, path in known_targets().items() if capability else ():
        if any(gpu.compute_capability == capability for gpu in target_from_toml(path).gpus):
            return f"{name} serves it: the same compute capability, {capability};"
    return ""


def named_again(name: str) -> str:
    """Returns what `--target` takes for a target of this name: for none of the known ones, a file."""
    return name if name in known_targets() else "FILE.toml"


def target_of(text: str) -> Target:
    """Returns the box that `text` means, `TARGET` or `TARGET+LIBRARY+...`.

    Raises:
        UsageError: no box of that name is known.
        MissingInputError, DataError: its file is missing or malformed.
    """
    box, libraries = parted(text)
    target = target_from_toml(target_file(box))
    there = {**dict.fromkeys(libraries, ANY_VERSION), **dict(target.libraries)}
    return replace(target, libraries=tuple(sorted(there.items())))


def absolute(text: str) -> str:
    """Returns the same box, its file by an absolute path: for another process.

    Raises:
        UsageError: no box of that name is known.
    """
    box, libraries = parted(text)
    return "+".join((str(target_file(box).absolute()), *libraries))


def parted(text: str) -> tuple[str, list[str]]:
    """Returns the name or path of a box, and the libraries named behind it; a path may hold "+" itself."""
    box, libraries = text, list[str]()
    while "+" in box and not box.endswith(".toml") and not Path(box).is_file():
        box, _, library = box.rpartition("+")
        libraries.insert(0, library)
    return box, libraries
