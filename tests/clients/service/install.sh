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
if [ ! -f "$OTHER_HOME/root.made" ]; then
    rm -rf "$OTHER_HOME/root"
    debootstrap --variant=minbase --include=python3,python3-venv bookworm "$OTHER_HOME/root"
    touch "$OTHER_HOME/root.made"
fi
rm -rf "$OTHER_HOME/wheels" "$OTHER_HOME/built"
.venv/bin/python -m build --wheel --no-isolation --outdir "$OTHER_HOME/built" .
.venv/bin/python -m pip download --quiet --only-binary=:all: --python-version 3.11 \
    --dest "$OTHER_HOME/wheels" "$(ls "$OTHER_HOME"/built/*.whl)[server]" hatchling
