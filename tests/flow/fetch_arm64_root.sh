#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches what tests of a box of the other architecture need, from Debian's archive, into a folder:
#     sh fetch_arm64_root.sh build/arm64-root
# root/ is Debian 12 for arm64 with Python 3.11, unpacked and not set up; qemu/ the emulator, for this machine.
# apt gets a state of its own, so neither its nor dpkg's on this machine changes. No root.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
apt="$folder/apt"
rm -rf "$folder/root" "$folder/qemu" "$apt"
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/qemu" "$folder/root/box" "$folder/root/dev" "$folder/root/proc" "$folder/root/tmp"
: > "$apt/status"
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] http://deb.debian.org/debian bookworm main" > "$apt/sources.list"
here=$(dpkg --print-architecture)
cat > "$apt/apt.conf" << END
APT::Architecture "arm64";
APT::Architectures { "arm64"; "$here"; };
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
# NumPy needs libstdc++6; the others are what a Debian with Python has anyway.
apt-get --quiet --quiet --yes --no-install-recommends --download-only install python3 dash coreutils libstdc++6
for package in "$apt"/archives/*.deb; do
    dpkg -x "$package" "$folder/root"
done
cd "$apt/qemu"
apt-get --quiet --quiet download "qemu-user-static:$here"
dpkg -x qemu-user-static_*.deb "$folder/unpacked"
mkdir "$folder/qemu"
mv "$folder/unpacked/usr/bin/qemu-aarch64-static" "$folder/qemu"
rm -rf "$folder/unpacked" "$apt"
