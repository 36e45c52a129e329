# SPDX-License-Identifier: Apache-2.0
"""Compute capabilities of NVIDIA GPUs by how people call them: which known box stands for one that has no target file.

Source: NVIDIA, "CUDA GPU Compute Capability" (developer.nvidia.com/cuda-gpus), and its page of legacy GPUs.
"""

import re

_MODELS = {
    "7.5": "t4 gtx1650 gtx1650ti gtx1660 gtx1660ti rtx2060 rtx2070 rtx2080 rtx2080ti rtx8000",
    "8.6": "a2 a10 a16 a40 a2000 a4000 a4500 a5000 a5500 a6000 rtxa2000 rtxa4000 rtxa4500 rtxa5000 rtxa6000 "
    "rtx3050 rtx3050ti rtx3060 rtx3060ti rtx3070 rtx3070ti rtx3080 rtx3080ti rtx3090 rtx3090ti",
    "8.7": "orin jetsonorin jetsonagxorin jetsonorinnx jetsonorinnano orinnx orinnano agxorin",
    "8.9": "l4 l40 l40s rtx4050 rtx4060 rtx4060ti rtx4070 rtx4070ti rtx4070super rtx4080 rtx4080super rtx4090 "
    "rtx2000ada rtx4000ada rtx4500ada rtx5000ada rtx6000ada",
    "9.0": "h100 h200 gh200",
    "12.0": "rtx5050 rtx5060 rtx5060ti rtx5070 rtx5070ti rtx5080 rtx5090 rtxpro6000",
}
"""Compute capability of a known box -> names in small letters, without blanks, dashes and the maker's.

Names that NVIDIA gave to GPUs of two generations are left out.
"""


def compute_capability_called(name: str) -> str:
    """Returns the compute capability ("8.9") of the GPU that a person calls so, "" where it is not known."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    plain = re.sub(r"^(nvidia|geforce|quadro|tesla)+", "", plain)
    return next((capability for capability, models in _MODELS.items() if plain in models.split()), "")
