#!/usr/bin/env bash
# Runs scrubjay against real programs by others. Each has a folder in tests/clients:
#
#   install.sh   installs the program under $CLIENT_HOME, which is kept; nothing to do is fine
#   test_*.py    run with CLIENT_HOME in the environment
#
# For each it prints one line: ran, FAILED, or not installable, with the output of what failed.
# CLIENTS="initrunner inspector" tools/test_clients.sh runs only these; other arguments go to pytest.
set -uo pipefail
cd "$(dirname "$0")/.."

readonly BUILD=$PWD/build/clients
export SCRUBJAY_CLIENTS=1
failed=0 summary=()

tell() {
    summary+=("$1")
    echo "clients: $1"
}

run_client() {
    local name=$1 log=$BUILD/$1.log
    shift
    export CLIENT_HOME=$BUILD/$name
    mkdir -p "$CLIENT_HOME"
    if ! bash -eu "tests/clients/$name/install.sh" >"$log" 2>&1; then
        tail -20 "$log"
        tell "$name: not installable"
    elif .venv/bin/python -m pytest -q -n 0 "tests/clients/$name" "$@" >"$log" 2>&1; then
        tell "$name: ran, $(tail -1 "$log")"
    else
        tail -60 "$log"
        tell "$name: FAILED, $(tail -1 "$log")"
        failed=1
    fi
}

mkdir -p "$BUILD"
for folder in tests/clients/*/; do
    name=$(basename "$folder")
    [ -f "$folder/install.sh" ] || continue
    [[ -n "${CLIENTS:-}" && " $CLIENTS " != *" $name "* ]] || run_client "$name" "$@"
done
echo
printf '%s\n' "${summary[@]}"
exit "$failed"
