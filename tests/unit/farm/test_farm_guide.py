# SPDX-License-Identifier: Apache-2.0
"""The page about fleet files: its examples are read, and it names every key that a file may have."""

import re
from pathlib import Path

import pytest

from nndeploy.errors import DataError
from nndeploy.farm.fleet_file import fleet_from_toml

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "guide" / "batch.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
TABLES = ("farm", "models", "targets", "override", "report", "gates", "publish", "cluster")


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_a_fleet_file(example: str, tmp_path: Path) -> None:
    models = "" if "[[models]]" in example else '[[models]]\nfiles = ["*.onnx"]\n'
    (tmp_path / "fleet.toml").write_text(example + models, encoding="utf-8")
    assert fleet_from_toml(tmp_path / "fleet.toml").models


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_table_is_named(table: str, tmp_path: Path) -> None:
    """A key that is refused lists those that are known."""
    head = f"[[{table}]]" if table in ("models", "override") else f"[{table}]"
    (tmp_path / "fleet.toml").write_text(f"{head}\nzzzzzzzzzzzz = 1\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        fleet_from_toml(tmp_path / "fleet.toml")
    keys = re.findall(r"'(\w[\w-]*)'", caught.value.hint)
    assert len(keys) > 1
    assert [key for key in keys if f"`{key}`" not in PAGE and f"`{key.replace('-', '_')}" not in PAGE] == []
