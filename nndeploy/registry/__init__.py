# SPDX-License-Identifier: Apache-2.0
"""Bundles in registries of containers: as an OCI artifact, one layer a member, so that only what changed travels.

push.py             a bundle to a registry, on one page
pull.py             a bundle from a registry, on one page
reference.py        oci://REGISTRY/REPOSITORY:TAG@DIGEST
artifact.py         the manifest of the artifact
options.py          how a registry is spoken to
credentials.py      the passwords that docker keeps
challenge.py        what a registry asks for, and the token that answers it
web_address.py      addresses that a registry names
connection.py       requests to one registry: TLS, redirects, credentials, limits
watched_reads.py    ends the waiting for who sends too slowly
remote.py           blobs and manifests of one repository
failures.py         what an answer means that is no success
cosign.py           signatures beside an artifact
simple_signing.py   what is signed of it
member_parts.py     members that are read from files, and the container that they make
kept_blobs.py       downloads that are under way, so that half of one is no loss
blob_download.py    one blob, over as many connections as it takes

A registry is not trusted: every digest is compared, and no more is read than was said before.
"""
