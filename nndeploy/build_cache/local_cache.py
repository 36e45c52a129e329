# SPDX-License-Identifier: Apache-2.0
"""A cache of builds in a folder: of this account's, or one that machines share.

    <folder>/ac/ab/<key>        an entry, signed            cas/cd/<sha256>   a file, read-only
             near/ab/<name>     keys of builds of one model, the newest last
             locks/<key>  tmp/  total

The names are those of bazel-remote. A file is written before the entry that names it, each under a temporary name
first; the first entry of a key stays. A folder that cannot be written, of another account, an image or a read-only
mount, is read. Law: nothing comes out of which the digest was not compared while it was read, or
of which the entry is not signed by a key that is trusted with code; whatever else happens to the folder costs a build.
"""

import contextlib
import datetime as dt
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nndeploy.build_cache.entry import MAX_ENTRY_BYTES, Blob, Entry, decode, encode
from nndeploy.errors import (
    BundleError,
    CannotCreateError,
    InputError,
    InputOutputError,
    MissingInputError,
    NndeployError,
    PolicyError,
)
from nndeploy.files.account_folders import cache_folder
from nndeploy.files.locked_file import locked_file
from nndeploy.files.pieces import pieces_of, written
from nndeploy.files.whole_files import make_folders, new_file, read_regular, wrapped_io, write_file
from nndeploy.trust.signers import Signer
from nndeploy.trust.trust_store import TrustStore

VARIABLE = "NNDEPLOY_CACHE_DIR"
ENTRIES, BLOBS, NEAR, LOCKS, TEMPORARY = "ac", "cas", "near", "locks", "tmp"
FOLDERS = (ENTRIES, BLOBS, NEAR, LOCKS, TEMPORARY)
MAX_NEAR, MAX_NEAR_BYTES = 32, 1 << 20
_DAY_SECONDS = 86_400
_UNUSABLE = (BundleError, PolicyError, MissingInputError, InputError, InputOutputError)


def default_cache_folder() -> Path | None:
    """Returns the folder that `VARIABLE` names, None where that is nothing; else that of this account."""
    if (named := os.environ.get(VARIABLE)) is not None:
        return Path(named) if named else None
    return cache_folder() / "nndeploy-builds"


