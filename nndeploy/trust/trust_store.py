# SPDX-License-Identifier: Apache-2.0
"""Whom a machine trusts, to what, until when: a file of the account's, and one of the machine's.

Both are read as one: a key of either is trusted, a revocation in either counts, and where both say something the
stricter word does: of two scopes data, of two days the earlier, of two floors the higher, of two numbers of signatures
the larger. Laws: a store that is damaged, or that others may write or replace, trusts nobody and is an error, never an
empty one; it is replaced whole, and only by what can be read again; floors and numbers of signatures are lowered only
for who says so.

Source: sshd_config(5), StrictModes, for the folders above.
"""

import base64
import contextlib
import datetime as dt
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nndeploy.bundle.json_fields import Fields, minor_version
from nndeploy.errors import (
    BundleError,
    CannotCreateError,
    DataError,
    InputOutputError,
    MissingInputError,
    PolicyError,
    UsageError,
    lacks_files,
)
from nndeploy.files.account_folders import config_folder
from nndeploy.files.locked_file import locked_file
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.files.whole_files import (
    make_folders,
    open_regular,
    replace_durably,
)
from nndeploy.trust.public_key import RAW_BYTES, PublicKey
from nndeploy.trust.statement import release_numbers

DATA, CODE = "data", "code"
SCOPES = (CODE, DATA)
"""What a key may be trusted with: bundles of any kind, or those that hold no code."""
FORMAT, VERSION = "nndeploy-trust", (1, 0)
MACHINE_STORE = Path("/etc/nndeploy/trust.json")
MAX_BYTES = 4 << 20
MAX_NEEDED = 64
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A key that a machine trusts; `not_after` is the last day of it (ISO 8601, UTC), "" where it has none."""

    public: PublicKey
    name: str
    scopes: frozenset[str]
    not_after: str = ""

    def why_not(self, scope: str, today: dt.date) -> str:
        """Returns why the key is not trusted with a scope, "" where it is; who is trusted with code is with data."""
        if self.not_after and today > dt.date.fromisoformat(self.not_after):
            return f"was trusted until {self.not_after}"
        if scope not in self.scopes and CODE not in self.scopes:
            return f"is trusted with {' and '.join(sorted(self.scopes))} alone"
        return ""

    def stricter(self, other: "TrustedKey") -> "TrustedKey":
        """Returns the key with no more trust than either gives it."""
        scopes = frozenset((CODE,) if CODE in self.scopes & other.scopes else (DATA,))
        return replace(self, scopes=scopes, not_after=min(filter(None, (self.not_after, other.not_after)), default=""))

    def to_json(self) -> dict[str, Any]:
        """Returns what a store says of the key, as plain data."""
        public = base64.b64encode(self.public.raw).decode("ascii")
        return {"name": self.name, "not_after": self.not_after, "public": public, "scopes": sorted(self.scopes)}


@dataclass(frozen=True)
class TrustStore:
    """Trusted keys by id, ids of revoked ones, the least release by model, and how many must sign by scope."""

    keys: Mapping[str, TrustedKey] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()
    floors: Mapping[str, str] = field(default_factory=dict)
    needed: Mapping[str, int] = field(default_factory=lambda: {CODE: 1, DATA: 0})

    def joined(self, other: "TrustStore") -> "TrustStore":
        """Returns what holds where both stores do."""
        floors = dict(self.floors)
        for model, least in other.floors.items():
            if model not in floors or release_numbers(least) > release_numbers(floors[model]):
                floors[model] = least
        keys = dict(self.keys)
        for key_id, key in other.keys.items():
            known = keys.get(key_id)
            keys[key_id] = key if known is None else key.stricter(known)
        needed = {scope: max(self.needed[scope], other.needed[scope]) for scope in SCOPES}
        return TrustStore(keys, self.revoked | other.revoked, floors, needed)


def user_store() -> Path:
    """Returns the path of the account's store."""
    return config_folder() / "nndeploy" / "trust.json"


def trust_store() -> TrustStore:
    """Returns what this account trusts on this machine.

    Raises:
        PolicyError: a store is damaged, or other users can write to it.
    """
    return read_store(user_store()).joined(read_store(MACHINE_STORE))


def read_store(path: Path) -> TrustStore:
    """Returns the store in a file, an empty one where there is none.

    Raises:
        PolicyError: it is damaged, cannot be read, or other users can write to it.
    """
    try:
        _check_alone(path.parent.stat(), path.parent)
        if path.exists():
            _check_above(path)
        with open_regular(path, MAX_BYTES) as file:  # what is asked of the file is asked of the one that is read
            _check_alone(os.fstat(file.fileno()), path)
            return _from_json(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return TrustStore()
    except MissingInputError as err:
        if isinstance(err.__cause__, FileNotFoundError | NotADirectoryError):
            return TrustStore()
        raise _unusable(path, err.what) from err
    except OSError as err:
        if lacks_files(err):
            raise
        raise _unusable(path, f"cannot be read: {err.strerror}") from err
    except (DataError, InputOutputError) as err:
        if lacks_files(err):
            raise
        raise _unusable(path, err.what) from err


def _check_alone(found: os.stat_result, path: Path) -> None:
    """Refuses a file or folder that others may write; in a sticky folder they can replace no file but their own."""
    may_write = found.st_mode & _OTHERS_WRITE and not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX)
    if found.st_uid not in (os.geteuid(), 0) or may_write:
        raise _unusable(path, "other users can write to it", hint=f"chmod go-w {path}, once you know what it holds")


