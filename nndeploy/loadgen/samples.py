# SPDX-License-Identifier: Apache-2.0
"""A sample in memory, and where it came from."""

from dataclasses import dataclass

from nndeploy.runtime.batching import Sample


@dataclass(frozen=True, slots=True)
class NamedSample:
    """One sample; `origin` is the file and the place in it, for people ("in/a.npz", "x.jsonl, line 3")."""

    origin: str
    values: Sample
