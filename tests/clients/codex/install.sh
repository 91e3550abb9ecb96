# Codex; its package brings the program for this machine as a package of its own.
[ -d "$OTHER_HOME/node_modules/@openai/codex" ] && exit
. tests/clients/node.sh
npm_install @openai/codex@0.169.0