def _check_above(path: Path) -> None:
    """Refuses a file that others may replace by renaming a folder above it, or a link on the way."""
    is_open = True  # whether others get as far as here
    for folder in [*reversed(path.absolute().parents), *reversed(path.resolve().parents)]:
        is_open = is_open or folder == Path(folder.anchor)
        found, link = folder.stat(), folder.lstat()
        may_write = found.st_mode & (_OTHERS_WRITE if is_open else stat.S_IWOTH)
        is_ours = {found.st_uid, link.st_uid} <= {os.geteuid(), 0}
        if not is_ours or (may_write and not found.st_mode & stat.S_ISVTX):
            hint = f"chmod go-w {folder}, or XDG_CONFIG_HOME names another folder"
            raise _unusable(path, f"other users can write to {folder}", hint=hint)
        is_open = is_open and bool(found.st_mode & (stat.S_IXGRP | stat.S_IXOTH))


def _unusable(
    path: Path, why: str, hint: str = "nndeploy key trust makes a new one where it is removed"
) -> PolicyError:
    return PolicyError(f"the trust store cannot be used: {why}", where=str(path), hint=hint)


def change_store(path: Path, change: Callable[[TrustStore], TrustStore]) -> TrustStore:
    """Replaces the store in a file by what `change` makes of it, and returns that; one process at a time.

    Raises:
        PolicyError: it is damaged, or other users can write to it.
        UsageError: what is to be said cannot be read again.
        CannotCreateError: it cannot be written there.
        InputOutputError: the disk is full or failed.
    """
    make_private_folder(path.parent)
    _check_above(path)
    with _locked(path.with_name(f"{path.name}.lock")):
        changed = change(read_store(path))
        text = canonical_json(_to_json(changed))
        try:
            _from_json(text)
        except DataError as err:  # an odd name, or too many: written, it would refuse every bundle
            raise UsageError(f"the trust store cannot say this: {err.what}", where=str(path)) from err
        replace_durably(path, text)
    return changed


def lowered(old: TrustStore, new: TrustStore) -> list[str]:
    """Returns a line for each floor and number of signatures that is lower in a store than it was."""
    found = [
        f"the floor of {model!r}, {least}"
        for model, least in sorted(old.floors.items())
        if release_numbers(new.floors.get(model, "0")) < release_numbers(least)
    ]
    return found + [
        f"the number of signatures for {scope}, {number}"
        for scope, number in sorted(old.needed.items())
        if new.needed[scope] < number
    ]


def lifting_command(model: str) -> str:
    """Returns what to type to lift the floor of a model: that of the machine's store where it has one, as it counts."""
    with contextlib.suppress(PolicyError):  # one that cannot be used is told of where it is asked
        if model in read_store(MACHINE_STORE).floors:
            return f"nndeploy key floor {model} --remove --machine"
    return f"nndeploy key floor {model} --remove"


def make_private_folder(path: Path) -> None:
    """Makes a folder of the account's for keys, where it is not there.

    Raises:
        CannotCreateError: it cannot be made.
    """
    try:
        make_folders(path, 0o700)
    except OSError as err:
        raise CannotCreateError(f"the folder cannot be created: {err.strerror}", where=str(path)) from err


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with contextlib.ExitStack() as lock:
        try:
            lock.enter_context(locked_file(path))
        except OSError as err:
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(path)) from err
        yield


def _to_json(store: TrustStore) -> dict[str, Any]:
    return {
        "format": {"major": VERSION[0], "minor": VERSION[1], "name": FORMAT},
        "floors": dict(store.floors),
        "keys": [key.to_json() for _, key in sorted(store.keys.items())],
        "needed": dict(store.needed),
        "revoked": sorted(store.revoked),
    }


def _from_json(text: bytes) -> TrustStore:
    data = parse_json(text, MAX_BYTES, is_canonical=False)
    fields = Fields(data, "", ignore_unknown=minor_version(data, FORMAT, VERSION) > VERSION[1])
    fields.take("format")
    keys = {key.public.id: key for key in map(_key_from_json, fields.list_of_fields("keys"))}
    floors = fields.names_by_name("floors")
    for least in floors.values():
        release_numbers(least)
    needed = fields.fields("needed")
    numbers = {scope: needed.integer(scope, least=int(scope == CODE), most=MAX_NEEDED) for scope in SCOPES}
    needed.end()
    revoked = frozenset(fields.names("revoked"))
    fields.end()
    return TrustStore(keys, revoked, floors, numbers)


def _key_from_json(fields: Fields) -> TrustedKey:
    try:
        raw = base64.b64decode(fields.text("public"), validate=True)
    except ValueError as err:
        raise fields.refuse("public", "base64") from err
    if len(raw) != RAW_BYTES:
        raise fields.refuse("public", f"{RAW_BYTES} bytes")
    scopes = frozenset(fields.names("scopes", least=1))
    if scopes - set(SCOPES):
        raise fields.refuse("scopes", " or ".join(SCOPES))
    not_after = fields.text("not_after")
    if not_after:
        check_day(not_after)
    key = TrustedKey(PublicKey(raw), fields.name("name"), scopes, not_after)
    fields.end()
    return key


def check_day(text: str) -> str:
    """Returns a day as YYYY-MM-DD.

    Raises:
        BundleError: the text is none.
    """
    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError as err:
        raise BundleError(f"{text!r:.40} is not a date", hint="as in 2027-12-31") from err
