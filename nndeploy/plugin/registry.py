# SPDX-License-Identifier: Apache-2.0
"""Finds backends by their entry points, loads one when it is asked for, orders them."""

from collections.abc import Sequence
from functools import cache

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.plugin.backend_names import PLUGINS
from nndeploy.plugin.interface import ABILITIES, API_VERSION, Backend


def is_installed(name: str) -> bool:
    """Returns whether a plugin called `name` is installed; it is not loaded."""
    return name in PLUGINS


def backend_names() -> list[str]:
    """Returns the names of all installed plugins, sorted; none is loaded."""
    return PLUGINS.names()


@cache
def backend(name: str) -> Backend:
    """Returns the plugin called `name`; always the same object.

    Raises:
        UsageError: no plugin of that name is installed.
        UnavailableError: two packages bring it, it cannot be imported, was written for another interface, or has an
            attribute of an ability that is not True.
    """
    plugin: Backend = PLUGINS.load(name, lambda kind: kind())
    version = getattr(plugin, "api_version", None)
    if version != API_VERSION:
        raise UnavailableError(
            f"backend {name!r} speaks interface {version}, this nndeploy speaks {API_VERSION}",
            hint="install matching versions",
        )
    for attribute in (name for ability in ABILITIES for name in ability.__annotations__):
        if getattr(plugin, attribute, True) is not True:
            raise UnavailableError(f"backend {name!r}: {attribute} is not True", hint="leave the attribute out")
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
        PLUGINS.check(name)
    if names is not None:
        if len(set(names)) != len(names):
            raise UsageError(f"a backend is named twice in {','.join(names)!r}")
        return [backend(name) for name in names if name not in without]
    leave_out = {*without, *broken_backends()}
    return sorted((backend(n) for n in backend_names() if n not in leave_out), key=lambda b: (b.tier, b.name))
