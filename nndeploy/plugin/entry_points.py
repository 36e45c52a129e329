# SPDX-License-Identifier: Apache-2.0
"""Finds plugins of one kind by their entry-point group, and loads one when it is asked for.

Ours are found as everybody's are, and asked of one distribution, ten times faster than of all: what names one of ours
never waits for a look at the rest.

Law: nobody can take the name of one of ours, and no order of installation decides between two others.
"""

from collections.abc import Callable
from functools import cached_property
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any, TypeVar

from nndeploy.errors import NndeployError, UnavailableError, did_you_mean
from nndeploy.version import DISTRIBUTION

T = TypeVar("T")


class Plugins:
    """The plugins of one group; `noun` is what messages call one, `unknown` the error where there is none."""

    def __init__(self, group: str, noun: str, unknown: type[NndeployError]) -> None:
        """Asks for our own ones; those of others are asked for when a name is not among them."""
        self._group = group
        self._noun = noun
        self._unknown = unknown
        self._own = _own(group)

    def __contains__(self, name: str) -> bool:
        """Returns whether a plugin of this name is installed; it is not loaded."""
        return name in self._own or name in self._all

    def names(self) -> list[str]:
        """Returns the names of all that are installed, sorted; none is loaded."""
        return sorted(self._all)

    def spelled(self, name: str) -> str:
        """Returns a name as its plugin has it, whatever case it is written in; as it is where none has it."""
        if name in self:
            return name
        return {known.casefold(): known for known in self.names()}.get(name.casefold(), name)

    def check(self, name: str) -> None:
        """Refuses a name that no plugin has, with the error that was given for that."""
        if name not in self:
            raise self._unknown(f"no {self._noun} is called {name!r}", hint=did_you_mean(name, self.names()))

    def load(self, name: str, made: Callable[[Any], T]) -> T:
        """Returns what `made` makes of the plugin's object.

        Raises:
            NndeployError: no plugin has this name; of the class that was given for that.
            UnavailableError: two packages bring it, or it cannot be imported or made.
        """
        self.check(name)
        point, *others = (self._own[name],) if name in self._own else self._all[name]
        if others:
            packages = " and ".join(map(_package, (point, *others)))
            what = f"several packages bring the {self._noun} {name!r}: {packages}"
            raise UnavailableError(what, hint="uninstall all but one")
        try:
            return made(point.load())
        except Exception as err:  # a third party's import may fail in any way; its plugin is then unavailable
            what = f"{self._noun} {name!r} cannot be loaded: {str(err) or type(err).__name__}"
            raise UnavailableError(what, where=point.value) from err

    @cached_property
    def _all(self) -> dict[str, tuple[EntryPoint, ...]]:
        """Returns those of every installed distribution, by name; several where packages disagree what it is."""
        found: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=self._group):
            found.setdefault(point.name, {})[point.value] = point
        others = {name: tuple(points[value] for value in sorted(points)) for name, points in found.items()}
        return others | {name: (point,) for name, point in self._own.items()}


def _own(group: str) -> dict[str, EntryPoint]:
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=group)
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points}


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} ({point.value})" if point.dist is not None else point.value
