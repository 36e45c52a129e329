# SPDX-License-Identifier: Apache-2.0
"""Where an account keeps its cache and its keys."""

import os
import pwd
from pathlib import Path

import pytest

from nndeploy.files.account_folders import NOBODYS_HOME, cache_folder, config_folder, own_cache_folder


def test_named_folders_count_if_they_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert config_folder() == Path("/c")
    assert cache_folder() == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache"


def test_keys_are_below_home_and_an_account_without_any_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", "/h")
    assert config_folder() == Path("/h/.config")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    assert config_folder() == NOBODYS_HOME / ".config"


def test_an_account_without_entry_and_home_has_no_cache_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is in a container for a user by number alone."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    monkeypatch.setenv("HOME", "/h")
    assert cache_folder() == Path("/h/.cache")
    monkeypatch.delenv("HOME")
    assert cache_folder() == NOBODYS_HOME / ".cache"
    assert own_cache_folder("kernels") is None
    assert not NOBODYS_HOME.exists()


def no_entry(_: int) -> None:
    raise KeyError
