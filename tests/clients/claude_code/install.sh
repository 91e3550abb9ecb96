# Claude Code; its package brings the program for this machine as a package of its own.
[ -d "$OTHER_HOME/node_modules/@anthropic-ai/claude-code" ] && exit
. tests/clients/node.sh
npm_install @anthropic-ai/claude-code@2.1.326
