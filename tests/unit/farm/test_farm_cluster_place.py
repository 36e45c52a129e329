# SPDX-License-Identifier: Apache-2.0
"""Where a cluster is and who may speak to it: certificates wherever there is a network, keys for their owner alone."""

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_engine import FakeEngine, job, outcome_of

from nndeploy.errors import CannotCreateError, DataError, MissingInputError, NndeployError, PolicyError, UsageError
from nndeploy.farm.cluster.certificates import CLIENT, ROLES, SCHEDULER, certificates_in, make_certificates
from nndeploy.farm.cluster.place import Place, place_of
from nndeploy.farm.fleet import Cluster
from nndeploy.farm.hits_here import HitsHere
from nndeploy.farm.machine import Machine, machine_from_json, machine_to_json, this_machine
from nndeploy.farm.resources import Slots


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates") / "made"
    make_certificates(folder)
    return folder


def test_keys_are_for_their_owner_and_never_overwritten(certificates: Path) -> None:
    for path in certificates.glob("*-key.pem"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = {path.name: path.read_bytes() for path in certificates.iterdir()}
    assert len(before) == 2 * (1 + len(ROLES))
    with pytest.raises(CannotCreateError, match="never overwritten"):
        make_certificates(certificates)
    assert {path.name: path.read_bytes() for path in certificates.iterdir()} == before


def test_openssl_agrees_and_a_client_cannot_stand_for_a_scheduler(certificates: Path) -> None:
    def verified(role: str, purpose: str) -> bool:
        command = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", certificates / "ca.pem"]
        done = subprocess.run([*command, certificates / f"{role}.pem"], capture_output=True, check=False)
        return done.returncode == 0

    assert {role: (verified(role, "sslserver"), verified(role, "sslclient")) for role in ROLES} == {
        "scheduler": (True, True), "worker": (True, True), "client": (False, True),
    }  # fmt: skip


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    make_certificates(tmp_path / "c")
    (tmp_path / "c" / "client-key.pem").chmod(0o644)
    with pytest.raises(PolicyError, match="other users"):
        certificates_in(tmp_path / "c", CLIENT)
    (tmp_path / "c" / "scheduler.pem").unlink()
    with pytest.raises(MissingInputError, match=r"scheduler\.pem"):
        certificates_in(tmp_path / "c", SCHEDULER)


@pytest.mark.parametrize(("text", "error"), [
    ("tls://farm.example:8786", UsageError), ("tcp://farm.example:8786", PolicyError),
    ("tcp://192.0.2.1:8786", PolicyError), ("tcp://127.0.0.1.example:8786", PolicyError),
    ("farm.example:8786", UsageError), ("tls://farm.example", UsageError), ("tcp://127.0.0.1:99999", UsageError),
    ("tcp://me@127.0.0.1:1", UsageError), ("tcp://127.0.0.1:1/x", UsageError), ("http://127.0.0.1:1", UsageError),
    ("fleet", UsageError), ("file:none.json", MissingInputError),
])  # fmt: skip
def test_without_certificates_only_this_machine_is_spoken_to(text: str, error: type[NndeployError]) -> None:
    with pytest.raises(error):
        place_of(text, None, None, insecure=False)


def test_what_a_user_means(certificates: Path, tmp_path: Path) -> None:
    def place(text: str, cluster: Cluster | None = None, folder: str | None = None, insecure: bool = False) -> Place:
        return place_of(text, folder, cluster, insecure=insecure)

    shown = certificates_in(certificates, CLIENT)
    assert place("local") == Place("")
    assert place("tcp://127.0.0.1:1") == Place("tcp://127.0.0.1:1")
    assert place("tcp://192.0.2.1:1", insecure=True) == Place("tcp://192.0.2.1:1")
    assert place("tls://a:1", folder=str(certificates)) == Place("tls://a:1", shown)
    cluster = Cluster("tls://b:1", str(shown.ca), str(shown.cert), str(shown.key))
    assert place("fleet", cluster) == Place("tls://b:1", shown)
    (tmp_path / "s.json").write_text(json.dumps({"address": "tcp://127.0.0.1:2"}))
    assert place(f"file:{tmp_path}/s.json") == Place("tcp://127.0.0.1:2")
    (tmp_path / "s.json").write_text("[]")
    with pytest.raises(DataError, match="scheduler"):
        place(f"file:{tmp_path}/s.json")


def test_a_machine_says_what_it_has_and_travels() -> None:
    machine = this_machine(3, ["site=lab"])
    assert machine_from_json(json.loads(json.dumps(machine_to_json(machine)))) == machine
    assert machine.slots.num_jobs == machine.has["site"]["lab"] == 3
    assert machine.why_never(job("a", needs={"site": "lab"})) == ""
    assert "site" in machine.why_never(job("a", needs={"site": "attic"}))
    with pytest.raises(UsageError, match="says nothing"):
        this_machine(1, ["lab"])


def test_one_build_at_a_time_on_a_gpu_and_others_beside_it() -> None:
    machine = Machine(Slots(4, 1, 1 << 40, 1 << 30, ""), {"gpu": {"sm120": 1}})
    on_gpu = job("a", needs={"gpu": "sm120"})
    assert machine.admits(on_gpu, [])
    assert not machine.admits(job("b", needs={"gpu": "sm120"}), [on_gpu])
    assert machine.admits(job("b"), [on_gpu])


class NeverWaiting(FakeEngine):
    def wait(self, seconds: float) -> Any:
        return super().wait(seconds or 1.0)


def recorded(name: str, status: str = "ok", **how: Any) -> FakeEngine:
    return NeverWaiting(build=lambda one, number: outcome_of(one, status, worker=name, tries=number), **how)


def test_what_the_own_cache_holds_is_taken_here_and_all_else_built_elsewhere() -> None:
    engine = HitsHere({"a/host"}, recorded("here"), recorded("elsewhere", room=0, never={"b": "not at elsewhere"}))
    known, new = job("a", needs={"gpu": "sm120"}), job("b")
    assert (engine.why_never(known), engine.why_never(new)) == ("", "not at elsewhere")
    assert (engine.has_room(known), engine.has_room(new)) == (True, False)
    engine.start(known, 1)
    engine.start(new, 1)
    assert [(one, outcome.worker) for one, outcome in engine.wait(1)] == [(known, "here"), (new, "elsewhere")]


def test_a_hit_that_was_none_is_built_elsewhere() -> None:
    engine, known = HitsHere({"a/host"}, recorded("here", "infra"), recorded("elsewhere", room=0)), job("a")
    engine.start(known, 1)
    assert [outcome.status for _, outcome in engine.wait(1)] == ["infra"]
    assert not engine.has_room(known)
    engine.start(known, 2)
    assert [outcome.worker for _, outcome in engine.wait(1)] == ["elsewhere"]
