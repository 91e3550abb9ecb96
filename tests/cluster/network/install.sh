# Needs the right to make network namespaces: root, and a kernel that has them.
examples/cluster/install.sh postgresql
ip netns add scrubjay-probe
ip netns delete scrubjay-probe
