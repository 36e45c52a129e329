# SPDX-License-Identifier: Apache-2.0
"""A recipe: what a compile is made from, by digest, so that another compile is made from the same or refused.

    [recipe]
    [recipe.files]      model = <SHA-256>   "external:w.bin" = ..   "option:samples:0:a.npz" = ..
    [recipe.packages]   onnx = <version and digest>

It stands in a file of options, behind them. Comes in: a compile, or such a table. Goes out: the table, or an error that
names what differs. Laws: the recipe of a compile admits that compile; files that it does not name are not admitted,
but for decisions, which a compile writes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.key import PACKAGE, differing
from nndeploy.build_cache.local_cache import is_key
from nndeploy.compiler.cache_key import parts_of
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.errors import DataError
from nndeploy.files.toml_table import TomlTable
from nndeploy.options.described import described_fields, option_name

_DECISIONS, _TARGETS = "option:decisions:", "option:targets"
_ANEW = "--dump-config writes a new one; a file of options without [recipe] compares nothing"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Digests of files by what they are to the compile, and packages by name."""

    files: Mapping[str, str]
    packages: Mapping[str, str]

    def check(self, now: "Recipe", where: str) -> tuple[str, ...]:
        """Returns the names of packages that are not the recipe's; `now` is the recipe of what would be compiled.

        Raises:
            DataError: a file differs, is missing or is there beside those of the recipe, `where`.
        """
        changed = [
            name for name in differing(self.files, now.files) if name in self.files or not name.startswith(_DECISIONS)
        ]
        if changed:
            raise DataError(f"the recipe has another {', '.join(map(_shown, changed))}", where=where, hint=_ANEW)
        return differing(self.packages, now.packages)


def recipe_of(source: Path, given: Mapping[str, Any], limits: CompileLimits) -> Recipe:
    """Returns the recipe of a compile; `given` is as for `nndeploy.compiler.job.compile_in_child`.

    Raises:
        NndeployError: a file is not there, or none that can be compiled.
    """
    parts = parts_of(source, given, limits, FileDigests())
    files = {name: text for name, text in parts.items() if is_key(text) and not name.startswith(PACKAGE)}
    if _TARGETS in parts:
        files[_TARGETS] = hashlib.sha256(parts[_TARGETS].encode()).hexdigest()
    packages = {name.removeprefix(PACKAGE): text for name, text in parts.items() if name.startswith(PACKAGE)}
    return Recipe(files, packages)


def recipe_from_table(table: TomlTable) -> Recipe:
    """Returns the recipe that a table says.

    Raises:
        DataError: a key is unknown, missing or of the wrong type, or a digest is none.
    """
    found = Recipe(table.names("files"), table.names("packages"))
    table.done()
    if "model" not in found.files or not all(map(is_key, found.files.values())):
        raise DataError("files must contain the SHA-256 of the model and of other files", where=table.where, hint=_ANEW)
    return found


def _shown(name: str) -> str:
    kind, _, rest = name.partition(":")
    if kind == "external":
        return f"file {rest} beside the model"
    if kind == "option":
        field, _, number = rest.partition(":")
        known = described_fields(CompileOptions)
        option = option_name(field, known[field][1]) if field in known else field
        file = number.partition(":")[2]
        return f"file of --{option.replace('_', '-')}" + (f" ({file})" if file else "")
    return name
