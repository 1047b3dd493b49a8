#!/usr/bin/env bash
# Installs what a script here needs and the machine lacks: `install.sh build` for compiling and
# testing the broker, `install.sh clients` for the client suites, `install.sh instructions` for
# counting instructions. Debian packages only, as root; elsewhere it says what to install and fails.
set -euo pipefail

missing=()
need() { # need COMMAND PACKAGE…
    local command="$1"
    shift
    command -v "$command" > /dev/null || missing+=("$@")
}

install_missing() {
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "installing: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
        echo "install.sh: please install: ${missing[*]}" >&2
        return 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

case "${1:-}" in
    build)
        need cc gcc libc6-dev
        need cargo cargo
        install_missing
        # A toolchain made by rustup may come without the two that CI needs.
        cargo fmt --version > /dev/null 2>&1 || rustup component add rustfmt
        cargo clippy --version > /dev/null 2>&1 || rustup component add clippy
        ;;
    instructions)
        need valgrind valgrind
        need setarch util-linux
        need python3 python3
        install_missing
        ;;
    clients)
        need cc gcc libc6-dev
        need c++ g++
        need make make
        need kcat kcat
        need python3 python3
        need node nodejs
        need npm npm
        need curl curl
        python3 -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)
        install_missing
        ;;
    *)
        echo "usage: scripts/install.sh build|clients|instructions" >&2
        exit 2
        ;;
esac
