# SPDX-License-Identifier: Apache-2.0
"""The page of figures says of every row what came of it, and times where there are some."""

from typing import Any

from gpu_page import page


def row(stage: str, item: str, backend: str = "", status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"stage": stage, "item": item, "backend": backend, "status": status, "ms": None, "ratio": None, **more}


def test_it_counts_results_names_what_was_wrong_and_gives_times() -> None:
    rows = [
        row("probe", "cuda:0", facts={"name": "NVIDIA X"}),
        row("probe", "versions", facts={"triton": "3.9", "torch": ""}),
        row("operators", "a", "cudnn"),
        row("operators", "b", "cudnn", "WRONG"),
        row("operators", "c", "cudnn", "refused"),
        row("speed", "net", "cudnn", ms=1.23456, ratio=2.0),
        row("speed", "net", "torch", "not run"),
    ]
    text = page(rows, {"tiers": ["cudnn"], "total_seconds": 90.0}, "abcdef0")
    assert "| NVIDIA X | abcdef0 -->" in text
    assert "triton 3.9. Not run" in text
    assert "| operators | cudnn | 1 | 1 | 1 |  |  |  |  |" in text
    assert "- operators, b, cudnn\n" in text
    assert "| net | cudnn | 1.235 | 2.00 |" in text
    assert "| net | torch |" not in text.partition("## Networks")[2]
    assert '--tiers cudnn --total 90 --json gpu.json"' in text
