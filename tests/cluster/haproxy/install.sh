examples/cluster/install.sh postgresql patroni etcd swift softhsm haproxy
