# gnome-keyring: a Secret Service, the keyring of Linux desktops, on a message bus of its own.
command -v gnome-keyring-daemon dbus-run-session >/dev/null && exit
apt-get install --yes --no-install-recommends gnome-keyring dbus dbus-bin || sudo -n apt-get install --yes --no-install-recommends gnome-keyring dbus dbus-bin
command -v gnome-keyring-daemon dbus-run-session
