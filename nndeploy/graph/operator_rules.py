# SPDX-License-Identifier: Apache-2.0
"""Which operators a model may use: domains, versions of operator sets, and operators that carry code.

Plain tables and rules without any library, for the gate. Whether an operator of ONNX itself exists is asked of the
onnx library later (`onnx_checks.py`); whether a backend runs it, of the backend.

Source: IR and operator-set versions of onnx 1.23 (Versioning.md); 9-reliability, T4.
"""

import sys
from collections.abc import Iterator, Mapping, Set

from nndeploy.errors import ModelError, PolicyError

IR_VERSIONS = range(1, 15)
FIRST_IR_WITH_IMPORTS = 3
"""IR versions before this one know no operator sets: their models are of version 1 of ai.onnx."""
OPSETS: dict[str, range] = {
    "": range(1, 29),
    "ai.onnx.ml": range(1, 6),
    "ai.onnx.preview": range(1, 2),
    "ai.onnx.preview.training": range(1, 2),
    "ai.onnx.training": range(1, 2),
    "com.microsoft": range(1, 2),
}
"""Domain of operators that every model may use -> the versions that are known."""

CODE_OPERATORS: dict[str, str] = {
    "ATen": "runs PyTorch code",
    "EPContext": "carries a compiled engine",
    "PyOp": "runs Python code",
    "PythonOp": "runs Python code",
    "PythonOpGrad": "runs Python code",
    "Snpe": "carries a compiled engine",
    "TritonOp": "runs compiled code",
}
"""Operators that are refused in every domain: what runs would not be the model's graph."""

QUANT_DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general")
QUANT_OPERATORS = ("BipolarQuant", "Quant")
"""Operators of these domains that are rewritten as ONNX's own (`nndeploy.frontend.lower_quant`)."""

_ANY_VERSION = range(1, 2**31)
_MACHINE_DOMAINS = ("com.microsoft.nchwc", "com.ms.internal.nhwc")


def normal_domain(domain: str) -> str:
    """Returns the domain's one name: "ai.onnx" is ""."""
    return "" if domain == "ai.onnx" else domain


def shown_domain(domain: str) -> str:
    """Returns the domain as people write it."""
    return domain or "ai.onnx"


def shown_operator(domain: str, op_type: str) -> str:
    """Returns `Conv` for an operator of ONNX itself, `domain::Op` for any other."""
    return f"{domain}::{op_type}" if domain else op_type


def check_ir_version(version: int | None) -> None:
    """Raises ModelError where the version is missing or not one that is known."""
    if version not in IR_VERSIONS:
        raise ModelError(
            f"the model has {'no IR version' if version is None else f'IR version {version}'}",
            hint=f"nndeploy reads the versions {_shown_range(IR_VERSIONS)}",
        )


def checked_imports(pairs: list[tuple[str, int | None]]) -> dict[str, int]:
    """Returns domain -> version of the operator sets that a model or function imports.

    Raises:
        ModelError: there are none, a domain is there in two versions, or a version is not one that is known.
    """
    imports: dict[str, int] = {}
    for domain, version in pairs:
        name = normal_domain(domain)
        if imports.setdefault(name, _checked_version(name, version)) != version:
            raise ModelError(
                f"the operator set {shown_domain(name)} is imported in the versions {imports[name]} and {version}"
            )
    if not imports:
        raise ModelError(
            "no operator set is imported", hint=f"nndeploy reads ai.onnx versions {_shown_range(OPSETS[''])}"
        )
    return imports


def check_operator(
    domain: str, op_type: str, imports: Mapping[str, int], is_function: bool, extra_domains: Set[str]
) -> None:
    """Checks that a node may use the operator; `is_function` says that the model itself defines it.

    Raises:
        PolicyError: the operator carries code, or nobody vouches for its domain.
        ModelError: the operator set is not imported.
    """
    name = shown_operator(domain, op_type)
    if op_type in CODE_OPERATORS:
        raise PolicyError(
            f"the operator {name} is not allowed: it {CODE_OPERATORS[op_type]}",
            hint="export the model again without it, from the original network",
        )
    is_rewritten = domain in QUANT_DOMAINS and op_type in QUANT_OPERATORS
    if not is_function and not is_rewritten and domain not in OPSETS and domain not in extra_domains:
        raise PolicyError(f"the operator {name} is not allowed: {_why_not(domain)}", hint=_what_to_do(domain))
    if domain not in imports:
        raise ModelError(
            f"the operator {name} is used, but its operator set {shown_domain(domain)} is not imported",
            hint="a model imports every operator set that it uses",
        )


class _AnyDomain(Set[str]):
    """Every domain but those that are made for one machine."""

    def __contains__(self, domain: object) -> bool:
        return domain not in _MACHINE_DOMAINS

    def __iter__(self) -> Iterator[str]:
        raise TypeError("there is no list of all domains")

    def __len__(self) -> int:
        return sys.maxsize


ANY_DOMAIN: Set[str] = _AnyDomain()
"""Value of `extra_domains` that allows all: the operator of this machine named libraries, which know their domains."""


def _why_not(domain: str) -> str:
    if domain in _MACHINE_DOMAINS:
        return "it is internal to ONNX Runtime and made for one machine"
    return f"the domain {domain!r} is not one of ONNX or ONNX Runtime"


def _what_to_do(domain: str) -> str:
    if domain in _MACHINE_DOMAINS:
        return "compile the original model, not one that ONNX Runtime has optimised"
    return "`--custom-ops LIBRARY` can name a library that implements the domain"


def _checked_version(domain: str, version: int | None) -> int:
    known = OPSETS.get(domain, _ANY_VERSION)
    if version is None or version not in known:
        raise ModelError(
            f"operator set {shown_domain(domain)} has {'no version' if version is None else f'version {version}'}",
            hint=f"nndeploy reads the versions {_shown_range(known)}",
        )
    return version


def _shown_range(versions: range) -> str:
    return f"{versions.start} to {versions.stop - 1}" if len(versions) > 1 else f"{versions.start}"
