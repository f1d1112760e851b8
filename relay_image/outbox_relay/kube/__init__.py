"""The few calls to a Kubernetes API server that a relay makes.

The official client costs a relay 50 MiB of memory for three kinds of objects; see docs/decisions.
"""
