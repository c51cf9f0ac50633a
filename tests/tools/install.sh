#!/bin/sh
# Installs the tools besides Python that tests marked `tools` need, from Debian's packages: Prometheus and Alertmanager,
# kcat, jq, Node.js, Go, a JDK with Maven, Rust with a C compiler, systemd-analyze; Kustomize from its Go module, and a
# newer Python (`python.sh`). Does nothing where they are there already, and fails when one is missing in the end, or
# too old for what is built with it.
set -eu

# Each tool, and the package that has it.
tools="promtool:prometheus amtool:prometheus-alertmanager kcat:kcat jq:jq node:nodejs npm:npm go:golang-go javac:default-jdk-headless mvn:maven
    cargo:cargo cc:gcc make:make systemd-analyze:systemd"

missing=""
for each in $tools; do
    command -v "${each%:*}" >/dev/null || missing="$missing ${each#*:}"
done

if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "test-tools: install$missing (or run make test-tools as root on Debian or Ubuntu)" >&2
        exit 1
    fi
    echo "test-tools: installing$missing"
    # Prometheus and Alertmanager bring services along, which must not start: tests run the programs themselves.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
    for each in $tools; do
        command -v "${each%:*}" >/dev/null || { echo "test-tools: ${each%:*} is still missing" >&2; exit 1; }
    done
fi

# rustup's cargo works with no toolchain of its own, and which one is said by home directory: RUSTUP_HOME, else ~/.rustup.
if ! cargo --version >/dev/null 2>&1; then
    installed="$(rustup toolchain list 2>/dev/null | grep -- - | head -n 1 | cut -d ' ' -f 1)"
    if [ -z "$installed" ] || ! rustup default "$installed" >/dev/null 2>&1; then
        echo "test-tools: cargo does not start; if it is rustup's: rustup default stable, or set RUSTUP_HOME to the" \
            "directory that has your toolchains" >&2
        exit 1
    fi
    echo "test-tools: rustup's default toolchain is now $installed"
fi

# at_least TOOL WANTED FOUND: fails where the version is lower. A distribution may have older ones than its makers.
at_least() {
    [ "$(printf '%s\n' "$2" "$3" | sort -V | head -n 1)" = "$2" ] ||
        { echo "test-tools: $1 is $3, and $2 or newer is needed: install it from where it is made" >&2; exit 1; }
}
at_least Node.js 20.19.4 "$(node --version | tr -d v)"
at_least Go 1.21 "$(go env GOVERSION | tr -d go)" # fetches a newer one itself where a module asks for it
at_least javac 17 "$(javac -version 2>&1 | cut -d ' ' -f 2)"
at_least Rust 1.85 "$(cargo --version | cut -d ' ' -f 2)"

"$(dirname "$0")"/python.sh >/dev/null

# Debian has no Kustomize: kubectl brings one along where it is installed, else it is built, once.
kustomize=build/tools/kustomize
if ! command -v kubectl >/dev/null && ! command -v kustomize >/dev/null && [ ! -x "$kustomize" ]; then
    echo "test-tools: building Kustomize"
    GOBIN="$PWD/build/tools" go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
fi
