# SPDX-License-Identifier: Apache-2.0
"""Own kernels for CPUs, built ahead of time.

lowering/    onnx-ir nodes -> steps on tensors; knows nothing of vector widths
fusion/      steps -> fewer steps: epilogues, separable pairs, inverted residuals
steps/       each step packs its weights and names its kernel, for one instruction set
emit.py, build.py    steps -> C source, one arena -> shared library, constants, plan
session.py   the run half: libc and numpy
"""
