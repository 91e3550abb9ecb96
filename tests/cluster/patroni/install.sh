examples/cluster/install.sh postgresql patroni etcd
