#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian 12 with Python 3.11 for an architecture, from Debian's archive, into a folder:
#     sh fetch_debian_root.sh arm64 build/arm64-root
# root/ is that Debian, unpacked and not set up; qemu/ what runs its programs here, where this machine has another one.
# apt gets a state of its own, so neither its nor dpkg's on this machine changes. No root.
set -eu
arch=$1
folder=$(mkdir -p "$2" && cd "$2" && pwd)
apt="$folder/apt"
rm -rf "$folder/root" "$folder/qemu" "$apt"
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/qemu" "$folder/root/box" "$folder/root/dev" "$folder/root/proc" "$folder/root/tmp"
: > "$apt/status"
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] http://deb.debian.org/debian bookworm main" > "$apt/sources.list"
here=$(dpkg --print-architecture)
cat > "$apt/apt.conf" << END
APT::Architecture "$arch";
APT::Architectures { "$arch"; "$here"; };
APT::Sandbox::User "";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
END
export APT_CONFIG="$apt/apt.conf"
apt-get --quiet --quiet update
# NumPy needs libstdc++6, new environments python3-venv; the others are what a Debian with Python has anyway.
apt-get --quiet --quiet --yes --no-install-recommends --download-only install python3 python3-venv dash coreutils libstdc++6
for package in "$apt"/archives/*.deb; do
    dpkg -x "$package" "$folder/root"
done
if [ "$arch" != "$here" ]; then
    cd "$apt/qemu"
    apt-get --quiet --quiet download "qemu-user-static:$here"
    dpkg -x qemu-user-static_*.deb "$folder/unpacked"
    mkdir "$folder/qemu"
    mv "$folder/unpacked/usr/bin/qemu-aarch64-static" "$folder/qemu"
fi
rm -rf "$folder/unpacked" "$apt"
