#!/usr/bin/env bash
# Makes .venv from the hashed requirements and installs scrubjay into it, editable.
# Returns at once when nothing changed; a broken or half-made .venv is made anew.
# PYTHON=python3.12 tools/setup.sh chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VENV=.venv CANDIDATES="python3.13 python3.12 python3.11 python3"
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "setup: $*" >&2; }

# A command may exist and still not run (version managers leave such shims): try each one.
find_python() {
    local name
    for name in ${PYTHON:-$CANDIDATES}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    say "scrubjay needs Python 3.11 or newer; tried: ${PYTHON:-$CANDIDATES}."
    say "Install one, or say where yours is: PYTHON=/path/to/python3 make setup"
    return 1
}

# Debian and Ubuntu package the venv module apart from Python.
ensure_venv_module() {
    local python=$1 package as_root=()
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then return; fi
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if ! command -v apt-get >/dev/null; then
        say "$python cannot make virtual environments; install its venv module ($package on Debian)."
        return 1
    fi
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    say "installing $package"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$package"
}

# A line that changes with the interpreter, the place of the checkout and the file.
fingerprint() {
    "${PYTHON:-$VENV/bin/python}" -c '
import hashlib, os, sys
context = f"{sys.version} {os.getcwd()} ".encode()
print(hashlib.sha256(context + open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

has_modules() {
    "$VENV/bin/python" -c '
import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "$@"
}

# is_current STAMP FILE MODULE...: made from the file as it is now, and still there?
is_current() {
    local stamp=$VENV/.stamp-$1 file=$2
    shift 2
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint "$file")" ] && has_modules "$@"
}

make_environment() {
    local python
    python=$(find_python)
    ensure_venv_module "$python"
    say "making $VENV with $("$python" --version)"
    rm -rf "$VENV"
    "$python" -m venv "$VENV"
    "$VENV/bin/python" -m pip install --quiet --no-compile --require-hashes -r requirements/dev.txt
    fingerprint requirements/dev.txt >"$VENV/.stamp-environment"
}

install_package() {
    "$VENV/bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable .
    fingerprint pyproject.toml >"$VENV/.stamp-package"
}

is_current environment requirements/dev.txt pip pytest 2>/dev/null || make_environment
is_current package pyproject.toml scrubjay 2>/dev/null || install_package

# The servers that tests run against, from Debian's packages. One that cannot be installed is said,
# with what the package manager said, and its tests skip for that reason alone.
readonly REFUSED=$VENV/not-installable

install_server() {
    local name=$1 present=$2 said as_root=()
    if compgen -G "$present" >/dev/null || [ -f "$REFUSED/$name" ]; then return; fi
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    say "installing $name"
    mkdir -p "$REFUSED"
    if said=$({ "${as_root[@]}" apt-get update -qq &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$name"; } 2>&1); then
        say "$name: ran"
    else
        say "$name: not installable: $said"
        echo "$said" >"$REFUSED/$name"
    fi
}

install_server postgresql "/usr/lib/postgresql/*/bin/initdb"
install_server softhsm2 "/usr/lib/softhsm/libsofthsm2.so"

# Aside, because its libraries are not ours.
install_s3_server() {
    local said
    if is_current s3_server requirements/s3_server.txt pip && [ -d build/s3_server ]; then return; fi
    say "installing an S3 server for the tests"
    rm -rf build/s3_server "$REFUSED/s3_server"
    if said=$("$VENV/bin/uv" pip install --quiet --require-hashes --target build/s3_server \
        --python "$VENV/bin/python" -r requirements/s3_server.txt 2>&1); then
        say "S3 server: ran"
        fingerprint requirements/s3_server.txt >"$VENV/.stamp-s3_server"
    else
        say "S3 server: not installable: $said"
        mkdir -p "$REFUSED"
        echo "$said" >"$REFUSED/s3_server"
    fi
}

install_s3_server
