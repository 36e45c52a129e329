# SPDX-License-Identifier: Apache-2.0
"""Credentials come from where docker keeps them, and go to whom they are for."""

import base64
import json
import urllib.parse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from registry_server import Asked, Handler, RegistryServer
from weighty_bundles import QUICK

from nndeploy.errors import DataError, PolicyError, UnavailableError, UsageError
from nndeploy.registry.challenge import challenge_from_header, token_request
from nndeploy.registry.credentials import Credentials, credentials_for
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.pull import pull
from nndeploy.registry.push import push

HIDDEN = "hidden-word"
BASIC = "Basic " + base64.b64encode(f"farm:{HIDDEN}".encode()).decode()


@pytest.fixture
def docker(tmp_path: Path) -> Callable[[object], None]:
    """Returns a function that writes docker's config.json."""

    def write(config: object) -> None:
        (tmp_path / "docker").mkdir(exist_ok=True)
        (tmp_path / "docker" / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))

    return write


@pytest.mark.parametrize("key", ["registry.example:5000", "https://registry.example:5000"])
def test_docker_s_file_is_read(docker: Callable[[object], None], key: str) -> None:
    docker({"auths": {key: {"auth": base64.b64encode(b"farm:hidden:word").decode()}}})
    assert credentials_for("registry.example:5000", QUICK) == Credentials("farm", "hidden:word")
    assert credentials_for("registry.example", QUICK) is None


def test_docker_s_own_registry_has_a_name_of_its_own(docker: Callable[[object], None]) -> None:
    docker({"auths": {"https://index.docker.io/v1/": {"auth": base64.b64encode(b"farm:word").decode()}}})
    assert credentials_for("docker.io", QUICK) == Credentials("farm", "word")


def test_the_file_is_in_the_home_folder_where_docker_is_told_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert credentials_for("h", QUICK) is None
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"auths": {"h": {"identitytoken": "long"}}}))
    assert credentials_for("h", QUICK) == Credentials("<token>", identity_token="long")  # noqa: S106


