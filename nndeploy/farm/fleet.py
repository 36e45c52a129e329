# SPDX-License-Identifier: Apache-2.0
"""What a fleet file says, read and checked, before any file that it names was looked for.

Made by `fleet_file`; `expand` makes jobs of it. Law: the values are in the form that a job holds, but for paths, which
are as the file writes them and may hold {model}, {target} and {variant}.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nndeploy.build_cache.remote_address import NEVER
from nndeploy.farm.reports.gates import Gates
from nndeploy.farm.reports.write_reports import ReportFiles
from nndeploy.farm.template import PLACEHOLDERS


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of some jobs: `given` of `CompileOptions` and `limits` of `CompileLimits` by field, and `needs`."""

    given: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)

    def then(self, later: "Settings") -> "Settings":
        """Returns these settings, with those of `later` in their place where both say something."""
        return Settings({**self.given, **later.given}, {**self.limits, **later.limits}, {**self.needs, **later.needs})


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A [[models]] table: globs of files, and what is asked of their jobs; `place` names it in messages."""

    place: str
    globs: tuple[str, ...]
    settings: Settings = Settings()


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the [matrix]: the name of a value -> what it gives of `CompileOptions`, in the order of the file."""

    name: str
    values: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Match:
    """Which jobs are meant: for "model", "target", "variant" or an axis, globs of which one must match."""

    place: str
    globs: Mapping[str, tuple[str, ...]]

    def matches(self, names: Mapping[str, str]) -> bool:
        """Returns whether a job with these names is meant."""
        return all(any(fnmatchcase(names[key], glob) for glob in globs) for key, globs in self.globs.items())


@dataclass(frozen=True, slots=True)
class Override:
    """An [[override]] table."""

    match: Match
    settings: Settings


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the scheduler is, and the files of the certificates that speak to it, by absolute paths or ""."""

    address: str
    ca: str = ""
    cert: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Publish:
    """Where finished bundles go: a folder, by its absolute path, or a reference of a registry; `sign` is a key file."""

    folder: str = ""
    oci: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet file. `where` names it in messages; paths in it are relative to `folder`, which is absolute.

    `jobs` is how many run at once, None where cores and memory say. `cache` holds an absolute path, a web address or
    both, () for the account's own; `push` is one of `nndeploy.build_cache.remote_address.PUSH`, and `cache_ca` the
    absolute path of the authorities of that address, "" for those that everybody knows. The paths of reports are
    absolute.
    """

    where: str
    folder: Path
    output: str
    models: tuple[ModelFiles, ...]
    target_globs: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    settings: Settings = Settings()
    axes: tuple[Axis, ...] = ()
    excludes: tuple[Match, ...] = ()
    overrides: tuple[Override, ...] = ()
    jobs: int | None = None
    cache: tuple[str, ...] = ()
    push: str = NEVER
    cache_ca: str = ""
    cluster: Cluster | None = None
    publish: Publish | None = None
    reports: ReportFiles = field(default_factory=ReportFiles)
    gates: Gates = field(default_factory=Gates)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys by which jobs are excluded, overridden and filtered."""
        return keys_of(self.axes)


def keys_of(axes: Iterable[Axis]) -> tuple[str, ...]:
    """Returns the keys by which jobs are told apart: their names, and the axes of the matrix."""
    return (*PLACEHOLDERS, *(axis.name for axis in axes))
