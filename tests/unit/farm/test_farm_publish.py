# SPDX-License-Identifier: Apache-2.0
"""What a batch built is where boxes look for it, signed; what cannot be published costs no other job."""

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from batch_examples import batch

from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import MissingInputError
from nndeploy.farm.fleet import Publish
from nndeploy.farm.job import Job, job_id
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.publish import Publisher
from nndeploy.registry import connection
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.pull import pull
from nndeploy.trust.signatures import signed_statement
from nndeploy.trust.signers import FileSigner, new_key

sys.path.append(str(Path(__file__).parents[1] / "registry"))

from registry_server import Asked, Handler, RegistryServer
from weighty_bundles import write_weights

QUICK = RegistryOptions(timeout=5)


class Built:
    """A folder with two bundles that jobs built."""

    def __init__(self, folder: Path) -> None:
        self.jobs, self.outcomes = [], []
        for number, model in enumerate(("a", "b")):
            path = folder / "dist" / f"{model}.nnd"
            path.parent.mkdir(exist_ok=True)
            data = write_weights(path, (number,), size=1_000)
            self.jobs.append(Job(job_id(model, "host", ""), model, "host", "", "/m.onnx", {}, {}, str(path)))
            self.outcomes.append(
                Outcome(
                    job=self.jobs[-1].id, model=model, target="host", variant="", status="ok" if number else "hit",
                    output=str(path), sha256=hashlib.sha256(data).hexdigest(), size=len(data),
                )
            )  # fmt: skip

    def published(self, publish: Publish) -> list[Outcome]:
        return Publisher(publish, "fleet.toml", QUICK).published(self.jobs, self.outcomes)

    def data(self, model: str) -> bytes:
        return Path(self.jobs["ab".index(model)].output).read_bytes()


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return Built(tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> FileSigner:
    return new_key(tmp_path / "farm.key")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RegistryServer]:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.0)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    with RegistryServer() as server:
        yield server


def oci(registry: RegistryServer) -> str:
    return f"oci://127.0.0.1:{registry.port}/team/{{model}}:{{target}}"


def test_bundles_are_copied_to_the_folder_and_left_where_they_are_the_same(built: Built, tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert built.published(Publish(str(site))) == built.outcomes
    assert (site / "a" / "host.nnd").read_bytes() == built.data("a")
    assert sorted(str(path.relative_to(site)) for path in site.rglob("*.nnd")) == ["a/host.nnd", "b/host.nnd"]
    os.utime(site / "a" / "host.nnd", (1, 1))
    (site / "b" / "host.nnd").write_bytes(bytes(len(built.data("b"))))
    before = (site / "a" / "host.nnd").stat()
    built.published(Publish(str(site)))
    after = (site / "a" / "host.nnd").stat()
    assert (before.st_ino, before.st_mtime) == (after.st_ino, after.st_mtime)
    assert (site / "b" / "host.nnd").read_bytes() == built.data("b")


def test_a_copy_is_signed_and_what_was_built_stays_as_it_was(built: Built, tmp_path: Path, key: FileSigner) -> None:
    before, publish = built.data("a"), Publish(str(tmp_path / "site"), sign=str(tmp_path / "farm.key"))
    built.published(publish)
    assert built.data("a") == before
    place = tmp_path / "site" / "a" / "host.nnd"
    with open_bundle(place) as bundle:
        bundle.verify()
        envelope, _ = signed_statement(bundle)
    assert envelope is not None
    assert [one.key_id for one in envelope.signatures] == [key.public.id]
    found = place.stat()
    built.published(publish)
    assert place.stat().st_ino == found.st_ino, "the same signature of the same bundle"


def test_bundles_are_pushed_under_the_names_of_their_jobs(built, registry, tmp_path) -> None:
    assert built.published(Publish(oci=oci(registry))) == built.outcomes
    pulled = tmp_path / "pulled.nnd"
    pull(f"oci://127.0.0.1:{registry.port}/team/b:host", pulled, options=QUICK)
    assert pulled.read_bytes() == built.data("b")


def test_only_bundles_that_there_are_are_published(built: Built, tmp_path: Path) -> None:
    built.outcomes = [
        replace(one, status=status) for one, status in zip(built.outcomes, ("crash", "skipped"), strict=True)
    ]
    assert built.published(Publish(str(tmp_path / "site"))) == built.outcomes
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("sign", ["", "farm.key"])
def test_a_bundle_that_changed_since_is_not_published(built: Built, tmp_path: Path, sign: str) -> None:
    Path(built.jobs[0].output).write_bytes(built.data("b"))
    first, second = built.published(Publish(str(tmp_path / "site"), sign=str(tmp_path / sign) if sign else ""))
    assert (first.status, first.exit_code) == ("failed", 65)
    assert first.error is not None
    assert first.error["message"] == "not published: is not the bundle that the batch built"
    assert first.repeat.startswith("nndeploy batch fleet.toml --only=")
    assert second == built.outcomes[1]
    assert [path.parent.name for path in (tmp_path / "site").rglob("*.nnd")] == ["b"]


def test_a_place_that_cannot_be_written_costs_no_other_job(built: Built, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a").write_bytes(b"a file in the way")
    first, second = built.published(Publish(str(tmp_path / "site")))
    assert (first.status, first.exit_code) == ("failed", 73)
    assert second.status == "ok"
    assert (tmp_path / "site" / "b" / "host.nnd").read_bytes() == built.data("b")


def test_what_a_registry_refuses_costs_no_other_job(built: Built, registry: RegistryServer) -> None:
    def refuses_a(handler: Handler, asked: Asked) -> bool:
        return "/team/a/" in asked.path and handler.answer(403) is None

    registry.fault = refuses_a
    first, second = built.published(Publish(oci=oci(registry)))
    assert (first.status, first.exit_code) == ("failed", 77)
    assert second.status == "ok"


def test_a_registry_that_nobody_reaches_is_asked_once_and_is_the_machine_s_fault(built, registry) -> None:
    registry.fault = lambda handler, _asked: handler.cut() is None
    outcomes = built.published(Publish(oci=oci(registry)))
    assert [(one.status, one.exit_code) for one in outcomes] == [("infra", 69)] * 2
    assert {re.search("/team/(.)/", one.path)[1] for one in registry.asked} == {"a"}  # type: ignore[index]


def test_a_key_that_is_not_there_is_found_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        Publisher(Publish(str(tmp_path), sign=str(tmp_path / "none.key")), "fleet.toml")


def test_the_page_of_the_folder_links_to_what_stands_there(built: Built, tmp_path: Path) -> None:
    publisher = Publisher(Publish(str(tmp_path / "site")), "fleet.toml")
    outcomes = publisher.published(built.jobs, [built.outcomes[0], replace(built.outcomes[1], status="failed")])
    publisher.write_index(built.jobs, batch(*outcomes))
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert set(re.findall('href="([^"]*nnd)"', page)) == {"./a/host.nnd"}
    assert (tmp_path / "site" / "a" / "host.nnd").is_file()


def test_without_a_folder_there_is_no_page(built: Built, registry: RegistryServer, tmp_path: Path) -> None:
    before: set[Any] = set(tmp_path.rglob("*.html"))
    Publisher(Publish(oci=oci(registry)), "fleet.toml").write_index(built.jobs, batch(*built.outcomes))
    assert set(tmp_path.rglob("*.html")) == before == set()
