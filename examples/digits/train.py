# SPDX-License-Identifier: Apache-2.0
"""Trains the digit reader of the demo and writes `digits.onnx`, `png/` and two small inputs.

What comes in: scikit-learn's bundled digits, 1,797 images of 8x8 pixels with values 0..16. What goes out: a
depthwise-separable network as ONNX (batch normalisation kept as nodes, batch size symbolic), twenty PNG images, and a
few of the same digits as one batch (`batch.npz`) and as JSON lines (`lines.jsonl`).

The law: images of the held-out fifth are never trained on, the reported accuracy is measured on them alone, and the
PNGs are the first two of each digit among them, right or wrong. Same seed, same library versions: same bytes.

Nothing else in the project needs torch or scikit-learn; install them apart from it and run this file:

    python3 -m venv build/train
    build/train/bin/pip install torch==2.13.0 scikit-learn onnx pillow
    build/train/bin/python examples/digits/train.py
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 2026
EPOCHS = 60
BATCH_SIZE = 32
PEAK_LEARNING_RATE = 1e-2
HELD_OUT_SHARE = 0.2
REQUIRED_ACCURACY = 0.97
PNGS_PER_DIGIT = 2
NUM_ARRAY_IMAGES = 4
BRIGHTEST = 16.0  # of scikit-learn's digits
OPSET = 17
IR_VERSION = 8

STEM_CHANNELS = 16
BLOCKS = ((32, 1), (64, 2), (64, 1))
"""Output channels and stride of each depthwise-separable block."""


class ConvBnRelu(nn.Sequential):
    """conv -> batch norm -> relu; the convolution keeps no bias, the normalisation has one."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int, stride: int = 1, groups: int = 1) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class DigitReader(nn.Module):
    """Logits `(N, 10)` of images `(N, 1, 8, 8)`, whose values were centred and scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"stem": ConvBnRelu(1, STEM_CHANNELS, kernel=3)})
        inputs = STEM_CHANNELS
        for number, (outputs, stride) in enumerate(BLOCKS, start=1):
            self.layers[f"block{number}_depthwise"] = ConvBnRelu(inputs, inputs, kernel=3, stride=stride, groups=inputs)
            self.layers[f"block{number}_pointwise"] = ConvBnRelu(inputs, outputs, kernel=1)
            inputs = outputs
        self.classifier = nn.Linear(inputs, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        for layer in self.layers.values():
            image = layer(image)
        return self.classifier(image.mean(dim=(2, 3)))


def main() -> None:
    """Trains, measures, writes; stops before writing when the network reads the held-out digits badly."""
    make_repeatable()
    images, labels = all_digits()
    indices = np.arange(len(labels))
    train, held_out = train_test_split(indices, test_size=HELD_OUT_SHARE, random_state=SEED, stratify=labels)
    mean, std = float(images[train].mean()), float(images[train].std())
    reader = train_reader((images[train] - mean) / std, labels[train])
    accuracy = accuracy_of(reader, (images[held_out] - mean) / std, labels[held_out])
    print(f"held-out accuracy {accuracy:.2%} on {len(held_out)} images, trained on {len(train)}")
    if accuracy < REQUIRED_ACCURACY:
        raise SystemExit(f"held-out accuracy is below {REQUIRED_ACCURACY:.0%}; nothing was written")
    model = onnx_from_reader(reader, mean, std, f"held-out accuracy {accuracy:.4f} on {len(held_out)} images")
    onnx.save(model, HERE / "digits.onnx")
    examples = first_of_each_digit(labels, held_out)
    write_pngs(images, labels, examples)
    write_arrays(images[examples[:NUM_ARRAY_IMAGES]])


def make_repeatable() -> None:
    """One thread and one seed: sums in the same order, the same shuffles."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def all_digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns images `(1797, 1, 8, 8)` float32, values 0..16, and their labels."""
    digits = load_digits()
    return digits.images[:, None].astype(np.float32), digits.target


