# The command line of the MCP Inspector: an MCP client in TypeScript.
[ -d "$OTHER_HOME/node_modules/@modelcontextprotocol/inspector" ] && exit
. tests/clients/node.sh
npm_install @modelcontextprotocol/inspector@2.12.0
