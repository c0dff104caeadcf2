"""What winboot reaches: machines (transport), the Kubernetes API (cluster), clouds, and what a cluster is given (manifests)."""
