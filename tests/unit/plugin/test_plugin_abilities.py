# SPDX-License-Identifier: Apache-2.0
"""Abilities of a backend by an attribute: it stands there and is True, or the backend has not the ability."""

from types import SimpleNamespace

import pytest

from nndeploy.errors import UnavailableError
from nndeploy.plugin import registry
from nndeploy.plugin.interface import ABILITIES, API_VERSION, Hardened

NAMES = [name for ability in ABILITIES for name in ability.__annotations__]


def test_every_ability_is_one_attribute() -> None:
    assert len(NAMES) == len(set(NAMES)) == len(ABILITIES)
    for ability, name in zip(ABILITIES, NAMES, strict=True):
        assert isinstance(SimpleNamespace(**{name: True}), ability)
        assert not isinstance(SimpleNamespace(), ability)


@pytest.mark.parametrize("name", NAMES)
def test_a_backend_that_denies_an_ability_by_its_attribute_is_not_loaded(name, monkeypatch) -> None:
    plugin = SimpleNamespace(api_version=API_VERSION, **{name: False})
    monkeypatch.setattr(registry.PLUGINS, "load", lambda *_: plugin)
    with pytest.raises(UnavailableError, match=name):
        registry.backend("denies")


def test_own_kernels_alone_are_hardened() -> None:
    assert [one.name for one in registry.backends_in_order() if isinstance(one, Hardened)] == ["native"]
