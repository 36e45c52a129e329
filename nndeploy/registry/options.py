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
        "", "PEM file with the authorities that may have signed the registry's certificate.",
        section=_REGISTRY, metavar="FILE.pem", is_path=True,
    )  # fmt: skip
    plain_http: bool = described(
        False, "Speak HTTP without TLS: anybody on the way reads what is sent, passwords too.", section=_REGISTRY
    )
    username: str = described(
        "", "The account at the registry, with --password-stdin. Default: what docker's config.json keeps.",
        section=_REGISTRY,
    )  # fmt: skip
    timeout: float = described(
        60.0,
        "How many seconds to wait for the next bytes, and for 1 KiB for each of them.",
        section=_REGISTRY,
        least=0,
        is_above=True,
    )
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.ca and self.plain_http:
            raise UsageError("--ca is about TLS, and --plain-http speaks without", hint="one of them")
        if bool(self.username) != bool(self.password):
            raise UsageError("a username and a password are given together, or none of them")
        if ":" in self.username:
            raise UsageError("a username has no ':'")
        if not self.timeout > 0:
            raise UsageError(f"a timeout is more than 0 seconds, not {self.timeout}")
