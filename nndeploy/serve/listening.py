# SPDX-License-Identifier: Apache-2.0
"""The addresses of a service, taken before anything is loaded, for the process that will accept there or for several.

Several processes accept HTTP on one socket, which they have of their parent: whoever is free takes the next connection,
and none is lost with a process. gRPC's library binds by itself, so each process has a socket of its own at the same
port (SO_REUSEPORT), and the system spreads connections over these.
"""

import socket
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from nndeploy.serve.address import Address, bound, not_bound
from nndeploy.serve.options import ServeOptions


class Listening:
    """What a service listens at while its `with` block runs."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._stack = ExitStack()
        self.http: socket.socket | None = None
        self.addresses: dict[str, Address] = {}

    def __enter__(self) -> Self:
        """Binds.

        Raises:
            CannotCreateError: an address is taken.
        """
        options = self._options
        with ExitStack() as stack:
            if options.http is not None:
                self.http = stack.enter_context(bound(options.http))
                if options.http.path:
                    stack.callback(Path(options.http.path).unlink, missing_ok=True)
                self.addresses["http"] = _with_port(options.http, self.http)
            if options.grpc is not None and options.processes > 1:
                self.addresses["grpc"] = _with_port(options.grpc, stack.enter_context(_shared(options.grpc)))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _with_port(address: Address, listening: socket.socket) -> Address:
    return address if address.path else Address(address.host, listening.getsockname()[1])


def _shared(address: Address) -> socket.socket:
    """Returns a socket that keeps a port for processes that listen there, and does not listen itself.

    Raises:
        CannotCreateError: somebody else listens there.
    """
    if address.port:
        bound(address).close()  # which another service is in the way of, also one that would share the port
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    keeping = socket.socket(family, socket.SOCK_STREAM)
    try:
        keeping.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeping.bind((address.host, address.port))
    except OSError as err:
        keeping.close()
        raise not_bound(address, err.strerror or str(err)) from err
    return keeping
