# SPDX-License-Identifier: Apache-2.0
"""Checks a bundle: every byte against its hashes, then its goldens run here and compared with the reference.

bundle -> hashes, structure, what is code -> each golden's inputs through a program -> `OutputVerdict`s
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nndeploy.bundle.manifest import Manifest, Tolerance
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.comparison.compare import Comparison, tolerance_for
from nndeploy.comparison.judge import judge
from nndeploy.errors import BundleError, PolicyError, UsageError
from nndeploy.runtime.code_policy import files_in, with_code_flags
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.runtime.select import Choice
from nndeploy.trust.signatures import SignatureVerdict, check_signatures, holds_code
from nndeploy.trust.trust_store import CODE, DATA, trust_store


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """One output of one golden against the reference; `origin` is "sample" or "generated"."""

    golden: int
    origin: str
    output: str
    tolerance: Tolerance
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of checking a bundle whose bytes are what its manifest says.

    `outputs` is empty where nothing was run or the bundle holds no goldens; `choices` says what ran; `signed` what the
    signatures are worth, None where that was not asked.
    """

    path: Path
    size_bytes: int
    num_members: int
    outputs: tuple[OutputVerdict, ...] = ()
    choices: tuple[Choice, ...] = ()
    signed: SignatureVerdict | None = None

    @property
    def failed(self) -> tuple[OutputVerdict, ...]:
        """The outputs that differ from the reference."""
        return tuple(verdict for verdict in self.outputs if not verdict.comparison.ok)

    @property
    def ok(self) -> bool:
        """Whether something was compared, and nothing differs."""
        return bool(self.outputs) and not self.failed


def verify(
    path: str | os.PathLike[str],
    *,
    run: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    signatures: bool = False,
    load: Callable[[Path], Program] = load_bundle,
) -> Verification:
    """Checks every byte of a bundle, and with `run` its results on this machine.

    `rtol` and `atol` stand in place of the bundle's tolerances for floats, and of its limits. With `signatures` a
    trusted key must have signed the bundle, whatever it holds. `load` opens its program.

    Raises:
        MissingInputError: there is no such file.
        BundleError: the bundle is malformed, damaged or of a newer format.
        PolicyError: the manifest says of a file that it is no code, which it is, or the other way round; or no trusted
            key signed code that would run, or with `signatures` the bundle.
        UnavailableError: a submodel has no variant that can run here.
        UsageError: tolerances were given and nothing is run.
    """
    if not run and (rtol, atol) != (None, None):
        raise UsageError("tolerances have no effect if nothing is run")
    path = Path(path)
    with open_bundle(path) as bundle:
        bundle.verify()
        manifest = with_code_flags(bundle.manifest, files_in(bundle))
        signed = _signed(bundle, manifest) if signatures else None
        checked = Verification(path, bundle.size_bytes, len(bundle.manifest.members), signed=signed)
        if not run or not bundle.manifest.goldens:
            return checked
        tolerances = _tolerances(bundle.manifest, rtol, atol)
        with load(path) as program:
            if program.bundle.manifest_text != bundle.manifest_text:
                raise BundleError("it was replaced while it was being checked", where=str(path), hint="try again")
            outputs = tuple(_verdicts(program, bundle, tolerances, by_limits=rtol is None and atol is None))
            return replace(checked, outputs=outputs, choices=program.choices)


def golden_verdicts(program: Program) -> tuple[OutputVerdict, ...]:
    """Returns what comes of running the goldens of a program that is open, by the bundle's own tolerances.

    Raises:
        NndeployError: as `Program.run`.
    """
    return tuple(_verdicts(program, program.bundle, program.manifest.tolerances, by_limits=True))


def _signed(bundle: Bundle, manifest: Manifest) -> SignatureVerdict:
    """Returns what the signatures are worth.

    Raises:
        PolicyError: too little.
    """
    scope = CODE if holds_code(manifest) else DATA
    verdict = check_signatures(bundle, trust_store(), scope, at_least=1)
    if not verdict.is_allowed:
        raise PolicyError(f"not trusted with {scope}: {verdict.problem}", where=str(bundle.path), hint=verdict.hint)
    return verdict


def _tolerances(manifest: Manifest, rtol: float | None, atol: float | None) -> dict[str, Tolerance]:
    """Returns the bundle's tolerances, with those that were given for every floating type."""
    floats = [dtype for dtype in manifest.tolerances if "float" in dtype or "complex" in dtype]
    changes = {name: value for name, value in (("rtol", rtol), ("atol", atol)) if value is not None}
    return {**manifest.tolerances, **{dtype: replace(manifest.tolerances[dtype], **changes) for dtype in floats}}


def _verdicts(
    program: Program, bundle: Bundle, tolerances: Mapping[str, Tolerance], *, by_limits: bool
) -> Iterator[OutputVerdict]:
    for i, golden in enumerate(bundle.manifest.goldens):
        want = bundle.values(golden.outputs)
        got = program.run(bundle.values(golden.inputs))
        types = {output.name: output.type for output in program.outputs if output.name in want}
        found = judge(got, want, types, tolerances, lambda golden=golden: golden.limits if by_limits else {})  # type: ignore[misc]
        for name, kind in types.items():
            yield OutputVerdict(i, golden.origin, name, tolerance_for(kind, tolerances), found[name])
