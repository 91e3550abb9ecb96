#!/usr/bin/env bash
# Runs scrubjay against real programs by others: `tools/test_others.sh clients` or `… cluster`.
# Each program has a folder in tests/clients or tests/cluster:
#
#   install.sh   installs the program, under $OTHER_HOME if it is not the system's; nothing to do is fine
#   test_*.py    run with OTHER_HOME in the environment
#
# For each it prints one line: ran, FAILED, or not installable, with the output of what failed.
# ONLY="initrunner inspector" runs only these; other arguments go to pytest.
set -uo pipefail
cd "$(dirname "$0")/.."

readonly KIND=$1 BUILD=$PWD/build/$1
shift
export SCRUBJAY_OTHERS=$KIND
failed=0 summary=()

tell() {
    summary+=("$1")
    echo "$KIND: $1"
}

# How pytest sums up: what a library says at exit may come after it.
outcome() { grep -E '(passed|failed|error).* in [0-9.]+s' "$1" | tail -1; }

run_one() {
    local name=$1 log=$BUILD/$1.log
    shift
    export OTHER_HOME=$BUILD/$name
    mkdir -p "$OTHER_HOME"
    if ! bash -eu "tests/$KIND/$name/install.sh" >"$log" 2>&1; then
        tail -20 "$log"
        tell "$name: not installable"
    elif .venv/bin/python -m pytest -q -n 0 "tests/$KIND/$name" "$@" >"$log" 2>&1; then
        tell "$name: ran, $(outcome "$log")"
    else
        tail -60 "$log"
        tell "$name: FAILED, $(outcome "$log")"
        failed=1
    fi
}

mkdir -p "$BUILD"
for folder in "tests/$KIND"/*/; do
    name=$(basename "$folder")
    [ -f "$folder/install.sh" ] || continue
    [[ -n "${ONLY:-}" && " $ONLY " != *" $name "* ]] || run_one "$name" "$@"
done
echo
printf '%s\n' "${summary[@]}"
exit "$failed"
