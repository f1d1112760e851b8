"""Run as `PYTHONPATH=examples python -m order_service --help`."""

from order_service.cli import app

app(prog_name="order_service")
