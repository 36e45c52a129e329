# SPDX-License-Identifier: Apache-2.0
"""The cache folder of the account, for what a compiler makes once and needs again; never for what was given to us."""

import os
import pwd
import stat
from pathlib import Path


def cache_folder() -> Path:
    """Returns the cache folder of the account; a job's HOME is a private folder, so the account's entry counts."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache"
    except KeyError:  # an account without an entry
        return Path.home() / ".cache"


def own_cache_folder(name: str) -> Path | None:
    """Returns the folder `name` of ours in the cache folder, made where it is absent; None where it cannot be used.

    It belongs to this account, and nobody else may write to it.
    """
    folder = cache_folder() / "nndeploy" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or not os.access(folder, os.W_OK):
        return None
    return folder
