# SPDX-License-Identifier: Apache-2.0
"""Own kernels for CPUs: plans that the kernel library nndeploy_kernels interprets.

lowering/    onnx-ir nodes -> steps on tensors; knows nothing of vector widths
fusion/      steps -> fewer steps: epilogues, separable pairs, inverted residuals, stems
steps/       what each step is
build.py, plan_words.py, plan_writer.py    steps -> plan, weights as the model has them, and a document
session.py   the run half: numpy, ctypes and the library of this machine
"""
