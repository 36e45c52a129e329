# SPDX-License-Identifier: Apache-2.0
"""The command that builds one job of a batch, as every form writes it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JobCommand:
    """The words of a command, which can be printed, and what an engine may want to know of the job that it builds.

    `key` is that of the cache, "" where it cannot be told; `estimate` and `time_limit` are in seconds, `memory_limit`
    in bytes, None where the job states none.
    """

    job: str
    words: tuple[str, ...]
    key: str
    output: str
    estimate: float
    time_limit: float
    memory_limit: int | None = None
    needs: Mapping[str, str] = field(default_factory=dict)

    @property
    def stamp(self) -> str:
        """The name of a file that says that it was done; a job of which anything changed has another."""
        return hashlib.sha256(f"{self.job}\n{self.key}".encode()).hexdigest()[:32]

    @property
    def needs_gpu(self) -> bool:
        """Whether the job needs a GPU for itself."""
        return bool(self.needs.get("gpu"))
