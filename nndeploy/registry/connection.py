# SPDX-License-Identifier: Apache-2.0
"""Requests to one server, through `requests`: TLS, redirects, credentials, limits, second attempts.

Above the flows stand methods and addresses, below the library; a registry is spoken to so, and a cache of builds
(`nndeploy.build_cache.remote_cache`). Laws: credentials go to the server itself, and to the token server that a
registry names, never along a redirect; who was spoken to with TLS leads nobody to where there is none; of
an answer no more is read than its reader allows; nothing waits for ever.

The client of the project ORAS for Python (0.2.43) is not used. Where a registry asks for `Basic`, it sends the password
to the host that the text of the realm happens to name; it waits without a limit, reads answers of any size into
memory, takes two minutes to say that a password is wrong, and can neither resume a download nor send a part of a file.
What is left of it is what `challenge` does. The layout is ORAS's: its clients pull what is pushed here.
"""

import http.client
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin

from nndeploy.errors import (
    DataError,
    InputOutputError,
    MissingInputError,
    NndeployError,
    PolicyError,
    UnavailableError,
)
from nndeploy.registry.challenge import authorization_from_answer, challenge_from_header, token_request
from nndeploy.registry.credentials import Credentials, credentials_for
from nndeploy.registry.failures import LOG_IN, MAX_TOLD_BYTES, PASSING, failure, told_by
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import is_loopback
from nndeploy.registry.watched_reads import WatchedReads, watching_adapter
from nndeploy.registry.web_address import origin_of, web_address
from nndeploy.version import __version__, install_command

if TYPE_CHECKING:
    import requests

ATTEMPTS = 4
FIRST_WAIT_SECONDS = 0.5
MAX_WAIT_SECONDS = 30.0
MAX_REDIRECTS = 5
MAX_TOKEN_BYTES = 64 << 10
PIECE_BYTES = 256 << 10
LEAST_BYTES_A_SECOND = 1 << 10
"""The slowest link that is worth waiting for."""
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_REASON = re.compile(r"\[(?:Errno -?\d+|SSL[^\]]*)\] ([^'\"(\\)]+)")


class Body(Iterable[bytes], Sized, Protocol):
    """What is sent: as many bytes as its length says, from the beginning each time."""


class NoAnswerError(UnavailableError):
    """Nobody answers; another attempt may be answered."""


class CutError(InputOutputError):
    """An answer ended before all of it was there."""


class SlowError(CutError):
    """An answer was ended, because too little of it came in too long a time."""


@dataclass(frozen=True, slots=True)
class Server:
    """Who is spoken to.

    Messages call it `kind` ("registry") and say `where`. Docker keeps its credentials under `name`, a host with a port
    where one is given. All that is asked lies below the address `root`, which ends with a slash; whether that begins
    with https:// says whether there is TLS. `repository` is what tokens are asked for.
    """

    kind: str
    where: str
    name: str
    root: str
    repository: str = ""


