"""The Kubernetes API as the operator uses it: plain JSON, its own time limits, errors with the server's words."""