@pytest.mark.parametrize("where", ["credsStore", "credHelpers"])
def test_a_helper_of_docker_s_is_asked(docker, tmp_path, monkeypatch, where) -> None:
    program = tmp_path / "docker-credential-safe"
    program.write_text(
        '#!/bin/sh\nread name\n[ "$1 $name" = "get registry.example" ] || { echo "credentials not found"; exit 1; }\n'
        'echo \'{"ServerURL":"x","Username":"farm","Secret":"hidden-word"}\'\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    docker({where: "safe" if where == "credsStore" else {"registry.example": "safe", "other.example": "safe"}})
    assert credentials_for("registry.example", QUICK) == Credentials("farm", HIDDEN)
    assert credentials_for("other.example", QUICK) is None
    docker({"credsStore": "that-is-not-there"})
    with pytest.raises(UnavailableError, match="docker-credential-that-is-not-there"):
        credentials_for("registry.example", QUICK)


@pytest.mark.parametrize("config", [
    "{", "[]", '{"auths":[]}', '{"auths":{"h":5}}', '{"auths":{"h":{"auth":"hidden-word"}}}', "[" * 100_000,
    '{"credsStore":"../../bin/sh"}', '{"credHelpers":{"h":{}},"credsStore":5}', "\udcff", " " * (2 << 20),
])  # fmt: skip
def test_a_file_without_meaning_is_one_line_without_its_text(docker, tmp_path, config) -> None:
    docker("")
    (tmp_path / "docker" / "config.json").write_bytes(config.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=r"config\.json") as caught:
        credentials_for("h", QUICK)
    assert HIDDEN not in str(caught.value)


def test_no_password_is_in_the_text_of_a_value() -> None:
    options = RegistryOptions(username="farm", password=HIDDEN)
    assert HIDDEN not in f"{options} {credentials_for('h', options)} {Credentials('<token>', identity_token=HIDDEN)}"


@pytest.mark.parametrize("given", [
    {"username": "farm"}, {"password": "x"}, {"username": "a:b", "password": "x"}, {"timeout": 0.0},
    {"ca": "x.pem", "plain_http": True},
])  # fmt: skip
def test_options_that_contradict_each_other_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        RegistryOptions(**given)


@pytest.mark.parametrize(("header", "scheme", "parameters"), [
    ('Basic realm="a b"', "basic", {"realm": "a b"}),
    (
        'Bearer realm="https://t/x",service="s",scope="repository:a:pull,push"', "bearer",
        {"realm": "https://t/x", "service": "s", "scope": "repository:a:pull,push"}
    ),
    ('basic realm="x", bearer realm="https://t/"', "bearer", {"realm": "https://t/"}),
    ("Bearer ", "bearer", {}),
])  # fmt: skip
def test_a_challenge_is_read(header: str, scheme: str, parameters: dict[str, str]) -> None:
    found = challenge_from_header(header)
    assert found is not None
    assert (found.scheme, dict(found.parameters)) == (scheme, parameters)


@pytest.mark.parametrize("header", ["", "Negotiate", "Digest realm=x", "x" * 100_000, "bearer a=" * 10_000])
def test_other_challenges_are_none_that_is_known(header: str) -> None:
    found = challenge_from_header(header)
    assert found is None or found.parameters == {}


@pytest.mark.parametrize(("realm", "may_be_plain", "error", "message"), [
    *((realm, True, DataError, "token server") for realm in (
        "", "basic-realm", "ftp://t/", "http://", "https://u:p@t/", "file:/etc/passwd", "//t/", "http://[/",
    )),
    ("http://t/", False, PolicyError, "without TLS"),
])  # fmt: skip
def test_a_realm_that_is_no_address_or_without_tls_gets_no_password(realm, may_be_plain, error, message) -> None:
    challenge = challenge_from_header(f'Bearer realm="{realm}"')
    assert challenge is not None
    with pytest.raises(error, match=message):
        token_request(challenge, Credentials("farm", HIDDEN), "s", may_be_plain=may_be_plain)


class TokenServer:
    """Lets a registry ask for tokens, which the same server gives."""

    def __init__(self, registry: RegistryServer, answer: bytes = b'{"token":"t1"}', basic: str = BASIC) -> None:
        self.registry, self.answer, self.basic = registry, answer, basic
        registry.fault = self.fault

    def fault(self, handler: Handler, asked: Asked) -> bool:
        if asked.path.startswith("/token"):
            form = dict(urllib.parse.parse_qsl(asked.body.decode()))
            is_known = asked.headers.get("Authorization") == self.basic or form.get("refresh_token") == HIDDEN
            handler.answer(200 if is_known or not self.basic else 401, self.answer)
        elif asked.headers.get("Authorization") != "Bearer t1":
            realm = f'Bearer realm="http://127.0.0.1:{self.registry.port}/token?a=b",service="the farm"'
            handler.answer(401, WWW_Authenticate=realm)
        else:
            return False
        return True


def test_a_token_is_asked_for_and_used(registry: RegistryServer, bundle: Path, box: Path) -> None:
    TokenServer(registry)
    options = replace(QUICK, username="farm", password=HIDDEN)
    push(bundle, registry.reference(), options=options)
    pull(registry.reference(), box / "m.nnd", options=options)
    assert (box / "m.nnd").read_bytes() == bundle.read_bytes()
    asked = [path for path in registry.paths("GET") if path.startswith("/token")]
    assert [urllib.parse.parse_qs(path.partition("?")[2])["scope"] for path in asked] == [
        ["repository:team/faces:pull,push"], ["repository:team/faces:pull"],
    ]  # fmt: skip
    assert "service=the+farm" in asked[0]
    shown = {one.path.partition("?")[0] for one in registry.asked if one.headers.get("Authorization") == BASIC}
    assert shown == {"/token"}


def test_an_identity_token_is_posted(registry: RegistryServer, bundle: Path, docker: Callable[[object], None]) -> None:
    TokenServer(registry, b'{"access_token":"t1"}')
    docker({"auths": {f"127.0.0.1:{registry.port}": {"identitytoken": HIDDEN}}})
    push(bundle, registry.reference(), options=QUICK)
    (asked,) = (one for one in registry.asked if one.path.startswith("/token"))
    assert (asked.method, b"grant_type=refresh_token" in asked.body) == ("POST", True)


def test_who_has_no_account_gets_the_token_for_anybody(registry: RegistryServer, bundle: Path, box: Path) -> None:
    TokenServer(registry, basic="")
    push(bundle, registry.reference(), options=QUICK)
    assert pull(registry.reference(), box / "m.nnd", options=QUICK).num_members == 6


@pytest.mark.parametrize(("answer", "kind"), [
    (b"", DataError), (b"[]", DataError), (b"{}", DataError), (b'{"token":5}', DataError),
    (b'{"token":"a\\nb"}', DataError), (b" " * 100_000, DataError), (b'{"token":"wrong"}', PolicyError),
])  # fmt: skip
def test_a_token_server_that_answers_nonsense_is_one_line(registry, bundle, answer, kind) -> None:
    TokenServer(registry, answer, basic="")
    with pytest.raises(kind):
        push(bundle, registry.reference(), options=QUICK)
    assert registry.blobs == {}


@pytest.mark.parametrize("options", [QUICK, replace(QUICK, username="farm", password="wrong")])  # noqa: S106
def test_who_is_not_known_to_the_token_server_is_refused(registry, bundle, options) -> None:
    TokenServer(registry)
    with pytest.raises(PolicyError, match=r"password|credentials"):
        push(bundle, registry.reference(), options=options)
    assert len(registry.asked) == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1"])
def test_a_password_for_the_host_in_netrc_is_not_shown(pushed, box, tmp_path, monkeypatch, host) -> None:
    """The second name is one of this machine too, but by its text it could be any."""
    monkeypatch.setenv("no_proxy", "*")
    (tmp_path / "netrc").write_text(f"machine {host} login farm password hidden-word\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    reference = pushed.reference().replace("127.0.0.1", host)
    pull(reference, box / "m.nnd", options=replace(QUICK, plain_http=True))
    assert not any("Authorization" in one.headers for one in pushed.asked)


def test_another_machine_is_not_spoken_to_without_tls(pushed: RegistryServer, box: Path) -> None:
    with pytest.raises(UnavailableError, match="TLS"):
        pull(pushed.reference().replace("127.0.0.1", "127.1"), box / "m.nnd", options=QUICK)
    assert pushed.asked == []
