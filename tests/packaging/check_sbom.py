# SPDX-License-Identifier: Apache-2.0
"""Holds a bill of materials against the lock of the base install: `python check_sbom.py BILL.cdx.json`."""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-base.lock"


def faults(bill: dict[str, Any], lock: str) -> list[str]:
    """Returns what a bill leaves out, or has without a version or a licence, a line each."""
    components = {one["name"].lower(): one for one in bill["components"]}
    pinned = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))
    found = [f"{name} is missing" for name in sorted(set(pinned) - set(components))]
    found += [f"{name} is not in the lock" for name in sorted(set(components) - set(pinned))]
    for name, one in components.items():
        if one.get("version") != pinned.get(name, one.get("version")):
            found.append(f"{name} is {one.get('version')}, in the lock {pinned[name]}")
        if not one.get("licenses"):
            found.append(f"{name} has no licence")
    root = bill["metadata"]["component"]
    if (root["name"], bool(root.get("version"))) != ("nndeploy-toolchain", True):
        found.append(f"it is about {root['name']} {root.get('version')}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(faults(json.loads(Path(sys.argv[1]).read_text()), LOCK.read_text())) or 0)
