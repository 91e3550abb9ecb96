examples/cluster/install.sh swift
