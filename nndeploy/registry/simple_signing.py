# SPDX-License-Identifier: Apache-2.0
"""What cosign signs of an artifact: a small JSON text, "simple signing", that names its digest.

Laws: the same artifact under the same tag has one text; of a text that somebody else wrote everything is as containers'
own tools demand it, or it is refused. `docker-reference` is where the signer put the artifact. cosign passes over it,
and so does this: a copy in a mirror has the signature of the original. skopeo compares it by its policy, by default
with the tag, so what is written here is the whole reference.

Source: cosign, specs/SIGNATURE_SPEC.md, "Payloads"; containers-signature(5), "JSON data format".
"""

from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.registry.reference import Reference

PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
MAX_PAYLOAD_BYTES = 64 << 10
_TYPE = "cosign container image signature"


def payload_of(artifact: Reference) -> bytes:
    """Returns what is signed of an artifact, of which the reference has the digest."""
    named = f"{artifact.registry}/{artifact.repository}:{artifact.tag}"
    critical = {
        "identity": {"docker-reference": named}, "image": {"docker-manifest-digest": artifact.digest}, "type": _TYPE,
    }  # fmt: skip
    return canonical_json({"critical": critical, "optional": {}})


def digest_in(payload: bytes) -> str:
    """Returns the digest of the artifact that a payload is about.

    Raises:
        BundleError: it is no such payload.
    """
    match parse_json(payload, MAX_PAYLOAD_BYTES, is_canonical=False):
        case {
            "critical": {
                "type": str(kind),
                "image": {"docker-manifest-digest": str(digest), **more_of_image},
                "identity": {"docker-reference": str(), **more_of_identity},
                **more_of_critical,
            },
            "optional": dict() | None,
            **more,
        } if not (more or more_of_critical or more_of_image or more_of_identity):
            if kind == _TYPE:
                return digest
            raise BundleError(f"what is signed is a {kind!r:.60}, not a {_TYPE!r}")
    raise BundleError("what is signed is no payload of cosign")
