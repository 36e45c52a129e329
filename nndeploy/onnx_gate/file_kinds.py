# SPDX-License-Identifier: Apache-2.0
"""What a file that is no ONNX model probably is, so that the refusal can say what to do instead."""

EXPORT = 'export the model first: torch.onnx.export(model, (example_input,), "model.onnx")'
"""What to do with a file of PyTorch's. Source: PyTorch documentation, torch.onnx."""
_KINDS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"version https://git-lfs", "this is a Git LFS pointer, not the model: `git lfs pull` fetches it"),
    (0, b"PK\x03\x04", ""),
    (0, b"\x80\x02", f"this looks like a pickle, for example of PyTorch: {EXPORT}"),
    (0, b"\x80\x03", "this looks like a pickle: export the model to ONNX"),
    (0, b"\x80\x04", "this looks like a pickle: export the model to ONNX"),
    (0, b"\x80\x05", "this looks like a pickle: export the model to ONNX"),
    (0, b"\x1f\x8b", "this is compressed with gzip: decompress it first"),
    (0, b"\x89HDF", "this is an HDF5 file, for example of Keras: export the model to ONNX"),
    (0, b"GGUF", "this is a GGUF file: export the model to ONNX"),
    (8, b'{"', "this looks like safetensors, which hold weights and no graph: export the model to ONNX"),
    (4, b"TFL3", "this is a TensorFlow Lite model: convert it to ONNX"),
    (4, b"ORTM", "this is an ONNX Runtime .ort file: compile the .onnx file that it was made from"),
    (0, b"<?xml", "this is XML; of an OpenVINO model, compile the .onnx file that it was made from"),
    (0, b"<!DOCTYPE", "this is a web page: was the download redirected?"),
    (0, b"<html", "this is a web page: was the download redirected?"),
    (0, b"<", "this looks like ONNX text: onnx.parser turns it into a binary model"),
    (0, b"{", "this looks like JSON: nndeploy reads binary .onnx files"),
)
"""Offset, bytes that lie there, hint."""


def file_kind_hint(data: bytes) -> str:
    """Returns what the bytes look like and what to do, "" where they look like nothing that is known."""
    for offset, magic, hint in _KINDS:
        if data[offset : offset + len(magic)] == magic:
            return hint or _zip_hint(data)
    return ""


def _zip_hint(data: bytes) -> str:
    if b"manifest.json" in data[-65536:]:
        return "this is a compiled bundle: `nndeploy run` and `nndeploy inspect` take it"
    if b"data.pkl" in data[:4096] or b"data.pkl" in data[-65536:]:  # the first of many members
        return f"this is a PyTorch file: {EXPORT}"
    return "this is a ZIP archive: unpack it and give the .onnx file inside"
