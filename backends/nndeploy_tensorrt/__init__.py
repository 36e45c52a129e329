# SPDX-License-Identifier: Apache-2.0
"""TensorRT: whole networks on NVIDIA GPUs, engines built on machines without one."""
