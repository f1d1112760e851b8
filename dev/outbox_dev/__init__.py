"""The local environment: real MongoDB, Kafka and Kubernetes on one machine.

Used by the demo, the tests, e2e and the benchmarks alike. Nothing that is
shipped imports this package.
"""
