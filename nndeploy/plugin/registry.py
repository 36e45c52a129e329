# SPDX-License-Identifier: Apache-2.0
"""Finds backends by the entry-point group `nndeploy.backends`, loads one when it is asked for, orders them."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points

from nndeploy.errors import UnavailableError, UsageError, did_you_mean
from nndeploy.plugin.interface import API_VERSION, Backend

GROUP = "nndeploy.backends"
DISTRIBUTION = "nndeploy-toolchain"


def own_entry_points(group: str) -> dict[str, EntryPoint]:
    """Returns those of a group that this project brings, by name."""
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=group)
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points}


_OWN = own_entry_points(GROUP)
"""Asked of one distribution, ten times faster than of all, when the run half is imported rather than at a load."""


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """Returns those of every installed distribution, by name; nobody can take the name of one of ours."""
    found = {point.name: point for point in entry_points(group=GROUP)} | _OWN
    return dict(sorted(found.items()))


def is_installed(name: str) -> bool:
    """Returns whether a plugin called `name` is installed; it is not loaded."""
    return name in _OWN or name in _entry_points()


def backend_names() -> list[str]:
    """Returns the names of all installed plugins, sorted; none is loaded."""
    return list(_entry_points())


@cache
def backend(name: str) -> Backend:
    """Returns the plugin called `name`; always the same object.

    Raises:
        UsageError: no plugin of that name is installed.
        UnavailableError: the plugin cannot be imported, or was written for another interface.
    """
    point = _OWN.get(name) or _entry_points().get(name)
    if point is None:
        raise UsageError(f"no backend is called {name!r}", hint=did_you_mean(name, _entry_points()))
    try:
        plugin: Backend = point.load()()
    except Exception as err:  # a third party's import may fail in any way; its backend is then unavailable
        raise UnavailableError(f"backend {name!r} cannot be loaded: {err}", where=point.value) from err
    if plugin.api_version != API_VERSION:
        raise UnavailableError(
            f"backend {name!r} speaks interface {plugin.api_version}, this nndeploy speaks {API_VERSION}",
            hint="install matching versions",
        )
    return plugin


def broken_backends() -> dict[str, str]:
    """Returns name -> reason for every installed plugin that cannot be used."""
    broken = {}
    for name in backend_names():
        try:
            backend(name)
        except UnavailableError as err:
            broken[name] = str(err)
    return broken


def backends_in_order(names: Sequence[str] | None = None, without: Sequence[str] = ()) -> list[Backend]:
    """Returns the backends of `names` in that order, or all that can be loaded by tier and name, less `without`.

    Raises:
        UsageError: a name is unknown or given twice.
        UnavailableError: a backend of `names` cannot be loaded.
    """
    for name in (*(names or ()), *without):
        if name not in _entry_points():
            raise UsageError(f"no backend is called {name!r}", hint=did_you_mean(name, _entry_points()))
    if names is not None:
        if len(set(names)) != len(names):
            raise UsageError(f"a backend is named twice in {','.join(names)!r}")
        return [backend(name) for name in names if name not in without]
    leave_out = {*without, *broken_backends()}
    return sorted((backend(n) for n in backend_names() if n not in leave_out), key=lambda b: (b.tier, b.name))
