# SPDX-License-Identifier: Apache-2.0
"""Sound: an encoder of waves, a vocoder, a spotter of words, a separator of sources."""

from pathlib import Path

import torch
import transformers as hf
from exporting import from_optimum
from exporting.from_torch import export, settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn


@graph("wav2vec2", "speech encoder", "optimum automatic-speech-recognition, dynamic batch, samples")
def _wav2vec2(path: Path, scale: Scale) -> Inputs:
    widths = scale.of((64,) * 7, (8,) * 3)
    config = hf.Wav2Vec2Config(
        vocab_size=32, hidden_size=scale.of(128, 16), num_hidden_layers=scale.of(3, 1),
        num_attention_heads=scale.of(4, 2), intermediate_size=scale.of(512, 24), conv_dim=widths,
        conv_kernel=scale.of((10, 3, 3, 3, 3, 2, 2), (10, 3, 3)),
        conv_stride=scale.of((5, 2, 2, 2, 2, 2, 2), (5, 2, 2)),
        num_conv_pos_embeddings=scale.of(64, 8), num_conv_pos_embedding_groups=scale.of(8, 2), mask_time_prob=0.0,
    )  # fmt: skip
    model = settled(hf.Wav2Vec2ForCTC(config))
    from_optimum.export(model, "automatic-speech-recognition", {"model.onnx": path})
    return {"input_values": torch.randn(1, scale.of(16000, 800)).numpy()}


@graph("hifigan", "vocoder of convolutions over time", "torch dynamo, dynamic frames")
def _hifigan(path: Path, scale: Scale) -> Inputs:
    config = hf.SpeechT5HifiGanConfig(
        model_in_dim=scale.of(80, 8), upsample_initial_channel=scale.of(128, 16),
        upsample_rates=scale.of([8, 8, 2], [4, 2]),
        upsample_kernel_sizes=scale.of([16, 16, 4], [8, 4]), resblock_kernel_sizes=scale.of([3, 7], [3]),
        resblock_dilation_sizes=scale.of([[1, 3], [1, 3]], [[1, 3]]), normalize_before=False,
    )  # fmt: skip
    model = settled(hf.SpeechT5HifiGan(config))
    frames = torch.randn(scale.of(40, 10), scale.of(80, 8))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("weight"):
                parameter.mul_(8.0)
    axes = {"spectrogram": {0: "frames"}}
    return export(model, {"spectrogram": frames}, path, dynamo=True, outputs=["wave"], axes=axes)


class Separable1d(nn.Module):
    """Words from spectra: depthwise and pointwise convolutions over time, mean over it."""

    def __init__(self, bands: int, width: int, layers: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(bands, width, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, 9, padding=4, groups=width, bias=False), nn.Conv1d(width, width, 1, bias=False),
                nn.BatchNorm1d(width), nn.ReLU(),
            )
            for _ in range(layers)
        )  # fmt: skip
        self.head = nn.Linear(width, 12)

    def forward(self, spectra: Tensor) -> Tensor:
        value = self.first(spectra)
        for layer in self.layers:
            value = value + layer(value)
        return self.head(value.mean(-1)).softmax(-1)


@graph("word_spotter", "classifier of sounds", "torch script, fixed")
def _word_spotter(path: Path, scale: Scale) -> Inputs:
    spectra = torch.randn(1, scale.of(40, 8), scale.of(98, 20))
    module = settled(Separable1d(scale.of(40, 8), scale.of(64, 12), scale.of(4, 2)), spectra)
    return export(module, {"spectra": spectra}, path, dynamo=False, outputs=["words"])


class Tasnet(nn.Module):
    """A mask over a learned basis of the wave, by dilated convolutions; two sources."""

    def __init__(self, basis: int, width: int, layers: int) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, basis, 16, 8, bias=False)
        self.norm, self.narrow = nn.GroupNorm(1, basis), nn.Conv1d(basis, width, 1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i, groups=width), nn.PReLU(),
                nn.GroupNorm(1, width), nn.Conv1d(width, width, 1),
            )
            for i in range(layers)
        )  # fmt: skip
        self.mask = nn.Conv1d(width, 2 * basis, 1)
        self.decode = nn.ConvTranspose1d(basis, 1, 16, 8, bias=False)

    def forward(self, wave: Tensor) -> Tensor:
        basis = self.encode(wave).relu()
        value = self.narrow(self.norm(basis))
        for layer in self.layers:
            value = value + layer(value)
        first, second = self.mask(value).sigmoid().chunk(2, 1)
        return torch.cat([self.decode(basis * first), self.decode(basis * second)], 1)


@graph("tasnet", "separator of sources", "torch script, dynamic samples")
def _tasnet(path: Path, scale: Scale) -> Inputs:
    wave = torch.randn(1, 1, scale.of(8000, 320))
    module = settled(Tasnet(scale.of(96, 12), scale.of(64, 8), scale.of(5, 2)), wave)
    return export(module, {"wave": wave}, path, dynamo=False, outputs=["sources"], axes={"wave": {2: "samples"}})
