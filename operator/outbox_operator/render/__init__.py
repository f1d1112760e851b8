"""What Kubernetes objects a relay consists of: pure functions from resource to manifests, one file a kind of child."""
