# SPDX-License-Identifier: Apache-2.0
"""Bundles on a box, by name: installed, replaced, rolled back; whatever fails, the one before goes on."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests_flow_bundles import write_branches, write_double, write_fours

from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import CheckError, DataError, MissingInputError, NndeployError
from nndeploy.installed import bundle_store, floors, followed, kept_bundle
from nndeploy.installed.bundle_store import BundleStore, store_at
from nndeploy.installed.floors import installed_bundle
from nndeploy.installed.followed import FollowedProgram
from nndeploy.installed.install import InstallOptions, install
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.trust.public_key import read_public_key
from nndeploy.trust.signing import machine_key
from nndeploy.trust.trust_store import trust_store

INPUT = {"image": np.ones((2, 3), np.float32)}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BundleStore:
    """An empty store, and a working folder with two bundles."""
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "one.nnd")
    write_double(tmp_path / "two.nnd", members={"note": b"two"})
    np.savez("x.npz", **INPUT)
    return store_at(None)


def say(*arguments: str) -> None:
    assert run_command(list(arguments)) == 0


def put(store: BundleStore, source: str) -> str:
    """Installs a bundle as `faces`; returns its SHA-256."""
    state, _ = install(store, "faces", source, InstallOptions(), LoadOptions(), no_registry)
    return state.current.sha256


def no_registry(*_: object) -> None:
    raise AssertionError("no registry was named")


def files(store: BundleStore) -> set[str]:
    return {path.name for path in (store.path / "faces").iterdir()}


def test_a_name_runs_what_was_installed_last_and_goes_back(store, capsys) -> None:
    say("install", "faces", "one.nnd")
    for command in (["run", "faces@", "--input", "x.npz"], ["verify", "faces@"], ["inspect", "faces@"]):
        say(*command)
    first = store.state("faces").current
    say("install", "faces", "two.nnd")
    assert store.state("faces").previous == first
    assert files(store) == {"state.json", "lock", f"{first.sha256}.nnd", store.bundle("faces").name}
    say("rollback", "faces")
    assert store.state("faces").current == first
    say("rollback", "faces")
    assert store.state("faces").current != first
    say("install", "faces", "two.nnd")
    assert store.state("faces").previous == first  # the same again changes nothing
    capsys.readouterr()


def test_only_the_one_before_is_kept(store) -> None:
    digests = []
    for number in range(4):
        write_double(Path("n.nnd"), members={"note": bytes([number])})
        digests.append(put(store, "n.nnd"))
    assert files(store) == {"state.json", "lock", *(f"{digest}.nnd" for digest in digests[2:])}


@pytest.mark.parametrize(("make", "more", "code", "reason"), [
    (lambda: None, [], 66, "no such file"),
    (lambda: Path("bad.nnd").write_bytes(Path("two.nnd").read_bytes()[:-9]), [], 65, "bad.nnd|incoming"),
    (lambda: write_double(Path("bad.nnd"), golden=3.0), [], 1, "outputs differ"),
    (lambda: write_branches(Path("bad.nnd")), [], 1, "no goldens"),
    (lambda: write_double(Path("bad.nnd")), ["--max-latency", "1us"], 1, "a call takes"),
    (lambda: write_double(Path("bad.nnd")), ["--custom-ops", "no.so"], 66, "no.so"),
])  # fmt: skip
def test_whatever_fails_the_one_before_stays(store, capsys, make, more, code, reason) -> None:
    import re

    put(store, "one.nnd")
    state, before = store.state("faces"), files(store)
    make()
    assert run_command(["install", "faces", "bad.nnd", *more]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(reason, line)
    assert (store.state("faces"), files(store)) == (state, before)
    say("run", "faces@", "--input", "x.npz")


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: None, "no such file"),
    (lambda: Path("bad.nnd").write_bytes(b"PK"), "bad.nnd: "),
    (lambda: Path("bad.nnd").mkdir(), "bad.nnd: not a folder of bundle members: it has no manifest.json"),
    (lambda: os.mkfifo("bad.nnd"), "not a regular file"),
])  # fmt: skip
def test_a_first_one_that_is_refused_leaves_nothing(store, capsys, make, reason) -> None:
    make()
    assert run_command(["install", "faces", "bad.nnd"]) in (65, 66)
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert "incoming" not in line
    assert run_command(["rollback", "faces"]) == 66
    assert not store.path.exists() or not list(store.path.iterdir())


@pytest.mark.parametrize("spoil", [
    lambda folder: (folder / "more").symlink_to("/etc/passwd"),
    lambda folder: os.mkfifo(folder / "more"),
    lambda folder: (folder / "More").write_bytes(b""),
    lambda folder: [(folder / f"{number}").touch() for number in range(40)],
    lambda folder: (folder / "manifest.json").unlink(),
])  # fmt: skip
def test_a_folder_that_holds_more_than_members_is_refused(store, monkeypatch, capsys, spoil) -> None:
    import zipfile

    monkeypatch.setattr("nndeploy.installed.install.MAX_MEMBERS", 40)
    with zipfile.ZipFile("one.nnd") as archive:
        archive.extractall("members")
    spoil(Path("members"))
    assert run_command(["install", "faces", "members"]) == 65
    (line,) = capsys.readouterr().err.splitlines()
    assert "members" in line


def test_an_installed_bundle_is_not_signed_in_its_place(store, capsys) -> None:
    say("key", "new", "farm")
    put(store, "one.nnd")
    before = store.bundle("faces").read_bytes()
    assert run_command(["sign", "faces@", "--key", "farm.key"]) == 2
    assert store.bundle("faces").read_bytes() == before
    capsys.readouterr()


def signed_releases(store: BundleStore) -> None:
    """Installs release 1.0, then 2.0, both signed by a key that is trusted."""
    say("key", "new", "farm")
    say("key", "trust", "farm.pub")
    for source, release in (("one.nnd", "1.0"), ("two.nnd", "2.0")):
        say("sign", source, "--key", "farm.key", "--release", release)
        say("install", "faces", source)


def damaged(store: BundleStore) -> None:
    before = store.state("faces").previous
    path = store.file("faces", before)
    path.write_bytes(path.read_bytes()[:-1] + b"x")


@pytest.mark.parametrize(("change", "code", "reason"), [
    (damaged, 65, "not the file that was installed"),
    (lambda _: say("key", "floor", "faces", "1.5"), 77, "none below 1.5"),
    (lambda _: (say("key", "need", "data=1"), say("key", "revoke", "farm")), 77, "the key was revoked"),
])  # fmt: skip
def test_a_rollback_to_what_may_not_be_used_is_refused(store, capsys, change, code, reason) -> None:
    signed_releases(store)
    before = store.state("faces")
    change(store)
    capsys.readouterr()
    assert run_command(["rollback", "faces"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert store.state("faces") == before


def test_a_rollback_to_code_that_nobody_signed_needs_a_word(store, monkeypatch, capsys) -> None:
    put(store, "one.nnd")
    put(store, "two.nnd")
    monkeypatch.setattr(kept_bundle, "why_no_code", lambda *_: "a reason")
    assert run_command(["rollback", "faces"]) == 77
    assert "a reason" in capsys.readouterr().err
    say("rollback", "faces", "--allow-unsigned-code")


def test_a_floor_that_was_raised_later_holds_for_what_is_installed(store, capsys) -> None:
    signed_releases(store)
    say("run", "faces@", "--input", "x.npz")
    say("key", "floor", "faces", "2.1", "--refuse-current")
    assert run_command(["run", "faces@", "--input", "x.npz"]) == 77
    assert "none below 2.1" in capsys.readouterr().err
    assert run_command(["doctor"]) == 1


def model_of(path: Path) -> str:
    with open_bundle(path) as bundle:
        return bundle.manifest.model_name


@pytest.mark.parametrize("named", [lambda _: "faces", model_of], ids=["name", "model"])
def test_a_floor_above_what_is_current_is_set_on_request_alone_and_lifted_again(store, nndeploy_command, named) -> None:
    signed_releases(store)
    model, before, run = named(Path("two.nnd")), trust_store(), ("run", "faces@", "--input", "x.npz")
    refused = nndeploy_command("key", "floor", model, "2.1")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (77, 1)
    for word in ("faces@", "release 2.0", "--refuse-current"):
        assert word in refused.stderr
    assert trust_store() == before
    forced = nndeploy_command("key", "floor", model, "2.1", "--refuse-current")
    assert (forced.returncode, "faces@" in forced.stderr) == (0, True)
    assert nndeploy_command(*run).returncode == 77
    assert nndeploy_command("key", "floor", model, "2.2").returncode == 0  # which refuses nothing more
    told = nndeploy_command(*run)
    assert f"nndeploy key floor {model} --remove" in told.stderr
    assert nndeploy_command("key", "floor", model, "--remove").returncode == 0
    assert trust_store() == before
    assert nndeploy_command(*run).returncode == 0
    assert nndeploy_command("key", "floor", model, "--remove").returncode == 66


def test_a_floor_that_what_is_current_reaches_is_set_without_a_word(store, nndeploy_command) -> None:
    signed_releases(store)
    done = nndeploy_command("key", "floor", "faces", "2.0")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("more", [[], ["1.4", "--remove"], ["one"]])
def test_a_floor_is_a_release_or_is_removed(store, nndeploy_command, more) -> None:
    assert nndeploy_command("key", "floor", "faces", *more).returncode == 2


def test_a_floor_for_what_is_not_installed_is_set_with_a_warning(store, nndeploy_command) -> None:
    signed_releases(store)
    done = nndeploy_command("key", "floor", "face", "1.0")
    assert done.returncode == 0
    assert "warning" in done.stderr
    assert "did you mean 'faces'?" in done.stderr
    assert trust_store().floors == {"face": "1.0"}
    assert "did you mean 'face'?" in nndeploy_command("key", "floor", "fac", "--remove").stderr


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BundleStore:
    """The stores of bundles and of trust of the machine, which are empty."""
    for module in (bundle_store, floors):
        monkeypatch.setattr(module, "MACHINE_STORE", tmp_path / "machine")
    monkeypatch.setattr("nndeploy.trust.trust_store.MACHINE_STORE", tmp_path / "etc" / "trust.json")
    return BundleStore(tmp_path / "machine")


def test_a_floor_holds_for_the_machine_s_bundles_unless_the_account_has_its_own(
    store, machine, nndeploy_command
) -> None:
    put(machine, "one.nnd")
    assert nndeploy_command("key", "floor", "faces", "1.0").returncode == 77
    signed_releases(store)
    assert nndeploy_command("key", "floor", "faces", "1.0").returncode == 0  # the account runs its own
    assert nndeploy_command("key", "floor", "faces", "--remove").returncode == 0
    refused = nndeploy_command("key", "floor", "faces", "1.0", "--machine")
    assert (refused.returncode, "not signed" in refused.stderr) == (77, True)


def test_a_floor_of_the_machine_is_lifted_where_it_was_set(store, machine, nndeploy_command) -> None:
    signed_releases(store)
    assert nndeploy_command("key", "floor", "faces", "2.1", "--machine", "--refuse-current").returncode == 0
    lift = "nndeploy key floor faces --remove --machine"
    assert lift in nndeploy_command("run", "faces@", "--input", "x.npz").stderr
    assert lift in nndeploy_command("key", "floor", "faces", "--remove").stderr
    assert nndeploy_command(*lift.split()[1:]).returncode == 0
    assert nndeploy_command("run", "faces@", "--input", "x.npz").returncode == 0


def test_a_release_of_an_unknown_key_is_told_with_the_key_and_how_to_trust_it(store, nndeploy_command) -> None:
    say("key", "new", "farm")
    say("sign", "one.nnd", "--key", "farm.key", "--release", "1.5.0")
    key_id = read_public_key(Path("farm.pub")).id
    put(store, "one.nnd")
    say("key", "floor", "faces", "1.4", "--refuse-current")
    for command in (["install", "faces", "one.nnd"], ["run", "faces@", "--input", "x.npz"], ["doctor"]):
        done = nndeploy_command(*command)
        told = done.stderr + done.stdout
        assert done.returncode == (1 if command == ["doctor"] else 77)
        for word in ("release 1.5.0", f"{key_id:.16}", "nndeploy key trust", "none below 1.4"):
            assert word in told
        assert "not signed" not in told
    say("key", "trust", "farm.pub")
    assert nndeploy_command("run", "faces@", "--input", "x.npz").returncode == 0


def test_doctor_advises_a_rollback_only_where_it_would_be_accepted(store, nndeploy_command) -> None:
    def advised() -> str:
        found = json.loads(nndeploy_command("doctor", "--json").stdout)["findings"]
        return {one["what"]: one["mend"] for one in found}["faces@"]

    signed_releases(store)
    damaged_file = store.bundle("faces")
    whole = damaged_file.read_bytes()
    damaged_file.write_bytes(whole[:-30])
    assert "nndeploy rollback faces" in advised()
    damaged_file.write_bytes(whole)
    say("key", "floor", "faces", "1.5")
    damaged_file.write_bytes(whole[:-30])
    assert "rollback" not in advised()
    assert nndeploy_command("rollback", "faces").returncode == 77


def test_install_offers_a_rollback_only_where_it_would_be_accepted(store, nndeploy_command) -> None:
    signed_releases(store)
    assert "nndeploy rollback faces" in nndeploy_command("install", "faces", "two.nnd").stdout
    say("key", "floor", "faces", "1.5")
    assert "rollback" not in nndeploy_command("install", "faces", "two.nnd").stdout


@pytest.mark.parametrize(("first", "lower", "higher"), [
    ("key floor faces 1.4", "key floor faces 1.3.9", "key floor faces 1.10"),
    ("key need code=3 data=1", "key need data=0", "key need data=2"),
])  # fmt: skip
def test_what_a_box_asks_for_is_never_lowered_without_a_word(store, capsys, first, lower, higher) -> None:
    say(*first.split())
    before = trust_store()
    capsys.readouterr()
    assert run_command(lower.split()) == 77
    assert trust_store() == before
    assert len(capsys.readouterr().err.splitlines()) == 1
    for line in (first, higher, f"{lower} --lower"):
        say(*line.split())
    out = capsys.readouterr().out
    assert trust_store() != before
    assert out.count("lowered: ") == 1


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "A", "a/b", "-x", "x" * 65, "é"])
def test_a_name_is_no_path(store, name) -> None:
    assert run_command(["install", "--", name, "one.nnd"]) == 2
    assert not store.path.exists()


def test_what_is_not_there_is_one_line(store, capsys) -> None:
    assert run_command(["run", "faces@", "--input", "x.npz"]) == 66
    assert run_command(["rollback", "faces"]) == 66
    put(store, "one.nnd")
    assert run_command(["rollback", "faces"]) == 66
    assert "nothing was installed as 'faces' before" in capsys.readouterr().err
    assert run_command(["run", "face@", "--input", "x.npz"]) == 66
    assert "did you mean 'faces'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"\xff", b'{"format":{"major":2,"minor":0,"name":"nndeploy-installed"}}']
)
def test_a_damaged_state_is_refused(store, damage) -> None:
    put(store, "one.nnd")
    (store.path / "faces" / "state.json").write_bytes(damage)
    with pytest.raises(DataError, match=r"state\.json"):
        store.state("faces")
    assert run_command(["run", "faces@", "--input", "x.npz"]) == 65


def test_two_installs_at_once_are_one_after_the_other_or_busy(store) -> None:
    with store.changing("faces"):
        assert run_command(["install", "faces", "one.nnd"]) == 75
    say("install", "faces", "one.nnd")


def follows(store: BundleStore, monkeypatch, said: list[str]) -> FollowedProgram:
    monkeypatch.setattr(followed, "LOOK_SECONDS", 0.0)
    return FollowedProgram(load_bundle(store.bundle("faces")), load_bundle, said.append)


def wait_for(said: list[str], word: str, program: FollowedProgram) -> None:
    deadline = time.monotonic() + 20
    while not any(word in line for line in said):
        assert time.monotonic() < deadline, said
        program.run(INPUT)


def test_who_follows_goes_on_with_the_new_one_and_no_call_fails(store, monkeypatch) -> None:
    put(store, "one.nnd")
    said: list[str] = []
    program, failed, ends = follows(store, monkeypatch, said), list[str](), threading.Event()

    def call() -> None:
        while not ends.is_set():
            try:
                program.run(INPUT)
            except NndeployError as err:
                failed.append(str(err))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(4):
        new = put(store, ("two.nnd", "one.nnd")[number % 2])
        wait_for(said, f"switched to {new:.12}", program)
        said.clear()
    ends.set()
    for thread in threads:
        thread.join()
    program.close()
    assert failed == []


def test_who_follows_goes_on_without_the_name_and_takes_it_up_again(store, monkeypatch) -> None:
    put(store, "one.nnd")
    said: list[str] = []
    program = follows(store, monkeypatch, said)
    say("uninstall", "faces")
    wait_for(said, "uninstalled", program)
    assert program.run(INPUT)["y"].tolist() == [[2, 2, 2]] * 2
    new = put(store, "two.nnd")
    wait_for(said, f"switched to {new:.12}", program)
    program.close()
    assert len(said) == 2


class Faulty:
    """A bundle that opens and fails in its calls, or takes long."""

    def __init__(self, program: Program, seconds: float | None) -> None:
        self.path, self.manifest, self._seconds, self._program = program.path, program.manifest, seconds, program

    def run(self, inputs):
        if self._seconds is None:
            raise CheckError("broken")
        time.sleep(self._seconds)
        return self._program.run(inputs)

    def close(self) -> None:
        self._program.close()


@pytest.mark.parametrize(("seconds", "why"), [(None, "a call failed: broken"), (0.01, "a call took 1")])
def test_a_new_one_that_fails_is_left_for_the_one_before(store, monkeypatch, seconds, why) -> None:
    first = put(store, "one.nnd")
    said: list[str] = []
    monkeypatch.setattr(followed, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(followed, "TRIAL_CALLS", 5)
    start = load_bundle(store.bundle("faces"))
    program = FollowedProgram(start, lambda path: Faulty(load_bundle(path), seconds), said.append)
    state, _ = install(
        store, "faces", "two.nnd", InstallOptions(max_latency_ns=5_000_000), LoadOptions(), no_registry
    )  # fmt: skip
    wait_for(said, "fell back", program)
    assert why in " ".join(said)
    assert program.run(INPUT)["y"].tolist() == [[2, 2, 2]] * 2
    deadline = time.monotonic() + 10
    while store.state("faces").current.sha256 != first and time.monotonic() < deadline:
        program.run(INPUT)
    back = store.state("faces")
    assert (back.current.sha256, back.previous) == (first, state.current)
    assert why in back.note
    program.close()


def test_a_stream_follows_and_loses_nothing(store) -> None:
    put(store, "one.nnd")
    command = [sys.executable, "-m", "nndeploy", "run", "faces@", "--input", "-", "--output", "-", "--follow"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    sent, lines, said, is_new = 0, list[str](), list[str](), False
    readers = [
        threading.Thread(target=into.extend, args=(stream,))
        for into, stream in ((lines, process.stdout), (said, process.stderr))
    ]
    for reader in readers:
        reader.start()
    deadline, behind = time.monotonic() + 60, 0
    while time.monotonic() < deadline and behind < 50:  # so many records after it went over
        behind += any("switched to" in line for line in said)
        print(json.dumps({"image": [[float(sent), 0, 0]]}), file=process.stdin, flush=True)
        sent += 1
        time.sleep(0.005)
        if lines and not is_new:
            is_new = bool(put(store, "two.nnd"))
    process.stdin.close()
    for reader in readers:
        reader.join(30)
    assert process.wait(30) == 0
    assert "switched to" in "".join(said)
    process.stderr.close()
    process.stdout.close()
    results = [json.loads(line) for line in lines]
    assert len(results) == sent
    assert [one["outputs"]["y"][0][0] for one in results] == [2.0 * number for number in range(sent)]


@pytest.mark.parametrize("more", [["--pace", "--cpu-limit", "50%"], ["--resume"], []])
def test_following_needs_a_name_and_goes_not_with_all(store, capsys, more) -> None:
    put(store, "one.nnd")
    bundle = "faces@" if more else "one.nnd"
    assert run_command(["run", bundle, "--input", "x.npz", "--output", "y.jsonl", "--follow", *more]) in (2, 69)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_doctor_says_what_is_wrong_and_what_mends_it(store, capsys) -> None:
    def found() -> dict[str, dict[str, str]]:
        capsys.readouterr()
        run_command(["doctor", "--json"])
        return {one["what"]: one for one in json.loads(capsys.readouterr().out)["findings"]}

    say("key", "new", "farm")
    assert found()["installed"]["mend"] == "nndeploy install NAME BUNDLE"
    assert "key trust" in found()["trust"]["mend"]
    say("key", "trust", "farm.pub", "--not-after", "2001-01-01")
    told = found()
    assert (told["trust"]["state"], told["trust"]["about"][:27]) == ("lacks", "keys: farm until 2001-01-01")
    say("key", "trust", "farm.pub")
    put(store, "one.nnd")
    put(store, "two.nnd")
    told = found()
    assert told["trust"]["state"] == told["faces@"]["state"] == "ok"
    path = store.bundle("faces")
    path.write_bytes(path.read_bytes()[:-30])
    told = found()
    assert told["faces@"]["state"] == "wrong"
    assert "nndeploy rollback faces" in told["faces@"]["mend"]
    assert run_command(["doctor"]) == 1
    say("rollback", "faces")
    say("doctor")
    assert found()["faces@, before"]["state"] == "lacks"
    assert found()["faces@, before"]["mend"] == "nndeploy install faces BUNDLE"
    state = store.path / "faces" / "state.json"
    whole = state.read_bytes()
    state.write_bytes(whole[:-1])
    told = found()["faces@"]
    assert (told["state"], told["mend"]) == ("wrong", f"rm {state}; nndeploy install faces BUNDLE")
    assert run_command(["install", "faces", "one.nnd"]) == 65  # what was before must not be forgotten
    state.unlink()
    say("install", "faces", "one.nnd")
    machine_key()
    say("key", "revoke", "this machine")
    assert found()["this machine's key"]["state"] == "wrong"
    (store.path.parent / "config" / "nndeploy" / "trust.json").write_text("{")
    assert found()["trust"]["state"] == "wrong"
    capsys.readouterr()


def test_a_state_that_cannot_be_read_is_not_taken_for_none(store, monkeypatch) -> None:
    """Else the bundle before would be forgotten and removed, because a disk failed once."""
    put(store, "one.nnd")
    put(store, "two.nnd")
    before, kept = store.state("faces"), files(store)

    def fails(path: Path, *_: object) -> bytes:
        raise MissingInputError("cannot be read: Permission denied", where=str(path))

    monkeypatch.setattr(bundle_store, "read_regular", fails)
    write_double(Path("three.nnd"), members={"note": b"three"})
    with pytest.raises(MissingInputError, match="Permission denied"):
        put(store, "three.nnd")
    with pytest.raises(MissingInputError, match="Permission denied"):
        installed_bundle("faces")
    monkeypatch.undo()
    monkeypatch.setenv("NNDEPLOY_STORE", str(store.path))
    assert store.state("faces") == before
    assert kept <= files(store)


def test_a_rollback_to_a_version_is_made_once(store, capsys) -> None:
    signed_releases(store)
    before, now = store.state("faces").previous, store.state("faces").current
    for version in ("2.0", now.sha256, now.sha256[:8].upper()):
        say("rollback", "faces", "--to", version)
        assert store.state("faces").current == now
    for version in ("1.0", "1.0", before.sha256[:8]):
        say("rollback", "faces", "--to", version)
        assert store.state("faces").current == before
    for version in ("3.0", "", before.sha256[:7], "f" * 64):
        assert run_command(["rollback", "faces", "--to", version]) == 66
    assert store.state("faces").current == before
    say("sign", "one.nnd", "--key", "farm.key", "--release", "2.0")
    say("install", "faces", "one.nnd")  # the bundle before it is of release 1.0
    say("install", "faces", "two.nnd")  # and now of the same one
    assert run_command(["rollback", "faces", "--to", "2.0"]) == 2
    capsys.readouterr()


def test_another_interface_needs_a_word(store, capsys) -> None:
    put(store, "one.nnd")
    before = store.state("faces")
    write_fours(Path("fours.nnd"))
    command = ["install", "faces", "fours.nnd", "--allow-uncompared"]
    assert run_command(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "image float32[4,3] -> y float32[4,3]; current: image float32[N,3] -> y float32[N,3], N in 1..8" in line
    assert (store.state("faces"), "incoming" in line) == (before, False)
    say(*command, "--replace-interface")
    assert store.state("faces").previous == before.current
    say("rollback", "faces")  # which went through both
    store.bundle("faces").write_bytes(b"")
    say(*command)  # what cannot be read any more holds up nobody
    capsys.readouterr()


@pytest.fixture
def two_versions(store: BundleStore) -> BundleStore:
    """A store with both versions of `faces`, and what a GPU would have cached for one of them."""
    put(store, "one.nnd")
    put(store, "two.nnd")
    cache = store.bundle("faces").with_name(store.bundle("faces").name + ".cache")
    cache.mkdir()
    (cache / "kernel").write_bytes(bytes(1000))
    return store


def test_uninstall_leaves_nothing_of_a_name_and_others_as_they_are(two_versions, nndeploy_command) -> None:
    store = two_versions
    install(store, "other", "one.nnd", InstallOptions(), LoadOptions(), no_registry)
    state = store.state("faces")
    num_bytes = sum(path.stat().st_size for path in store.path.glob("faces/*.nnd"))
    done = nndeploy_command("uninstall", "faces", "--json")
    answer = json.loads(done.stdout)
    assert answer["sha256"] == [state.current.sha256, state.previous.sha256]
    assert answer["freed_bytes"] == num_bytes + 1000
    assert [path.name for path in store.path.iterdir()] == ["other"]
    assert nndeploy_command("run", "faces@", "--input", "x.npz").returncode == 66
    assert nndeploy_command("run", "other@", "--input", "x.npz").returncode == 0


@pytest.mark.parametrize("name", ["face", "faces"])
def test_uninstall_of_what_is_not_installed_changes_nothing(store, nndeploy_command, name) -> None:
    assert nndeploy_command("uninstall", "faces").returncode == 66
    assert not store.path.exists()
    install(store, "faces2", "one.nnd", InstallOptions(), LoadOptions(), no_registry)
    done = nndeploy_command("uninstall", name)
    assert (done.returncode, len(done.stderr.splitlines())) == (66, 1)
    assert "did you mean 'faces2'?" in done.stderr
    assert [path.name for path in store.path.iterdir()] == ["faces2"]


def test_uninstall_waits_for_nobody_who_changes_the_name(two_versions, nndeploy_command) -> None:
    before = files(two_versions)
    with two_versions.changing("faces"):
        assert nndeploy_command("uninstall", "faces").returncode == 75
    assert files(two_versions) == before


@pytest.mark.parametrize("damage", [lambda state: state.write_bytes(b"{"), lambda state: state.unlink()])
def test_uninstall_ends_what_was_cut_off_or_is_damaged(two_versions, nndeploy_command, damage) -> None:
    damage(two_versions.path / "faces" / "state.json")
    assert nndeploy_command("uninstall", "faces").returncode == 0
    assert not list(two_versions.path.iterdir())


def test_a_bundle_that_is_replaced_for_good_goes_with_its_cache(two_versions, store) -> None:
    put(store, "one.nnd")
    write_double(Path("three.nnd"), members={"note": b"three"})
    put(store, "three.nnd")
    assert files(store) == {"state.json", "lock", *(path.name for path in store.path.glob("faces/*.nnd"))}


def test_a_run_goes_on_with_the_bundle_that_was_uninstalled(store) -> None:
    put(store, "one.nnd")
    with load_bundle(store.bundle("faces")) as program:
        say("uninstall", "faces")
        assert program.run(INPUT)["y"].tolist() == [[2, 2, 2]] * 2
