"""A node with a real kubelet, containerd and runc, on loopback: its containers are processes of this machine."""
