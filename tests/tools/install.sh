#!/bin/sh
# Installs the tools besides Python that tests marked `tools` need, from Debian's packages: promtool, kcat, Node.js.
# Does nothing where they are there already, and fails when one is missing in the end.
set -eu

missing=""
command -v promtool >/dev/null || missing="$missing prometheus"
command -v kcat >/dev/null || missing="$missing kcat"
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "test-tools: install$missing (or run make test-tools as root on Debian or Ubuntu)" >&2
    exit 1
fi
echo "test-tools: installing$missing"
# The package prometheus brings a service along, which must not start: only its promtool is wanted.
if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
for tool in promtool kcat node npm; do
    command -v "$tool" >/dev/null || { echo "test-tools: $tool is still missing" >&2; exit 1; }
done
