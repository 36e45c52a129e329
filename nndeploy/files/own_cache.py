# SPDX-License-Identifier: Apache-2.0
"""Folders of ours in the account's cache, which no process in a sandbox may write."""

import os
import stat
from pathlib import Path

from nndeploy.files.account_folders import cache_folder
from nndeploy.files.whole_files import make_folders


def own_cache_folder(name: str) -> Path | None:
    """Returns the folder `name` of ours in the cache folder, made where it is absent; None where it cannot be used.

    It belongs to this account, and nobody else may write to it.
    """
    folder = cache_folder() / "nndeploy" / name
    try:
        make_folders(folder, 0o700)
        found = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_ours or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or not os.access(folder, os.W_OK):
        return None
    return folder
