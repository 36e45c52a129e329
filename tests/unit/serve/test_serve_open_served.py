# SPDX-License-Identifier: Apache-2.0
"""How bundles are opened that are served: with a share of the cores where several processes serve them."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nndeploy.serve import open_served
from nndeploy.serve.open_served import open_models
from nndeploy.serve.options import ServeOptions


@pytest.mark.parametrize(("told", "threads"), [
    ({}, None),
    ({"processes": 2}, 4),
    ({"processes": 16}, 1),
    ({"processes": 2, "threads": 3}, 3),
])  # fmt: skip
def test_processes_share_the_cores_where_nobody_says(fake_program, monkeypatch, told: Any, threads: Any) -> None:
    monkeypatch.setattr(open_served, "num_cores", lambda: 8)
    opened = list[Any]()

    def load(path: Path, options: Any, *, pace: Any) -> Any:
        opened.append(options.threads)
        return fake_program()

    with ExitStack() as stack:
        open_models(stack, Path("m.nnd"), ServeOptions(**told, takes_bundled_pipeline=False), load)
    assert opened == [threads]
