# SPDX-License-Identifier: Apache-2.0
"""Plugins are found by name, ours before others'; whatever is wrong with one is one line that names it."""

from importlib.metadata import EntryPoint, distribution

import pytest

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.plugin import entry_points
from nndeploy.plugin.backend_names import GROUP
from nndeploy.plugin.entry_points import Plugins
from nndeploy.version import DISTRIBUTION


@pytest.fixture
def plugins(monkeypatch):
    """Returns a function: (name, value) of what other packages bring -> the plugins."""

    def install(*points):
        found = [EntryPoint(name, value, GROUP) for name, value in points]
        monkeypatch.setattr(entry_points, "entry_points", lambda group: found)
        return Plugins(GROUP, "backend", UsageError)

    return install


def loaded(plugins, name):
    return plugins.load(name, lambda found: found)


def test_ours_and_others_are_found_together(plugins) -> None:
    found = plugins(("odd", "math:pi"))
    assert "odd" in found
    assert "odd" in found.names()
    ours = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    assert set(found.names()) == {"odd", *(point.name for point in ours)}
    assert loaded(found, "odd") == pytest.approx(3.14, abs=0.01)


def test_nobody_takes_the_name_of_one_of_ours(plugins) -> None:
    assert loaded(plugins(("reference", "math:pi")), "reference").__module__ == "nndeploy_reference.plugin"


def test_ours_are_found_without_a_look_at_the_rest(plugins, monkeypatch) -> None:
    found = plugins()
    monkeypatch.setattr(entry_points, "entry_points", lambda group: pytest.fail("looked"))
    assert "reference" in found
    loaded(found, "reference")


def test_two_packages_with_the_same_name_are_both_named(plugins) -> None:
    found = plugins(("odd", "math:tau"), ("odd", "math:pi"))
    with pytest.raises(UnavailableError) as caught:
        loaded(found, "odd")
    assert str(caught.value) == (
        "several packages bring the backend 'odd': math:pi and math:tau (hint: uninstall all but one)"
    )


def test_one_package_that_is_seen_twice_is_one(plugins) -> None:
    assert loaded(plugins(("odd", "math:pi"), ("odd", "math:pi")), "odd") > 3


def test_an_unknown_name_is_the_caller_s_error(plugins) -> None:
    with pytest.raises(UsageError, match=r"no backend is called 'referense' \(hint: did you mean 'reference'"):
        loaded(plugins(), "referense")


@pytest.mark.parametrize(("value", "made", "line"), [
    ("no_such:X", str, "no_such:X: backend 'odd' cannot be loaded: No module named 'no_such'"),
    ("math:no_such", str, "math:no_such: backend 'odd' cannot be loaded: module 'math' has no attribute 'no_such'"),
    ("math:pi", lambda pi: pi(), "math:pi: backend 'odd' cannot be loaded: 'float' object is not callable"),
    ("math:pi", lambda pi: next(iter(())), "math:pi: backend 'odd' cannot be loaded: StopIteration"),
])  # fmt: skip
def test_a_broken_plugin_is_one_line(value, made, line, plugins) -> None:
    with pytest.raises(UnavailableError) as caught:
        plugins(("odd", value)).load("odd", made)
    assert str(caught.value) == line
