#!/usr/bin/env bash
# Installs the servers that examples/cluster runs, from Debian's packages, and starts none of them.
# One line a server: there, ran, or not installable, with what the package manager said.
set -uo pipefail

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
failed=0

# While a package is installed, no service of it may start: the cluster brings its own settings.
readonly POLICY=/usr/sbin/policy-rc.d
if [ ! -e "$POLICY" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$POLICY" >/dev/null
    "${as_root[@]}" chmod +x "$POLICY"
    trap '"${as_root[@]}" rm -f "$POLICY"' EXIT
fi

# server NAME PROGRAM PACKAGE...
server() {
    local name=$1 program=$2 said
    shift 2
    if PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || compgen -G "$program" >/dev/null; then
        echo "$name: there"
    elif said=$({ [ -n "${listed:-}" ] || "${as_root[@]}" apt-get update -qq; } 2>&1 &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$@" 2>&1); then
        listed=1
        echo "$name: ran"
    else
        echo "$name: not installable: $said"
        failed=1
    fi
}

wanted=${*:-postgresql patroni etcd swift haproxy pgbouncer softhsm}
for one in $wanted; do
    case $one in
        postgresql) server postgresql "/usr/lib/postgresql/*/bin/initdb" postgresql ;;
        patroni) server patroni patroni patroni ;;
        etcd) server etcd etcd etcd-server ;;
        swift) server swift swift-proxy-server swift-proxy swift-account swift-container swift-object memcached ;;
        haproxy) server haproxy haproxy haproxy ;;
        pgbouncer) server pgbouncer pgbouncer pgbouncer ;;
        softhsm) server softhsm softhsm2-util softhsm2 ;;
        *) echo "$one: no such server"; failed=1 ;;
    esac
done
exit "$failed"
