#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle is signed by a key: verify_signature.py BUNDLE KEY.pub. Uses openssl, and nothing of nndeploy.

Ends with 0 where it is, 1 where it is not. It shows all that a signature means: read it, or write your own.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def openssl(*arguments: str | Path) -> bytes:
    return subprocess.run(["openssl", *arguments], capture_output=True, check=True).stdout


def payload_of(envelope: dict, key: str, key_id: str) -> bytes:
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"], validate=True)
    (signature,) = (base64.b64decode(one["sig"]) for one in envelope["signatures"] if one["keyid"] == key_id)
    with tempfile.TemporaryDirectory() as folder:
        signed, by = Path(folder, "signed"), Path(folder, "by")
        signed.write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
        by.write_bytes(signature)
        openssl("pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", signed, "-sigfile", by)
    return payload


def is_signed(bundle: str, key: str) -> bool:
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    key_id = hashlib.sha256(openssl("pkey", "-pubin", "-in", key, "-outform", "DER")).hexdigest()
    what, how, end = members.pop("signature").split(b"\n")  # two statements: what it is, and how it was made
    listed = [json.loads(payload_of(json.loads(line), key, key_id))["subject"] for line in (what, how)]
    found = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    told = [{one["name"]: one["digest"]["sha256"] for one in subjects} for subjects in listed]
    return told == [found, {"manifest.json": found["manifest.json"]}] and not end


if __name__ == "__main__":
    try:
        verdict = is_signed(sys.argv[1], sys.argv[2])
    except (KeyError, ValueError, OSError, zipfile.BadZipFile, subprocess.CalledProcessError) as err:
        sys.exit(f"not signed: {err}")
    print("signed" if verdict else "not signed")
    sys.exit(not verdict)
