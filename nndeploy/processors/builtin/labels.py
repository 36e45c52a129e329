# SPDX-License-Identifier: Apache-2.0
"""labels: numbers of classes -> their names."""

from dataclasses import dataclass
from typing import ClassVar

from nndeploy.errors import InputError
from nndeploy.processors.arrays import vector_from_value
from nndeploy.processors.text_lines import TextLines


@dataclass(frozen=True)
class Labels:
    """Gives the name of each class."""

    name: ClassVar[str] = "labels"
    takes: ClassVar[tuple[str, ...]] = ("classes",)
    gives: ClassVar[tuple[str, ...]] = ("labels",)

    labels: TextLines

    def __call__(self, classes: object) -> list[str]:
        """Returns the names."""
        numbers = [int(number) for number in vector_from_value(classes, "classes")]
        for number in numbers:
            if not 0 <= number < len(self.labels):
                raise InputError(f"class {number} has no name: there are {len(self.labels)} labels")
        return [self.labels[number] for number in numbers]
