#!/bin/sh
# Tells a Python of version 3.12 or newer, which some frameworks of agents need: one that is there, else Debian 13's,
# unpacked under build/tools beside the C library that it needs. Nothing of the machine is changed but for patchelf.
set -eu

place="$PWD/build/tools/python"
unpacked="$place/usr/bin/python3.13"

new_enough() {
    "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

for each in .venv/bin/python python3.14 python3.13 python3.12 "$unpacked"; do
    if new_enough "$each"; then
        command -v "$each"
        exit 0
    fi
done

# A machine that has only older ones: from the place that its own packages of Debian come from.
from="$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/*$' || true)"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
if [ "$(id -u)" != 0 ] || [ -z "$from" ] || [ ! -e "$keys" ]; then
    echo "test-tools: install Python 3.12 or newer, with venv (or run make test-tools as root on Debian)" >&2
    exit 1
fi
echo "test-tools: unpacking Debian 13's Python" >&2
export DEBIAN_FRONTEND=noninteractive
command -v patchelf >/dev/null || {
    apt-get update -qq >&2
    apt-get install -y -qq --no-install-recommends patchelf >/dev/null
}

# apt with a list, a cache and a state of its own, in which nothing is installed yet: so that it names every dependency.
rm -rf "$place"
mkdir -p "$place/apt/lists/partial" "$place/apt/archives/partial"
echo "deb [signed-by=$keys] $from trixie main" >"$place/apt/sources.list"
: >"$place/apt/status"
apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$place/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$place/apt/lists" -o Dir::State::status="$place/apt/status" -o Dir::Cache="$place/apt" \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o APT::Sandbox::User=root "$@" >&2
}
apt update
apt install --yes --no-install-recommends --download-only python3.13-venv libstdc++6 >/dev/null
for each in "$place"/apt/archives/*.deb; do
    dpkg-deb --extract "$each" "$place"
done
rm -rf "$place/apt"

# It is started by its own loader and finds its own libraries, so that it needs neither chroot nor variables.
loader="$(find "$place/usr" -name "$(basename "$(patchelf --print-interpreter "$unpacked")")" | head -n 1)"
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$(dirname "$loader")" "$unpacked"
new_enough "$unpacked" || { echo "test-tools: Debian 13's Python does not start here" >&2; exit 1; }
echo "$unpacked"
