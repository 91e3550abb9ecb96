# The conformance suite of MCP; the tag `latest` is older and knows no requirement sets.
[ -d "$OTHER_HOME/node_modules/@modelcontextprotocol/conformance" ] && exit
. tests/clients/node.sh
npm_install @modelcontextprotocol/conformance@0.2.0-alpha.12
