# SPDX-License-Identifier: Apache-2.0
"""The trust store: what is trusted, and that a damaged store trusts nobody."""

import datetime as dt
import threading
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from nndeploy.errors import CannotCreateError, DataError, PolicyError, UsageError
from nndeploy.trust import trust_store
from nndeploy.trust.public_key import PublicKey
from nndeploy.trust.signing import trust_key
from nndeploy.trust.statement import release_numbers
from nndeploy.trust.trust_store import TrustedKey, TrustStore, change_store, read_store

ONE, TWO = PublicKey(b"\1" * 32), PublicKey(b"\2" * 32)
TODAY = dt.date(2026, 11, 25)
Said = tuple[tuple[str, ...], str]
"""Scopes, and the last day."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that trusts one key."""
    trust_key(tmp_path / "trust.json", ONE, "one")
    return tmp_path / "trust.json"


def others_may_write(path: Path) -> None:
    for use in (read_store, lambda found: trust_key(found, TWO, "two")):
        with pytest.raises(PolicyError, match="other users"):
            use(path)


def test_a_store_that_is_not_there_trusts_nobody(tmp_path: Path) -> None:
    store = read_store(tmp_path / "trust.json")
    assert store == TrustStore()
    assert store.needed == {"code": 1, "data": 0}


def test_what_was_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "made" / "trust.json"
    trust_key(path, ONE, "one", frozenset(("data",)), "2027-01-31")
    changed = change_store(path, lambda old: replace(old, floors={"m": "1.2"}, revoked=frozenset((TWO.id,))))
    assert read_store(path) == changed
    assert changed.keys == {ONE.id: TrustedKey(ONE, "one", frozenset(("data",)), "2027-01-31")}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_revoked_key_is_never_trusted_again(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    change_store(path, lambda old: replace(old, revoked=frozenset((ONE.id,))))
    with pytest.raises(PolicyError, match="was revoked"):
        trust_key(path, ONE, "one")


@pytest.mark.parametrize("keep", range(0, 200, 7))
def test_a_cut_store_is_refused_and_not_empty(path: Path, keep: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    with pytest.raises(PolicyError, match="the trust store"):
        read_store(path)


def test_a_store_that_others_may_write_is_refused(path: Path) -> None:
    path.chmod(0o666)
    others_may_write(path)


def test_a_store_in_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "made" / "trust.json"
    trust_key(path, ONE, "one")
    path.parent.chmod(0o777)
    with pytest.raises(PolicyError, match="other users"):
        read_store(path)
    path.unlink()
    with pytest.raises(PolicyError, match="other users"):
        read_store(path)
    path.parent.chmod(0o1777)  # in a sticky folder nobody removes what is not his
    assert read_store(path) == TrustStore()


@pytest.mark.parametrize(("outer", "inner", "is_taken"), [
    (0o755, 0o755, True), (0o755, 0o777, False), (0o777, 0o700, False),
    (0o1777, 0o755, True),  # nobody removes or renames there what is not his
    (0o700, 0o777, False),  # whoever opens the outer folder one day opens this one
    (0o700, 0o775, True),  # umask 002 in a home that is closed
])  # fmt: skip
@pytest.mark.parametrize("by_link", [False, True])
def test_a_store_below_a_folder_that_others_may_write_is_refused(tmp_path, outer, inner, is_taken, by_link) -> None:
    folder = tmp_path / "outer" / "inner"
    real = folder / "config" / "trust.json"
    trust_key(real, ONE, "one")
    path = real
    if by_link:
        (tmp_path / "link").symlink_to("outer/inner")
        path = tmp_path / "link" / "config" / "trust.json"
    folder.chmod(inner)
    folder.parent.chmod(outer)
    if is_taken:
        assert read_store(path).keys.keys() == {ONE.id}
        return
    others_may_write(path)


def test_the_file_that_is_read_is_the_one_that_was_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = path.with_name("others.json")
    trust_key(others, TWO, "two")
    others.chmod(0o666)
    opened = trust_store.open_regular

    def open_and_swap(path: Path, max_bytes: int) -> BinaryIO:
        others.replace(path)
        return opened(path, max_bytes)

    monkeypatch.setattr(trust_store, "open_regular", open_and_swap)
    with pytest.raises(PolicyError, match="other users"):
        read_store(path)


@pytest.mark.parametrize("name", ["", "\udcff", "x" * (5 << 20)])
def test_what_could_not_be_read_again_is_not_written(path: Path, name: str) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError, match="cannot say this"):
        change_store(path, lambda old: replace(old, floors={name: "1.0"}))
    with pytest.raises(UsageError, match="cannot say this"):
        trust_key(path, TWO, name)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("old", "new"), [
    (b'"major":1', b'"major":2'), (b'"one"', b'""'), (b'"code"]', b'"root"]'),
    (b'"not_after":""', b'"not_after":"soon"'), (b'"needed":{"code":1', b'"needed":{"code":0'),
    (b'"floors":{}', b'"floors":{"m":"1.x"}'), (b'"revoked":[]', b'"revoked":[],"revoked":[]'),
])  # fmt: skip
def test_a_store_that_says_nonsense_is_refused(path: Path, old: bytes, new: bytes) -> None:
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new))
    with pytest.raises(PolicyError, match="the trust store"):
        read_store(path)


