# SPDX-License-Identifier: Apache-2.0
"""Figures as lines that Prometheus and OpenMetrics read: a family of samples, each with its labels.

Both read the same samples; OpenMetrics calls a counter without `_total`, and ends the page by a line of its own.

Source: Prometheus text exposition format 0.0.4; OpenMetrics 1.0.
"""

from collections.abc import Iterable, Iterator, Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
END = "# EOF"
"""The last line of a page of OpenMetrics."""

Sample = tuple[Mapping[str, str], float]
"""Labels and a value."""


def family(
    name: str, kind: str, about: str, samples: Iterable[Sample], *, is_open_metrics: bool = False
) -> Iterator[str]:
    """Yields the lines of a counter, whose name ends in `_total`, a gauge or a summary without sum and count."""
    yield from head(name.removesuffix("_total") if is_open_metrics else name, kind, about)
    for labels, value in samples:
        yield f"{name}{labels_text(labels)} {_number(value)}"


def head(name: str, kind: str, about: str) -> Iterator[str]:
    """Yields the lines that tell what a family is."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def labels_text(labels: Mapping[str, str]) -> str:
    """Returns labels as they stand behind a name, "" where there are none."""
    pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(value) if isinstance(value, int) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
