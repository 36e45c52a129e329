# SPDX-License-Identifier: Apache-2.0
"""The folders of the account: its cache, its configuration, its data.

Law: nothing is made below a home that does not exist (`nndeploy.files.whole_files.make_folders`), by root neither.
"""

import os
import pwd
from pathlib import Path

NOBODYS_HOME = Path("/nonexistent")
"""The home of an account that has none."""


def home() -> Path:
    """Returns the home folder: what the environment says, else the account's entry; it may not exist."""
    return _named("HOME") or _entry() or NOBODYS_HOME


def cache_folder() -> Path:
    """Returns the cache folder of the account; that of a job lies in its own folder, which is its home."""
    return _named("XDG_CACHE_HOME") or home() / ".cache"


def config_folder() -> Path:
    """Returns the configuration folder of the account."""
    return _named("XDG_CONFIG_HOME") or home() / ".config"


def data_folder() -> Path:
    """Returns the folder for data of the account."""
    return _named("XDG_DATA_HOME") or home() / ".local" / "share"


def _named(variable: str) -> Path | None:
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else None


def _entry() -> Path | None:
    """Returns the home folder that the account's entry says."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None
