# gnome-keyring: a Secret Service, the keyring of Linux desktops, on a message bus of its own.
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
# One by one: `command -v` of two names is content with one of them.
if ! { command -v gnome-keyring-daemon && command -v dbus-run-session; } >/dev/null; then
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends gnome-keyring dbus dbus-bin
fi
command -v gnome-keyring-daemon
command -v dbus-run-session
