# SPDX-License-Identifier: Apache-2.0
"""Where an account keeps its cache and its keys."""

import os
import pwd
from pathlib import Path

import pytest

from nndeploy.files.account_folders import NOBODYS_HOME, cache_folder, config_folder


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

    def no_entry(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    assert config_folder() == NOBODYS_HOME / ".config"
