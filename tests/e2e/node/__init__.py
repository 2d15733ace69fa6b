"""On a real node: kubelet, containerd and runc, and pods whose containers are processes of this machine. Skipped if the
machine can't run one (`localcluster.node.node.why_simulated`)."""
