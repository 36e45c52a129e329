# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the page that Prometheus scrapes: what `promtool check metrics` refuses fails here.

Source: Prometheus text exposition format 0.0.4; OpenMetrics 1.0, "Text format"; Prometheus, util/promlint.
"""

import re
from dataclasses import dataclass, field

NAME = re.compile(r"[a-z_][a-z0-9_]*")
LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf)|NaN")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count"), "gauge": ("",)}

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass
class Family:
    """A family while it is read: its lines of comments and its samples."""

    name: str
    about: dict[str, str] = field(default_factory=dict)
    samples: Samples = field(default_factory=dict)

    def check(self, *, is_open_metrics: bool) -> None:
        kind, name = self.about.get("TYPE", ""), self.name
        assert self.about.get("HELP", "").endswith("."), f"{name} has no help"
        assert kind in ("counter", *SUFFIXES), name
        if kind == "counter":
            suffixes = ("_total",) if is_open_metrics else ("",)
            assert name.endswith("_total") is not is_open_metrics, name
        else:
            suffixes = SUFFIXES[kind]
            assert not name.endswith(("_total", "_count", "_sum", "_bucket")), name
        assert "UNIT" not in self.about or name.endswith(f"_{self.about['UNIT']}")
        for (sample, labels), value in self.samples.items():
            keys = {key for key, _ in labels}
            assert sample in {f"{name}{suffix}" for suffix in suffixes}, sample
            assert ("le" in keys) is sample.endswith("_bucket"), sample
            assert kind == "summary" or "quantile" not in keys, sample
            assert kind == "gauge" or not value < 0, sample
        if kind == "histogram":
            self._check_buckets()

    def _check_buckets(self) -> None:
        for (sample, labels), value in self.samples.items():
            if not sample.endswith("_count"):
                continue
            buckets = [
                (float(dict(found)["le"]), number)
                for (_, found), number in self.samples.items()
                if "le" in dict(found) and labels == {pair for pair in found if pair[0] != "le"}
            ]
            assert buckets == sorted(buckets)
            assert [number for _, number in buckets] == sorted(number for _, number in buckets)
            assert buckets[-1] == (float("inf"), value)
            assert (f"{self.name}_sum", labels) in self.samples


def samples_of(page: str, *, is_open_metrics: bool = False) -> Samples:
    """Returns the samples of a page by name and labels, after every check of the format."""
    assert page.endswith("\n")
    lines = page.split("\n")[:-1]
    if is_open_metrics:
        assert lines.pop() == "# EOF"
    families: dict[str, Family] = {}
    family = Family("")
    for line in lines:
        if line.startswith("# "):
            _, keyword, name, text = line.split(" ", 3)
            assert keyword in ("HELP", "TYPE", *(("UNIT",) if is_open_metrics else ()))
            assert NAME.fullmatch(name)
            if name != family.name:
                assert name not in families, f"{name} stands twice"
                family = families[name] = Family(name)
            assert keyword not in family.about
            assert not family.samples, f"{keyword} of {name} stands behind its samples"
            family.about[keyword] = text
            continue
        name, labels, value = _sample(line)
        key = (name, labels)
        assert key not in family.samples, line
        family.samples[key] = value
    for one in families.values():
        one.check(is_open_metrics=is_open_metrics)
    return {key: value for one in families.values() for key, value in one.samples.items()}


def _sample(line: str) -> tuple[str, frozenset[tuple[str, str]], float]:
    found = re.fullmatch(r"([a-z0-9_]+)(?:\{(.*)\})? (\S+)", line)
    assert found is not None, line
    name, inner, number = found.groups()
    pairs = LABEL.findall(inner or "")
    assert ",".join(f'{key}="{text}"' for key, text in pairs) == (inner or ""), line
    assert NUMBER.fullmatch(number), line
    assert len({key for key, _ in pairs}) == len(pairs), line
    return name, frozenset(pairs), float(number)
