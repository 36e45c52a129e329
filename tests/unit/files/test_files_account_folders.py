# SPDX-License-Identifier: Apache-2.0
"""Where an account keeps its cache and its keys; nothing is made below a home that is not there."""

import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.compiler.cached_compile import CacheOptions, opened_cache
from nndeploy.errors import NndeployError
from nndeploy.files.account_folders import NOBODYS_HOME, cache_folder, config_folder, data_folder
from nndeploy.files.own_cache import own_cache_folder
from nndeploy.installed.bundle_store import BundleStore
from nndeploy.trust.signing import machine_key
from nndeploy.trust.trust_store import change_store, user_store

VARIABLES = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "NNDEPLOY_CACHE_DIR")


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_named_folders_count_if_they_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/h")
    assert config_folder() == Path("/c")
    assert cache_folder() == Path("/h/.cache")


def test_the_home_is_what_the_environment_says_then_the_entry_then_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def folders_of(home: Path) -> list[Path]:
        return [home / ".cache", home / ".config", home / ".local/share"]

    def found() -> list[Path]:
        return [cache_folder(), config_folder(), data_folder()]

    monkeypatch.setenv("HOME", "/h")
    assert found() == folders_of(Path("/h"))
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(("", "", 0, 0, "", "/entry", "")))
    assert found() == folders_of(Path("/entry"))

    def no_entry(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    assert found() == folders_of(NOBODYS_HOME)


def install() -> None:
    with BundleStore(data_folder() / "nndeploy/installed").changing("a"):
        pass


MAKERS: dict[str, Callable[[], object]] = {
    "the key of this machine": machine_key,
    "the trust store": lambda: change_store(user_store(), lambda store: store),
    "the cache of builds": lambda: opened_cache(CacheOptions(), print),
    "the store of bundles": install,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_home_that_is_not_there_is_not_made(make, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "none" / "home"))
    with pytest.raises(NndeployError) as caught:
        make()
    assert str(tmp_path / "none") in caught.value.where
    assert own_cache_folder("") is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "none" / "home").mkdir(parents=True)
    make()


def test_a_cache_folder_is_this_account_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = own_cache_folder("one")
    assert folder == tmp_path / "cache/nndeploy/one"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert own_cache_folder("one") == folder
    folder.chmod(0o777)
    assert own_cache_folder("one") is None
    (tmp_path / "cache/nndeploy/other").symlink_to(tmp_path)
    assert own_cache_folder("other") is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    assert own_cache_folder("one") is None
