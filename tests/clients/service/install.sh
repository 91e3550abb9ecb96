# buildah and systemd-analyze; a Debian root made by debootstrap, as the image that others are built from (none
# can be pulled here); and the wheels that the build takes, of the Python in that root.
need() { command -v "$1" >/dev/null || missing="${missing:-} $2"; }
need buildah buildah
need debootstrap debootstrap
need systemd-analyze systemd
if [ -n "${missing:-}" ]; then
    apt-get update -qq
    # shellcheck disable=SC2086  # several packages
    apt-get install -y -qq --no-install-recommends $missing
fi
if [ ! -f "$CLIENT_HOME/root.made" ]; then
    rm -rf "$CLIENT_HOME/root"
    debootstrap --variant=minbase --include=python3,python3-venv bookworm "$CLIENT_HOME/root"
    touch "$CLIENT_HOME/root.made"
fi
rm -rf "$CLIENT_HOME/wheels" "$CLIENT_HOME/built"
.venv/bin/python -m build --wheel --no-isolation --outdir "$CLIENT_HOME/built" .
.venv/bin/python -m pip download --quiet --only-binary=:all: --python-version 3.11 \
    --dest "$CLIENT_HOME/wheels" "$(ls "$CLIENT_HOME"/built/*.whl)[server]" hatchling
