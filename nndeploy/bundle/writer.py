# SPDX-License-Identifier: Apache-2.0
"""Writes a bundle: the last step of the compile flow.

A manifest, its members and the report come in; one file goes out. Laws: the same arguments give the same bytes; after
every failure and every kill there is the old file, the new one, or none, never a part of one; and what the reader would
refuse is not written.

The content is written to a temporary file in the same folder, synced, renamed, and the folder is synced. The file is
locked while it is written, so that one that a kill left is known, and the next bundle written there removes it.
"""

import dataclasses
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from nndeploy.bundle.container import Buffer, check_names, encode_container
from nndeploy.bundle.manifest import Manifest, Member
from nndeploy.bundle.manifest_check import REPORT_NAME, SIGNATURE_NAME, check_manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME, decode_manifest, encode_manifest
from nndeploy.errors import BundleError, CannotCreateError, InputOutputError
from nndeploy.files.file_content import KnownHashes, let_go_of_pages
from nndeploy.files.strict_json import canonical_json
from nndeploy.files.whole_files import new_file, sync_folder, wrapped_io

RESERVED_NAMES = (MANIFEST_NAME, REPORT_NAME, SIGNATURE_NAME)


def write_bundle(
    path: str | Path,
    manifest: Manifest,
    members: Mapping[str, Buffer],
    report: Mapping[str, object],
    hashes: KnownHashes | None = None,
) -> Manifest:
    """Writes the bundle to `path`, in place of the file that is there, and returns the manifest with its members.

    `members` are all but `manifest.json` and `report.json`, which are made of the other arguments; `manifest.members`
    is not read. What `hashes` know of them is not computed again.

    Raises:
        BundleError: a name is reserved or not allowed, the manifest's parts do not fit together, or plain data hold
            what JSON cannot say.
        CannotCreateError: the folder is missing or not writable, or `path` is something else than a regular file.
        InputOutputError: the disk is full or failed.
    """
    path = Path(path)
    try:
        contents, complete = sealed_bundle(manifest, members, report, hashes)
    except BundleError as err:
        err.within(str(path))
        raise
    replace_file(path, encode_container(contents))
    return complete


def sealed_bundle(
    manifest: Manifest,
    members: Mapping[str, Buffer],
    report: Mapping[str, object],
    hashes: KnownHashes | None = None,
) -> tuple[dict[str, Buffer], Manifest]:
    """Returns all members of a bundle, its manifest among them, and that manifest; arguments are as for `write_bundle`.

    Raises:
        BundleError: as there.
    """
    contents = _contents(members, report)
    of = (hashes or KnownHashes()).of
    listed = {name: Member(of(members.get(name, data)), len(data)) for name, data in contents.items()}
    contents[MANIFEST_NAME], complete = _sealed(dataclasses.replace(manifest, members=listed))
    check_names(contents)
    return contents, complete


def check_can_create(path: str | Path) -> None:
    """Checks that a bundle can be written to `path` by making a hidden file beside it, which is gone afterwards.

    Raises:
        CannotCreateError: the folder is missing or not writable, or `path` is something else than a regular file.
    """
    path = Path(path)
    _check_place(path)
    new_file(path).discard()


def _check_place(path: Path) -> None:
    """Refuses what can be known from the path and its folder alone."""
    try:
        mode = _mode(path)
        folder_is_there, is_writable = path.parent.is_dir(), os.access(path.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError) as err:
        raise CannotCreateError(f"cannot be created: {_reason(err)}", where=str(path)) from err
    if not folder_is_there:
        raise CannotCreateError(f"there is no folder {str(path.parent)!r}", where=str(path), hint="create it first")
    if mode is not None and stat.S_ISDIR(mode):
        raise CannotCreateError("is a folder", where=str(path), hint=f"name a file, such as {path / 'model.nnd'}")
    if mode is not None and stat.S_ISLNK(mode):
        raise CannotCreateError("is a symbolic link", where=str(path), hint="name the file itself")
    if mode is not None and not stat.S_ISREG(mode):
        raise CannotCreateError("is not a regular file", where=str(path))
    if not is_writable:
        raise CannotCreateError(f"the folder {str(path.parent)!r} is not writable", where=str(path))


def _contents(members: Mapping[str, Buffer], report: Mapping[str, object]) -> dict[str, Buffer]:
    for name in RESERVED_NAMES:
        if name in members:
            raise BundleError(f"the member name {name!r} is reserved")
    contents: dict[str, Buffer] = {name: memoryview(data).cast("B") for name, data in members.items()}
    try:
        contents[REPORT_NAME] = canonical_json(report)
    except BundleError as err:
        err.within(REPORT_NAME)
        raise
    return contents


def _sealed(manifest: Manifest) -> tuple[bytes, Manifest]:
    """Returns the text of the manifest, and the manifest that the reader will make of it."""
    try:
        text = encode_manifest(manifest)
        complete = decode_manifest(text)
        check_manifest(complete)
    except BundleError as err:
        err.within(MANIFEST_NAME)
        raise
    return text, complete


def replace_file(path: Path, chunks: Iterable[Buffer], *, is_program: bool = False) -> None:
    """Writes a file whole and synced, in place of the one that is there; a program may be executed by who may read it.

    Raises:
        CannotCreateError: the folder is missing or not writable, or `path` is something else than a regular file.
        InputOutputError: the disk is full or failed.
    """
    _check_place(path)
    new = new_file(path)
    try:
        with wrapped_io(path):
            for chunk in chunks:
                new.file.write(chunk)
                let_go_of_pages(chunk)
            if is_program:
                mode = os.fstat(new.file.fileno()).st_mode
                os.fchmod(new.file.fileno(), stat.S_IMODE(mode) | (mode & 0o444) >> 2)
        new.finish()
    finally:
        new.discard()
    try:
        sync_folder(path.parent)
    except OSError as err:
        raise InputOutputError(f"written, but perhaps not to stay: {_reason(err)}", where=str(path)) from err


def _mode(path: Path) -> int | None:
    """Returns the mode of what is at `path` itself, links not followed; None where nothing is."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _reason(err: OSError | ValueError) -> str:
    return (err.strerror or str(err)) if isinstance(err, OSError) else str(err)
