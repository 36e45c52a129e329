# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: taggers of texts, a forecaster, a streaming step, and a loop of our own."""

from pathlib import Path

import torch
from exporting.from_torch import export, settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn


class Tagger(nn.Module):
    """Labels of words by a recurrent network in both directions."""

    def __init__(self, kind: type[nn.RNNBase], tokens: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.layers = kind(width, width, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 9)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layers(self.embed(ids))[0]).log_softmax(-1)


def _enter(name: str, kind: type[nn.RNNBase], *, dynamic: bool) -> None:
    @graph(name, "recurrent tagger", f"torch script, {'dynamic words' if dynamic else 'fixed'}")
    def make(path: Path, scale: Scale) -> Inputs:
        tokens = scale.of(2000, 40)
        ids = torch.randint(0, tokens, (1, scale.of(32, 6)))
        module = settled(Tagger(kind, tokens, scale.of(128, 8), scale.of(2, 1)))
        axes = {"ids": {1: "words"}, "labels": {1: "words"}} if dynamic else None
        return export(module, {"ids": ids}, path, dynamo=False, outputs=["labels"], axes=axes)


_enter("lstm_tagger", nn.LSTM, dynamic=False)
_enter("lstm_tagger_dynamic", nn.LSTM, dynamic=True)
_enter("gru_tagger", nn.GRU, dynamic=True)


class Forecast(nn.Module):
    """The next values of a series from its past."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.series = nn.GRU(4, width, batch_first=True)
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 8))

    def forward(self, past: Tensor) -> Tensor:
        return self.head(self.series(past)[0][:, -1])


@graph("forecaster", "recurrent regressor", "torch script, dynamic batch")
def _forecaster(path: Path, scale: Scale) -> Inputs:
    past = torch.randn(1, scale.of(24, 6), 4)
    axes = {"past": {0: "batch"}, "next": {0: "batch"}}
    module = settled(Forecast(scale.of(32, 8)))
    return export(module, {"past": past}, path, dynamo=False, outputs=["next"], axes=axes)


class StreamStep(nn.Module):
    """One chunk of sound: a convolution, a recurrent cell whose state goes in and out, a probability."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(1, width, 16, 8), nn.ReLU(), nn.Conv1d(width, width, 3, 2), nn.ReLU())
        self.cell = nn.LSTM(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, chunk: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found, (hidden, cell) = self.cell(self.front(chunk[:, None]).permute(2, 0, 1), (hidden, cell))
        return self.head(found.mean(0)).sigmoid(), hidden, cell


@graph("stream_step", "recurrent step with state", "torch script, fixed")
def _stream_step(path: Path, scale: Scale) -> Inputs:
    width = scale.of(64, 8)
    state = torch.randn(1, 1, width)
    example = {"chunk": torch.randn(1, scale.of(512, 96)), "hidden": state, "cell": state * 0.5}
    return export(settled(StreamStep(width)), example, path, dynamo=False, outputs=["speech", "hidden_out", "cell_out"])


class Counting(nn.Module):
    """A while loop over data: applies a layer as often as an input says."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, value: Tensor, times: Tensor) -> Tensor:
        for _ in range(int(times)):
            value = self.layer(value).tanh() + value
        return value


@graph("loop", "loop over data", "torch script of a scripted module")
def _loop(path: Path, scale: Scale) -> Inputs:
    width = scale.of(64, 8)
    module = torch.jit.script(settled(Counting(width)))
    example = {"value": torch.randn(4, width), "times": torch.tensor(5)}
    return export(module, example, path, dynamo=False, outputs=["result"])


class Mlp(nn.Sequential):
    """A few products: a call of microseconds."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


@graph("mlp", "regressor", "torch dynamo, dynamic batch")
def _mlp(path: Path, scale: Scale) -> Inputs:
    rows = torch.randn(8, 16)
    return export(settled(Mlp(scale.of(64, 16))), {"rows": rows}, path, dynamo=True, outputs=["values"],
                  axes={"rows": {0: "batch"}})  # fmt: skip
