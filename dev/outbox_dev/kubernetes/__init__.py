"""Kubernetes for the local environment: the programs, a bare control plane for tests, and a `kind` cluster."""