class LocalCache:
    """Builds by key, in a folder.

    `complain` hears, when `tell_unused` is called, a line for each reason why entries or files were there and not used.
    `why_read_only` says why nothing can be added, "" where it can be: also where there is no signer.
    """

    def __init__(
        self,
        folder: Path,
        store: TrustStore,
        signer: Signer | None,
        complain: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Makes the folder where it is not there.

        Raises:
            CannotCreateError: it is not there and cannot be made.
        """
        self.folder = folder
        self._store = store
        self._signer = signer
        self._complain = complain
        self._unused: dict[str, list[Path]] = {}
        self.why_read_only = _made(folder) or ("" if signer is not None else "there is no key to sign entries")

    def check_writable(self) -> None:
        """Checks that the folder can be changed.

        Raises:
            CannotCreateError: it cannot be.
        """
        if self.why_read_only:
            raise CannotCreateError(f"the cache cannot be written: {self.why_read_only}", where=str(self.folder))

    def tell_unused(self) -> None:
        """Complains of what was not used since the last time, in a line for each reason."""
        for why, paths in self._unused.items():
            more = f", and {len(paths) - 1:,} more" if len(paths) > 1 else ""
            self._complain(f"not used from the cache: {why} ({paths[0]}{more})")
        self._unused.clear()

    def _left(self, path: Path, err: NndeployError) -> None:
        why = err.what + (f"; {err.hint}" if err.hint else "")
        self._unused.setdefault(why, []).append(path)

    def entry(self, key: str, *, is_use: bool = True) -> Entry | None:
        """Returns the entry of a key, None where there is none that is to be used; `is_use`: so it stays longer."""
        found = self.signed(key)
        if found is None:
            return None
        if is_use:
            _used(self._entry_path(key))
        return found[0]

    def signed(self, key: str) -> tuple[Entry, bytes] | None:
        """Returns the entry of a key and its text, with the signature; None where there is none that is to be used."""
        path = self._entry_path(key)
        try:
            text = read_regular(path, MAX_ENTRY_BYTES)
            return decode(text, key, self._store, dt.datetime.now(dt.UTC).date()), text
        except _UNUSABLE as err:
            if not isinstance(err.__cause__, FileNotFoundError):
                self._left(path, err)
            return None

    def named(self, key: str) -> Entry | None:
        """Returns the entry of a key, whoever signed it; None where there is none that is one.

        Raises:
            MissingInputError, InputOutputError: it cannot be read.
        """
        try:
            return decode(read_regular(self._entry_path(key), MAX_ENTRY_BYTES), key, None, dt.date.min)
        except (BundleError, InputError):
            return None

    def copy(self, blob: Blob, write: Callable[[bytes], object]) -> bool:
        """Hands the content of a file to `write`, piece by piece; returns whether it was that, to the last byte.

        Raises:
            OSError: `write` did.
        """
        path = self.place(blob)
        try:
            found = written(pieces_of(path), write)
        except _UNUSABLE as err:
            self._left(path, err)
            return False
        if found != (blob.sha256, blob.size):
            self._left(path, BundleError("a file has changed"))
            with contextlib.suppress(OSError):  # so that the next build brings it again, where it may be removed
                path.unlink()
            return False
        return True

    def has(self, blob: Blob) -> bool:
        """Returns whether a file is there with its size; its content was not compared."""
        try:
            return self.place(blob).stat().st_size == blob.size
        except OSError:
            return False

    def has_all(self, entry: Entry) -> bool:
        """Returns whether all files of an entry are there, each with its size."""
        return all(map(self.has, entry.outputs.values()))

    def content(self, blob: Blob) -> bytes | None:
        """Returns the content of a small file, None where it is not to be used."""
        chunks: list[bytes] = []
        return b"".join(chunks) if self.copy(blob, chunks.append) else None

    def add_file(self, source: Path) -> Blob:
        """Takes in a file and returns what it is.

        Raises:
            MissingInputError, InputError, InputOutputError: it cannot be read, or the cache not be written.
            CannotCreateError: the cache cannot be written.
        """
        return self._added(pieces_of(source))

    def add_pieces(self, blob: Blob, pieces: Iterator[bytes]) -> None:
        """Takes in a file that comes from elsewhere, piece by piece.

        Raises:
            BundleError: it is another file.
            CannotCreateError, InputOutputError: the cache cannot be written.
            NndeployError: what the pieces raise.
        """
        self._added(pieces, blob)

    def _added(self, pieces: Iterator[bytes], expected: Blob | None = None) -> Blob:
        new = new_file(self.folder / TEMPORARY / os.urandom(8).hex())

        def write(piece: bytes) -> None:
            with wrapped_io(new.path):
                new.file.write(piece)

        try:
            blob = Blob(*written(pieces, write))
            if expected not in (None, blob):
                raise BundleError("a file does not match its digest")
            with wrapped_io(new.path):
                os.fchmod(new.file.fileno(), 0o444)
            new.finish(sync=False)
        finally:
            new.discard()
        path = self.place(blob)
        with wrapped_io(path):
            _make(path.parent)
            new.path.replace(path)
        return blob

    def add(self, entry: Entry, near: str, most: int = MAX_NEAR) -> None:
        """Takes in an entry, of which the files are there already, unless one of its key is there with its own.

        It joins those that `near` names, of which the newest `most` are known.

        Raises:
            CannotCreateError, InputOutputError: the cache cannot be written.
        """
        known = self.entry(entry.key)
        is_there = known is not None and self.has_all(known)
        self.check_writable()
        assert self._signer is not None
        self._keep(entry, None if is_there else encode(entry, self._signer), near, most)

    def adopt(self, entry: Entry, text: bytes, near: str) -> None:
        """Takes in an entry as somebody else signed it, of which the files are there already; else as `add`."""
        self._keep(entry, text, near, MAX_NEAR)

    def _keep(self, entry: Entry, text: bytes | None, near: str, most: int) -> None:
        if text is not None:
            path = self._entry_path(entry.key)
            _make(path.parent)
            write_file(path, lambda file: file.write(text))
        keys = [key for key in self._keys_near(near) if key != entry.key]
        near_path = self._near_path(near)
        _make(near_path.parent)
        write_file(near_path, lambda file: file.write("\n".join([*keys, entry.key][-most:]).encode()))

    def near(self, name: str) -> list[Entry]:
        """Returns the entries that were added near a name, the newest last."""
        entries = (self.entry(key, is_use=False) for key in self._keys_near(name))
        return [entry for entry in entries if entry is not None]

    def place(self, blob: Blob) -> Path:
        """Returns where a file lies, if it is there."""
        return self.folder / BLOBS / blob.sha256[:2] / blob.sha256

    @contextlib.contextmanager
    def held(self, key: str) -> Iterator[None]:
        """Keeps other processes of this machine from building the same at the same time."""
        with contextlib.ExitStack() as lock:
            with contextlib.suppress(OSError):  # two builds of the same are no mistake
                lock.enter_context(locked_file(self.folder / LOCKS / key))
            yield

    def _keys_near(self, near: str) -> Sequence[str]:
        try:
            text = read_regular(self._near_path(near), MAX_NEAR_BYTES).decode("ascii")
            return [key for key in text.split("\n") if is_key(key)]
        except (*_UNUSABLE, UnicodeDecodeError):
            return []

    def _entry_path(self, key: str) -> Path:
        return self.folder / ENTRIES / key[:2] / key

    def _near_path(self, near: str) -> Path:
        name = hashlib.sha256(near.encode("utf-8", "surrogateescape")).hexdigest()
        return self.folder / NEAR / name[:2] / name


def is_key(text: str) -> bool:
    """Returns whether a text is a key, or a digest."""
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


def _made(folder: Path) -> str:
    """Makes the folders of a cache; returns why it can only be read, "" where it can be written.

    What is below a folder that the user made is for those whom the umask admits.

    Raises:
        CannotCreateError: it is not there and cannot be made.
    """
    try:
        if not folder.is_dir():
            make_folders(folder, 0o700)
        for name in FOLDERS:
            (folder / name).mkdir(exist_ok=True)
    except OSError as err:
        with contextlib.suppress(OSError):
            if (folder / ENTRIES).is_dir():
                return err.strerror or str(err)
        raise CannotCreateError(f"cannot create the cache: {err.strerror}", where=str(folder)) from err
    return "" if os.access(folder / ENTRIES, os.W_OK) else "nothing can be created there"


def _make(folder: Path) -> None:
    with wrapped_io(folder):
        folder.mkdir(exist_ok=True)


def _used(path: Path) -> None:
    """Says that an entry was used, at most once a day: what was not used for longest is removed first."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _DAY_SECONDS:
            os.utime(path)