class Connection:
    """A server; use it in a `with`. What is asked is one request at a time."""

    def __init__(
        self,
        server: Server,
        options: RegistryOptions,
        connect_seconds: float | None = None,
        least_bytes_a_second: int = LEAST_BYTES_A_SECOND,
    ) -> None:
        """Makes ready to speak to a server; nothing is sent.

        `connect_seconds` is how long it may take to be reached, None for as long as the next bytes may. A body that
        comes with less than `least_bytes_a_second`, over the options' timeout, is given up.

        Raises:
            UnavailableError: the library is not installed.
            MissingInputError, DataError: the file of authorities is none.
        """
        self._requests = _library(server.kind)
        self._server, self._options, self._is_plain = server, options, server.root.startswith("http:")
        self._kind, self.where, self.root = f"the {server.kind}", server.where, server.root
        self._connect_seconds = options.timeout if connect_seconds is None else connect_seconds
        self._authorization = ""
        self._verify: bool | str = _authorities(options.ca) if options.ca else True
        self._session = self._requests.Session()
        self._session.trust_env = not is_loopback(server.name)  # proxies lead elsewhere
        self._session.auth = _as_it_is  # else a password for the host is looked for in ~/.netrc
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._watch = WatchedReads(options.timeout, least_bytes_a_second)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, watching_adapter(self._watch))
        self._session.headers.update({"User-Agent": f"nndeploy/{__version__}", "Accept-Encoding": "identity"})

    def __enter__(self) -> "Connection":
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__()
        self._session.close()

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | Body = b"",
        attempts: int = ATTEMPTS,
    ) -> "requests.Response":
        """Returns the answer to a request, whatever it is, its body not yet read; use it in a `with`.

        Raises:
            UnavailableError: nobody answers, or nobody who can prove to be the server.
            PolicyError: the server refuses the credentials, or leads to where there is no TLS.
            DataError: it sent an invalid response.
        """
        for attempt in range(1, attempts + 1):
            try:
                answer = self._authorised(method, url, dict(headers or {}), body)
            except NoAnswerError:
                if attempt == attempts:
                    raise
                pause(attempt)
            else:
                if attempt == attempts or answer.status_code not in PASSING:
                    return answer
                answer.close()
                pause(attempt, answer.headers.get("Retry-After", ""))
        raise AssertionError("the last attempt returns or raises")

    def log_in(self, credentials: Credentials) -> None:
        """Shows a password with every request, before it is asked for: some refuse without asking, others half-way."""
        self._authorization = credentials.basic

    def content(self, answer: "requests.Response", most: int) -> bytes:
        """Returns the body of an answer that is small, read within the time limit.

        Raises:
            DataError: it has more than `most` bytes.
            CutError: it ended early, or is sent too slowly.
        """
        end, read = time.monotonic() + self._options.timeout, bytearray()
        for piece in self.pieces(answer):
            read += piece
            if len(read) > most:
                raise DataError(f"{self._kind} sent more than {most} bytes", where=self.where)
            if time.monotonic() > end:
                raise CutError(f"{self._kind} takes more than {self._options.timeout:g} s to answer", where=self.where)
        return bytes(read)

    def pieces(self, answer: "requests.Response") -> Iterator[bytes]:
        """Yields the body of an answer as it comes.

        Raises:
            DataError: it is compressed, which was not asked for.
            CutError: it ended early, or comes too slowly.
        """
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise DataError(f"{self._kind} sent a compressed response, which was not requested", where=self.where)
        from urllib3.exceptions import HTTPError

        self._watch.begin()
        while True:
            try:
                with self._watch.waiting():
                    piece = answer.raw.read1(PIECE_BYTES, decode_content=False)
            except (HTTPError, http.client.HTTPException, OSError, ValueError) as err:
                raise self._slow() or CutError("the connection was lost", where=self.where) from err
            if not piece:
                break
            self._watch.got(len(piece))
            yield piece
        if (slow := self._slow()) is not None:
            raise slow

    def _slow(self) -> SlowError | None:
        """Returns the error of an answer that was given up, None where it was not."""
        what = f"{self._kind} is too slow: hardly any data in {self._options.timeout:g} s"
        return SlowError(what, where=self.where) if self._watch.is_slow else None

    def refused(self, answer: "requests.Response", what: str) -> NndeployError:
        """Returns the error for an answer that is no success; `what` is what was asked for."""
        error = failure(answer.status_code, self._told(answer), what, self.where, self._kind)
        if answer.status_code == 400 and self._is_plain:  # how many servers answer who forgets TLS
            error.hint = "if it uses TLS, name its CA certificate with --ca"
        return error

    def _told(self, answer: "requests.Response") -> str:
        with suppress(DataError, CutError):
            return told_by(self.content(answer, MAX_TOLD_BYTES))
        return ""

    def _authorised(self, method: str, url: str, headers: dict[str, str], body: bytes | Body) -> "requests.Response":
        """Returns the answer, after what the server asks for was given to it."""
        answer = self._followed(method, url, headers, body)
        if answer.status_code != 401 or origin_of(answer.url) != origin_of(self.root):
            return answer
        with answer:
            self._authorise(answer)
        return self._followed(method, url, headers, body)

    def _authorise(self, answer: "requests.Response") -> None:
        challenge = challenge_from_header(answer.headers.get("WWW-Authenticate", ""))
        credentials = credentials_for(self._server.name, self._options)
        if challenge is None:
            raise PolicyError(f"{self._kind} requires an unsupported kind of authentication", where=self.where)
        if challenge.scheme == "bearer":
            scope = f"repository:{self._server.repository}:{'pull' if answer.request.method == 'GET' else 'pull,push'}"
            try:
                asked = token_request(challenge, credentials, scope, may_be_plain=self._is_plain)
            except (DataError, PolicyError) as err:
                raise err.within(self.where) from None
            self._authorization = self._token(asked.url, asked.headers, asked.form, is_known=credentials is not None)
            return
        if credentials is None or not credentials.password:
            raise PolicyError(f"{self._kind} requires a password", where=self.where, hint=LOG_IN)
        self._authorization = credentials.basic

    def _token(self, url: str, headers: Mapping[str, str], form: str | None, *, is_known: bool) -> str:
        """Returns the authorization that a token server gives."""
        with self._sent("GET" if form is None else "POST", url, dict(headers), (form or "").encode()) as answer:
            if answer.status_code in (401, 403) and not is_known:
                raise PolicyError(f"{self._kind} requires a password", where=self.where, hint=LOG_IN)
            if answer.status_code != 200:
                raise failure(answer.status_code, self._told(answer), "a token", self.where, self._kind)
            body = self.content(answer, MAX_TOKEN_BYTES)
        try:
            return authorization_from_answer(body)
        except DataError as err:
            raise err.within(self.where) from None

    def _followed(self, method: str, url: str, headers: Mapping[str, str], body: bytes | Body) -> "requests.Response":
        """Returns the answer behind redirects; only the server itself is shown what it was given."""
        for _ in range(MAX_REDIRECTS + 1):
            is_registry = origin_of(url) == origin_of(self.root)
            shown = {"Authorization": self._authorization} if is_registry and self._authorization else {}
            answer = self._sent(method, url, {**headers, **shown}, body)
            if answer.status_code not in _REDIRECTS:
                return answer
            answer.close()
            if method not in ("GET", "HEAD"):
                raise UnavailableError(f"{self._kind} redirects an upload", where=self.where)
            url = self.address(answer.headers.get("Location", ""), url)
        raise UnavailableError(f"{self._kind} redirects more than {MAX_REDIRECTS} times", where=self.where)

    def address(self, location: str, base: str) -> str:
        """Returns the address that an answer of `base` names.

        Raises:
            DataError: it names none.
            PolicyError: TLS would end there.
        """
        try:
            url = urljoin(base, location) if location else ""
        except ValueError:
            url = ""
        named = web_address(url)
        if named is None:
            raise DataError(f"{self._kind} sent an invalid redirect: {location!r:.60}", where=self.where)
        if named.scheme == "http" and not self._is_plain:
            raise PolicyError(f"{self._kind} leads to {named.hostname!r:.100}, without TLS", where=self.where)
        return url

    def _sent(self, method: str, url: str, headers: dict[str, str], body: bytes | Body) -> "requests.Response":
        from urllib3.exceptions import HTTPError

        errors, seconds = self._requests.exceptions, (self._connect_seconds, self._options.timeout)
        self._watch.begin()
        try:
            answer: requests.Response = self._session.request(
                method, url, data=body or None, headers=headers, allow_redirects=False, stream=True,
                timeout=seconds, verify=self._verify,
            )  # fmt: skip
        except errors.SSLError as err:
            why = _reason(err) or "TLS fails"
            hint = "it does not use TLS: --plain-http" if "version" in why else "name its CA certificate with --ca"
            raise UnavailableError(f"TLS with {self._kind} failed: {why}", where=self.where, hint=hint) from err
        except errors.Timeout as err:
            waited = seconds[0] if isinstance(err, errors.ConnectTimeout) else seconds[1]
            raise NoAnswerError(f"{self._kind} does not answer within {waited:g} s", where=self.where) from err
        except errors.ConnectionError as err:
            if (slow := self._slow()) is not None:
                raise NoAnswerError(slow.what, where=self.where) from err
            why = _reason(err) or "the connection ended"
            raise NoAnswerError(f"{self._kind} cannot be reached: {why}", where=self.where) from err
        except (errors.RequestException, HTTPError, http.client.HTTPException, ValueError) as err:
            raise DataError(f"{self._kind} sent an invalid response", where=self.where) from err
        if (slow := self._slow()) is not None:  # the library takes a head that ends early for whole
            answer.close()
            raise NoAnswerError(slow.what, where=self.where)
        return answer


def pause(attempt: int, retry_after: str = "") -> None:
    """Waits before the attempt after this one, the first being 1; as long as the registry wishes, up to a limit."""
    wished = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    time.sleep(min(max(wished, FIRST_WAIT_SECONDS * 2 ** (attempt - 1)), MAX_WAIT_SECONDS))


def _library(kind: str) -> ModuleType:
    try:
        import requests
    except ImportError as err:
        raise UnavailableError(f"a {kind} needs the package requests: {err}", hint=install_command("registry")) from err
    library: ModuleType = requests
    return library


def _authorities(path: str) -> str:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except FileNotFoundError as err:
        raise MissingInputError("no such CA file", where=path) from err
    except OSError as err:  # ssl.SSLError too
        raise DataError(f"is not a PEM file of CA certificates: {_reason(err) or err.strerror}", where=path) from err
    return path


def _as_it_is(request: Any) -> Any:
    return request


def _reason(err: BaseException) -> str:
    """Returns what the system says inside the text of an error, which has addresses in it too."""
    found = _REASON.search(str(err))
    return found[1].strip() if found else ""
