#!/usr/bin/env bash
# Two scrubjay nodes, with everything under them, on one machine: to try out, and to test.
#
#   cluster.sh start [PART…]   start all parts, or only some: etcd postgres swift nodes haproxy
#   cluster.sh stop [PART…]    stop them; what they keep stays
#   cluster.sh status          which processes run
#   cluster.sh remove          stop everything and remove the folder
#
# CLUSTER_DIR    where everything is kept (default: scrubjay-cluster in the folder for temporary files)
# CLUSTER_PORT   first of 40 ports on 127.0.0.1 (default: 18300); clients use this one
# SCRUBJAY       the program (default: scrubjay), with the extras server, postgres, s3 and pkcs11
#
# install.sh beside it installs the servers. On several machines each part is the same, with other
# addresses, three etcd, TLS, and three replicas in Swift: docs/scale.md.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
readonly HERE DIR=${CLUSTER_DIR:-${TMPDIR:-/tmp}/scrubjay-cluster} SCRUBJAY=${SCRUBJAY:-scrubjay}
readonly FRONT=${CLUSTER_PORT:-18300} PATIENCE=120
readonly NODE_1=$((FRONT + 1)) NODE_2=$((FRONT + 2))
readonly POSTGRES_1=$((FRONT + 11)) POSTGRES_2=$((FRONT + 12))
readonly PATRONI_1=$((FRONT + 21)) PATRONI_2=$((FRONT + 22))
readonly ETCD=$((FRONT + 25)) ETCD_PEER=$((FRONT + 26))
readonly SWIFT=$((FRONT + 31)) MEMCACHED=$((FRONT + 35))
readonly MODULE=/usr/lib/softhsm/libsofthsm2.so
readonly ALL="etcd postgres swift nodes haproxy"
export PATH=$PATH:/usr/sbin LC_ALL=C.UTF-8
umask 022

say() { echo "cluster: $*" >&2; }

# fill TEMPLATE FILE NAME=VALUE…: a file of etc/ with @NAME@ replaced
fill() {
    local template=$1 file=$2 one script=()
    shift 2
    for one in "DIR=$DIR" "PASSWORD=$(cat "$DIR/password")" "FRONT=$FRONT" "NODE_1=$NODE_1" "NODE_2=$NODE_2" \
        "ETCD=$ETCD" "SWIFT=$SWIFT" "MEMCACHED=$MEMCACHED" "SWIFT_USER=$(id -un)" "$@"; do
        script+=(-e "s|@${one%%=*}@|${one#*=}|g")
    done
    sed "${script[@]}" "$HERE/etc/$template" >"$file"
}

# until SECONDS WHAT COMMAND…: wait until the command succeeds
until_ready() {
    local what=$1 until=$((SECONDS + PATIENCE))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $until ]; then
            say "$what is not ready after $PATIENCE s; its log is in $DIR/log"
            return 1
        fi
        sleep 0.2
    done
    say "$what is ready"
}

runs() { [ -f "$DIR/pid/$1" ] && kill -0 "$(cat "$DIR/pid/$1")" 2>/dev/null; }

# background NAME COMMAND…: a process group of its own, with its log
background() {
    local name=$1
    shift
    if runs "$name"; then return; fi
    setsid "$@" >>"$DIR/log/$name" 2>&1 </dev/null &
    echo $! >"$DIR/pid/$name"
}

# end NAME…: ask all of them to end, and insist after a while
end() {
    local name until=$((SECONDS + 20))
    for name in "$@"; do signal TERM "$name" || true; done
    for name in "$@"; do
        while signal 0 "$name"; do
            [ $SECONDS -lt $until ] || signal KILL "$name" || true
            sleep 0.1
        done
        rm -f "$DIR/pid/$name"
    done
}

# signal WHICH NAME: to every process of its group
signal() {
    if [ -f "$DIR/pid/$2" ]; then
        kill "-$1" -- "-$(cat "$DIR/pid/$2")" 2>/dev/null
    elif [ "$1" = 0 ]; then
        return 1
    fi
}

answers() { curl --silent --fail --max-time 5 --output /dev/null "$@"; }

# PostgreSQL refuses to run as root.
AS_POSTGRES=()
[ "$(id -u)" -ne 0 ] || AS_POSTGRES=(setpriv --reuid postgres --regid postgres --init-groups)

