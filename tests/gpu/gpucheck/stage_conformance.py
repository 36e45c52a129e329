# SPDX-License-Identifier: Apache-2.0
"""Stage 4: `nndeploy.testing.GpuConformance` on each tier, without pytest as the runner.

Its checks are called one by one: every promise of the plugin interface, and every model of the suite built, opened
on the GPU and run. Outputs are brought to the host, as the core does at the border.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpucheck.child import reason_of
from gpucheck.options import Options
from gpucheck.pytest_stand_in import put_in_place_if_missing
from gpucheck.rows import FAILED, NOT_RUN, OK, REFUSED, WRONG, Row
from gpucheck.tiers import target_of, why_unusable
from nndeploy.cuda import CudaError
from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import BuildOptions
from nndeploy.plugin.registry import backend

put_in_place_if_missing()

import pytest  # noqa: E402

from nndeploy.testing import CASES, GpuConformance  # noqa: E402

STAGE = "conformance"
PLAIN = (
    "test_says_who_it_is", "test_probe_gives_a_reason_where_it_says_no", "test_plugin_and_probe_load_nothing_heavy",
    "test_transforms_have_names", "test_takes_something", "test_unknown_operator_is_refused",
    "test_device_that_is_not_there_is_unavailable", "test_tells_code_as_its_artifact_does",
)  # fmt: skip
"""The promises that are no case's and that `GpuConformance` does not skip."""


def items(options: Options) -> list[str]:
    """Returns "tier: check" and "tier: case", interleaved so that no tier waits for another's end."""
    usable = [tier for tier in options.tiers if not why_unusable(tier)]
    found = [tier for tier in options.tiers if tier not in usable]
    for name in (*(case.name for case in CASES), *PLAIN):
        found += [f"{tier}: {name}" for tier in usable if re.search(options.match, f"{tier}: {name}")]
    return found


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields what one check, or both checks of one case, found."""
    tier, _, name = item.partition(": ")
    if not name:
        yield Row(STAGE, "(all)", tier, REFUSED, why_unusable(tier))
        return
    suite: Any = type("Suite", (GpuConformance,), {"backend": backend(tier)})()
    target = target_of(options)
    try:
        if name in PLAIN:
            _plain_check(suite, name, target)
        else:
            yield _case(suite, tier, name, target)
            return
    except pytest.skip.Exception as err:
        yield Row(STAGE, name, tier, NOT_RUN, str(err))
    except CudaError:
        raise
    except AssertionError as err:
        yield Row(STAGE, name, tier, WRONG, reason_of(err))
    except UnavailableError as err:
        yield Row(STAGE, name, tier, FAILED, reason_of(err))
    else:
        yield Row(STAGE, name, tier, OK)


def _plain_check(suite: Any, name: str, target: Any) -> None:
    check = getattr(suite, name)
    wanted = check.__func__.__code__.co_varnames[1 : check.__func__.__code__.co_argcount]
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        known = {"target": target, "tmp_path": Path(folder)}
        check(**{parameter: known[parameter] for parameter in wanted})


def _case(suite: Any, tier: str, name: str, target: Any) -> Row:
    """Returns what the two checks of a case found; a model that is refused with a reason is fine."""
    case = next(case for case in CASES if case.name == name)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        try:
            suite.test_answers_for_each_node_and_changes_nothing(case, target)
            suite.test_what_it_takes_it_gets_right(case, target, Path(folder))
        except AssertionError as err:
            return Row(STAGE, name, tier, WRONG, reason_of(err))
    refused = [a.reason for a in suite.backend.supports(case.model(), target, BuildOptions()) if not a.ok]
    return Row(STAGE, name, tier, REFUSED if refused else OK, "; ".join(dict.fromkeys(refused))[:200])
