# SPDX-License-Identifier: Apache-2.0
"""The folders of the account: its cache, for what a compiler makes once and needs again, configuration, data."""

import os
import pwd
import stat
from pathlib import Path

NOBODYS_HOME = Path("/nonexistent")
"""The home of an account that has none: nothing is read or made there."""


def cache_folder() -> Path:
    """Returns the cache folder of the account; a job's HOME is a private folder, so the account's entry counts."""
    return _named("XDG_CACHE_HOME") or (_entry() or _named("HOME") or NOBODYS_HOME) / ".cache"


def config_folder() -> Path:
    """Returns the configuration folder of the account."""
    return _named("XDG_CONFIG_HOME") or (_named("HOME") or _entry() or NOBODYS_HOME) / ".config"


def data_folder() -> Path:
    """Returns the folder for data of the account."""
    return _named("XDG_DATA_HOME") or (_named("HOME") or _entry() or NOBODYS_HOME) / ".local" / "share"


def _named(variable: str) -> Path | None:
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else None


def _entry() -> Path | None:
    """Returns the home folder that the account's entry says."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def own_cache_folder(name: str) -> Path | None:
    """Returns the folder `name` of ours in the cache folder, made where it is absent; None where it cannot be used.

    It belongs to this account, and nobody else may write to it.
    """
    folder = cache_folder() / "nndeploy" / name
    if NOBODYS_HOME in folder.parents:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or not os.access(folder, os.W_OK):
        return None
    return folder