# -- the parts -------------------------------------------------------------------------------

start_etcd() {
    mkdir -p "$DIR/etcd" && chmod 700 "$DIR/etcd"
    local url=http://127.0.0.1
    background etcd etcd --name etcd1 --data-dir "$DIR/etcd" --log-level warn \
        --listen-client-urls "$url:$ETCD" --advertise-client-urls "$url:$ETCD" \
        --listen-peer-urls "$url:$ETCD_PEER" --initial-advertise-peer-urls "$url:$ETCD_PEER" \
        --initial-cluster "etcd1=$url:$ETCD_PEER"
    until_ready etcd answers "http://127.0.0.1:$ETCD/health"
}

pg_bin() { find /usr/lib/postgresql -name initdb -printf '%h\n' | sort -V | tail -1; }

start_postgres() {
    local n home
    for n in 1 2; do
        home=$DIR/postgres$n
        mkdir -p "$home"
        fill patroni.yml "$home/patroni.yml" "N=$n" "PG_BIN=$(pg_bin)" \
            "POSTGRES=$((FRONT + 10 + n))" "PATRONI=$((FRONT + 20 + n))"
        chmod 700 "$home" "$home/patroni.yml"
        [ "$(id -u)" -ne 0 ] || chown -R postgres: "$home"
        background "postgres$n" "${AS_POSTGRES[@]}" patroni "$home/patroni.yml"
        # The first one makes the cluster; the second one copies it.
        until_ready "postgres$n" answers "http://127.0.0.1:$((FRONT + 20 + n))/health"
    done
    until_ready "the primary" primary
    until_ready "the synchronous standby" standby
    database
}

primary() {
    for n in 1 2; do
        if answers "http://127.0.0.1:$((FRONT + 20 + n))/primary"; then
            echo "$n"
            return
        fi
    done
    return 1
}

standby() {
    answers "http://127.0.0.1:$PATRONI_1/sync" || answers "http://127.0.0.1:$PATRONI_2/sync"
}

sql() {
    local n
    n=$(primary)
    "${AS_POSTGRES[@]}" psql -h "$DIR/postgres$n" -p $((FRONT + 10 + n)) -U postgres -tAq -v ON_ERROR_STOP=1 "$@"
}

# A database, and its user, who may see whether commits wait for a standby.
database() {
    [ -z "$(sql -c "SELECT 1 FROM pg_database WHERE datname = 'scrubjay'")" ] || return 0
    sql -c "CREATE ROLE scrubjay LOGIN PASSWORD '$(cat "$DIR/password")' IN ROLE pg_monitor" \
        -c "CREATE DATABASE scrubjay OWNER scrubjay"
}

start_swift() {
    local name port place=$DIR/swift
    mkdir -p "$place/devices/disk"
    port=$SWIFT
    fill swift-proxy.conf "$place/proxy.conf"
    for name in account container object; do
        port=$((port + 1))
        fill swift-server.conf "$place/$name.conf" "SERVER=$name" "SERVER_PORT=$port"
        if [ ! -f "$place/$name.ring.gz" ]; then
            (
                cd "$place"
                swift-ring-builder $name.builder create 6 1 1
                swift-ring-builder $name.builder add --region 1 --zone 1 --ip 127.0.0.1 \
                    --port $port --device disk --weight 1
                swift-ring-builder $name.builder rebalance
            ) >>"$DIR/log/swift-rings"
        fi
        background "swift-$name" swift-$name-server "$place/$name.conf"
    done
    background memcached memcached -l 127.0.0.1 -p "$MEMCACHED" -U 0 -u "$(id -un)"
    background swift-proxy swift-proxy-server "$place/proxy.conf"
    until_ready swift answers "http://127.0.0.1:$SWIFT/healthcheck"
    until_ready "the bucket" bucket
}

# Made by Swift's own interface; the nodes use the S3 one.
bucket() {
    local headers token
    headers=$(curl --silent --fail --include --header "X-Auth-User: memory:scrubjay" \
        --header "X-Auth-Key: $(cat "$DIR/password")" "http://127.0.0.1:$SWIFT/auth/v1.0") || return 1
    token=$(sed -n 's/^X-Auth-Token: *//Ip' <<<"$headers" | tr -d '\r')
    answers --request PUT --header "X-Auth-Token: $token" \
        "http://127.0.0.1:$SWIFT/v1/AUTH_memory/memories"
}

