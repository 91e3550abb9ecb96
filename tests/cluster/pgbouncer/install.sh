examples/cluster/install.sh postgresql pgbouncer
