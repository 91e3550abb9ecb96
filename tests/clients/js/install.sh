# The TypeScript compiler, which reads the types of clients/js; Node runs the client itself.
[ -d "$OTHER_HOME/node_modules/typescript" ] && exit
. tests/clients/node.sh
npm_install typescript@5.9.2
