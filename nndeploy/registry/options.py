# SPDX-License-Identifier: Apache-2.0
"""How a registry is spoken to, with the defaults of every command."""

from dataclasses import dataclass, field

from nndeploy.errors import UsageError
from nndeploy.options.described import described

_REGISTRY = "Registry"


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """What a user says of a registry; what each option means is its help.

    `password` belongs to `username`; where that is "", what docker keeps for the registry is taken. It is not part of
    the text of this value.
    """

    ca: str = described(
        "", "PEM file with the CA certificates to trust for the registry.",
        section=_REGISTRY, metavar="FILE.pem", is_path=True,
    )  # fmt: skip
    plain_http: bool = described(
        False,
        "Use HTTP without TLS. Anyone on the network path can read the traffic, including passwords.",
        section=_REGISTRY,
    )
    username: str = described(
        "", "Registry user name, with --password-stdin. Default: the credentials in Docker's config.json.",
        section=_REGISTRY,
    )  # fmt: skip
    timeout: float = described(
        60.0,
        "How many seconds to wait for data. Transfers slower than 1 KiB/s over this time fail too.",
        section=_REGISTRY,
        least=0,
        is_above=True,
    )
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.ca and self.plain_http:
            raise UsageError("--ca is about TLS, and --plain-http disables it", hint="one of them")
        if bool(self.username) != bool(self.password):
            raise UsageError("a username and a password are given together, or none of them")
        if ":" in self.username:
            raise UsageError("a username has no ':'")
        if not self.timeout > 0:
            raise UsageError(f"a timeout is more than 0 seconds, not {self.timeout}")
