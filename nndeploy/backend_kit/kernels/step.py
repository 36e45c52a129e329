# SPDX-License-Identifier: Apache-2.0
"""What is known here of the steps of any backend: the names of the values that they read and write."""

from collections.abc import Sequence
from typing import Protocol


class Named(Protocol):
    """A view of the value `name`, or all of it."""

    @property
    def name(self) -> str:
        """The value's name."""


class KernelStep(Protocol):
    """One call of a kernel."""

    @property
    def output(self) -> Named:
        """What the step writes."""

    @property
    def inputs(self) -> Sequence[Named]:
        """What the step reads."""
