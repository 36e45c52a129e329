# SPDX-License-Identifier: Apache-2.0
"""Bundles behind a network interface: the Open Inference Protocol, version 2, over HTTP and over gRPC.

bytes of a request -> `InferRequest` (json_form, message_form) -> `ServedModel` -> `CallQueue` -> outputs -> bytes

One thread runs an event loop that reads requests and writes answers; the workers of a model only compute. So whoever
sends or reads slowly keeps a connection busy and never a worker.
"""