def train_reader(images: np.ndarray, labels: np.ndarray) -> DigitReader:
    """Returns a network trained on these images alone, in evaluation mode."""
    reader = DigitReader()
    num_steps = EPOCHS * (len(labels) // BATCH_SIZE)
    optimizer = torch.optim.AdamW(reader.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=num_steps)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    for batch in shuffled_batches(len(labels)):
        optimizer.zero_grad()
        moved = moved_by_a_pixel(torch.from_numpy(images)[batch])
        loss(reader(moved), torch.from_numpy(labels)[batch]).backward()
        optimizer.step()
        schedule.step()
    return reader.eval()


def shuffled_batches(num_images: int) -> Iterator[torch.Tensor]:
    """Yields the indices of every batch of every epoch; what does not fill a batch waits for the next epoch."""
    for _ in range(EPOCHS):
        order = torch.randperm(num_images)
        for batch in order.split(BATCH_SIZE):
            if len(batch) == BATCH_SIZE:
                yield batch


def moved_by_a_pixel(images: torch.Tensor) -> torch.Tensor:
    """Returns every image moved by -1, 0 or 1 pixel along each axis; the edge repeats the nearest pixel."""
    rows, columns = images.shape[2:]
    wide = nn.functional.pad(images, (1, 1, 1, 1), mode="replicate")
    moves = torch.randint(0, 3, (len(images), 2)).tolist()
    return torch.stack([wide[i, :, y : y + rows, x : x + columns] for i, (y, x) in enumerate(moves)])


def accuracy_of(reader: DigitReader, images: np.ndarray, labels: np.ndarray) -> float:
    """Returns the share of images whose greatest logit stands at their label."""
    with torch.no_grad():
        read = reader(torch.from_numpy(images)).argmax(dim=1).numpy()
    return float((read == labels).mean())


class NodeChain:
    """A chain of ONNX nodes: each `then` reads what the one before it wrote, and is named after it."""

    def __init__(self, first_input: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.last = first_input

    def then(self, operator: str, name: str, *, output: str = "", **constants_and_attributes: object) -> None:
        """Appends a node; arrays among the keywords become its further inputs, in order, the rest its attributes."""
        inputs, attributes = [self.last], {}
        for key, value in constants_and_attributes.items():
            if isinstance(value, np.ndarray):
                self.constants.append(numpy_helper.from_array(value, f"{name}.{key}"))
                inputs.append(f"{name}.{key}")
            else:
                attributes[key] = value
        self.last = output or f"{name}_out"
        self.nodes.append(helper.make_node(operator, inputs, [self.last], name=name, **attributes))


def onnx_from_reader(reader: DigitReader, mean: float, std: float, description: str) -> onnx.ModelProto:
    """Returns the network from `image` `(N, 1, 8, 8)`, values 0..16, to `probabilities` `(N, 10)`, checked."""
    chain = NodeChain("image")
    chain.then("Sub", "centre", mean=np.float32(mean).reshape(1))
    chain.then("Div", "scale", std=np.float32(std).reshape(1))
    for name, layer in reader.layers.items():
        append_conv_bn_relu(chain, name, layer)
    chain.then("GlobalAveragePool", "pool")
    chain.then("Flatten", "flatten", axis=1)
    weight, bias = array_of(reader.classifier.weight), array_of(reader.classifier.bias)
    chain.then("Gemm", "classifier", weight=weight, bias=bias, transB=1)
    chain.then("Softmax", "softmax", output="probabilities", axis=1)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])
    probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(chain.nodes, "digits", [image], [probabilities], chain.constants, description)
    model = helper.make_model(
        graph,
        producer_name="examples/digits/train.py",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def append_conv_bn_relu(chain: NodeChain, name: str, layer: ConvBnRelu) -> None:
    """Appends the three nodes of a layer."""
    conv, norm, _ = layer
    chain.then(
        "Conv",
        f"{name}_conv",
        weight=array_of(conv.weight),
        group=conv.groups,
        kernel_shape=list(conv.kernel_size),
        pads=list(conv.padding * 2),
        strides=list(conv.stride),
    )
    chain.then(
        "BatchNormalization",
        f"{name}_bn",
        scale=array_of(norm.weight),
        bias=array_of(norm.bias),
        mean=array_of(norm.running_mean),
        variance=array_of(norm.running_var),
        epsilon=norm.eps,
    )
    chain.then("Relu", f"{name}_relu")


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Returns a parameter's values."""
    return tensor.detach().numpy()


def first_of_each_digit(labels: np.ndarray, held_out: np.ndarray) -> list[int]:
    """Returns the indices of the first held-out images of each digit, in the order of the digits."""
    return [int(i) for digit in range(10) for i in held_out[labels[held_out] == digit][:PNGS_PER_DIGIT]]


def write_pngs(images: np.ndarray, labels: np.ndarray, examples: list[int]) -> None:
    """Writes `png/<index>-is-<label>.png`, 8x8, grey 0..255."""
    folder = HERE / "png"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for index in examples:
        pixels = np.rint(images[index, 0] * (255 / BRIGHTEST)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{index:04d}-is-{labels[index]}.png")


def write_arrays(images: np.ndarray) -> None:
    """Writes images as one batch, and as JSON lines of one image each."""
    np.savez(HERE / "batch.npz", image=images)
    lines = [json.dumps({"image": image.astype(int).tolist()}, separators=(",", ":")) for image in images[:, None]]
    (HERE / "lines.jsonl").write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