def test_of_two_stores_the_stricter_word_counts() -> None:
    mine = TrustStore({ONE.id: TrustedKey(ONE, "one", frozenset(("data",)))}, frozenset(), {"m": "1.9"})
    machine = TrustStore(
        {ONE.id: TrustedKey(ONE, "farm", frozenset(("code",)))},
        frozenset((TWO.id,)), {"m": "1.10", "n": "2"}, {"code": 2, "data": 0},
    )  # fmt: skip
    both = mine.joined(machine)
    assert both.revoked == {TWO.id}
    assert both.floors == {"m": "1.10", "n": "2"}
    assert both.needed == {"code": 2, "data": 0}
    assert both.keys[ONE.id].scopes == {"data"}


@pytest.mark.parametrize(("mine", "machines", "stricter"), [
    ((("code",), ""), (("code",), "2026-11-24"), (("code",), "2026-11-24")),
    ((("code",), "2026-11-24"), (("code",), ""), (("code",), "2026-11-24")),
    ((("code", "data"), "2027-01-01"), (("data",), "2028-01-01"), (("data",), "2027-01-01")),
    ((("code", "data"), ""), (("code",), ""), (("code",), "")),
])  # fmt: skip
def test_a_key_that_two_stores_name_is_trusted_as_far_as_both_do(mine: Said, machines: Said, stricter: Said) -> None:
    def store(said: Said) -> TrustStore:
        return TrustStore({ONE.id: TrustedKey(ONE, "one", frozenset(said[0]), said[1])})

    assert store(mine).joined(store(machines)) == store(stricter) == store(machines).joined(store(mine))


@pytest.mark.parametrize(("scopes", "not_after", "wanted", "problem"), [
    (("code",), "", "code", ""), (("code",), "", "data", ""), (("data",), "", "data", ""),
    (("data",), "", "code", "is trusted with data alone"), (("code",), "2026-11-25", "code", ""),
    (("code",), "2026-11-24", "code", "was trusted until 2026-11-24"),
])  # fmt: skip
def test_a_key_is_trusted_with_its_scopes_until_its_day(scopes, not_after, wanted, problem) -> None:
    assert TrustedKey(ONE, "one", frozenset(scopes), not_after).why_not(wanted, TODAY) == problem


def test_changes_of_many_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    keys = [PublicKey(bytes([number]) * 32) for number in range(16)]
    threads = [threading.Thread(target=trust_key, args=(path, key, f"k{i}")) for i, key in enumerate(keys)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_store(path).keys.keys() == {key.id for key in keys}
    assert {one.name for one in tmp_path.iterdir()} == {"trust.json", "trust.json.lock"}


def test_a_store_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotCreateError):
        trust_key(tmp_path / "file" / "trust.json", ONE, "one")


def test_releases_are_ordered_as_numbers() -> None:
    texts = ["0", "0.9", "1", "1.0.1", "1.9", "1.10", "2.0.0"]
    numbers = [release_numbers(text) for text in texts]
    assert numbers == sorted(numbers)
    assert release_numbers("1.0") == release_numbers("1")
    for text in ("", "v1", "1..2", "01", "1.2.3.4.5.6.7", "1" * 10):
        with pytest.raises(DataError):
            release_numbers(text)


def test_a_link_to_a_file_that_others_may_write_is_refused(path: Path) -> None:
    link = path.with_name("link.json")
    link.symlink_to(path.name)
    assert read_store(link).keys.keys() == {ONE.id}
    path.chmod(0o666)
    others_may_write(link)
