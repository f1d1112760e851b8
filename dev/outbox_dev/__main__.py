"""`python -m outbox_dev`."""

from outbox_dev.cli import main

main()