# How a node finds everything: also for commands beside the service (`cluster.sh env`).
node_environment() {
    cat <<END
SCRUBJAY_HOME=$DIR/node$1
SCRUBJAY_STORE=postgres://scrubjay@127.0.0.1:$POSTGRES_1,127.0.0.1:$POSTGRES_2/scrubjay
SCRUBJAY_BLOBS=s3://memories/blobs?endpoint=http://127.0.0.1:$SWIFT
PGPASSWORD=$(cat "$DIR/password")
SCRUBJAY_ROOT_KEY=pkcs11:token=cluster;object=scrubjay?module-path=$MODULE
SCRUBJAY_PKCS11_PIN=$(cat "$DIR/password")
SOFTHSM2_CONF=$DIR/softhsm/conf
AWS_ACCESS_KEY_ID=memory:scrubjay
AWS_SECRET_ACCESS_KEY=$(cat "$DIR/password")
END
}

start_nodes() {
    local n lines
    mkdir -p "$DIR/softhsm/tokens"
    # The root key is in a token, which all nodes ask, and from which nobody can read it.
    if [ ! -f "$DIR/softhsm/conf" ]; then
        echo "directories.tokendir = $DIR/softhsm/tokens" >"$DIR/softhsm/conf"
        SOFTHSM2_CONF=$DIR/softhsm/conf softhsm2-util --init-token --free --label cluster \
            --so-pin "$(cat "$DIR/password")" --pin "$(cat "$DIR/password")" >>"$DIR/log/softhsm"
    fi
    for n in 1 2; do
        mapfile -t lines < <(node_environment "$n")
        if [ ! -f "$DIR/api-key" ]; then
            (umask 077 && env "${lines[@]}" "$SCRUBJAY" keys create cluster --scope '*' \
                --grant read --grant write --grant forget --grant export >"$DIR/api-key")
        fi
        background "node$n" env "${lines[@]}" "$SCRUBJAY" serve --port $((FRONT + n))
        until_ready "node$n" answers "http://127.0.0.1:$((FRONT + n))/readyz"
    done
}

start_haproxy() {
    fill haproxy.cfg "$DIR/haproxy.cfg"
    background haproxy haproxy -db -f "$DIR/haproxy.cfg"
    until_ready haproxy answers "http://127.0.0.1:$FRONT/healthz"
}

processes_of() {
    case $1 in
        postgres) echo postgres2 postgres1 ;;
        swift) echo swift-proxy swift-object swift-container swift-account memcached ;;
        nodes) echo node2 node1 ;;
        etcd | haproxy) echo "$1" ;;
        *) say "no such part: $1" && return 2 ;;
    esac
}

# -- the command -----------------------------------------------------------------------------

start() {
    mkdir -p "$DIR/pid" "$DIR/log"
    chmod 755 "$DIR"
    [ -f "$DIR/password" ] || (umask 077 && od -An -tx1 -N16 /dev/urandom | tr -d ' \n' >"$DIR/password")
    local part
    for part in "$@"; do
        processes_of "$part" >/dev/null
        "start_$part"
    done
}

stop() {
    local part parts=("$@") i
    for ((i = ${#parts[@]} - 1; i >= 0; i--)); do
        part=${parts[i]}
        # shellcheck disable=SC2046  # several names
        end $(processes_of "$part")
    done
}

command=${1:-}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2086  # several names
[ $# -gt 0 ] || set -- $ALL
case $command in
    start)
        start "$@"
        if runs haproxy; then
            say "http://127.0.0.1:$FRONT serves every scope; an API key for it is in $DIR/api-key"
        fi
        ;;
    stop) stop "$@" ;;
    env) node_environment 1 ;;
    primary) primary ;;
    status)
        for file in "$DIR"/pid/*; do
            [ -e "$file" ] || continue
            name=$(basename "$file")
            if runs "$name"; then echo "$name: runs ($(cat "$file"))"; else echo "$name: has ended"; fi
        done
        ;;
    remove)
        stop "$@"
        rm -rf "$DIR"
        ;;
    *)
        sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
