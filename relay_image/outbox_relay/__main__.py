"""Entry point of the program `outbox-relay`."""

import signal
import sys


def main() -> None:
    """Run the command line."""
    # As the first process of a container, one without a handler would ignore SIGTERM for as long as the imports take.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    from outbox_relay.cli import app

    app()


if __name__ == "__main__":
    main()
