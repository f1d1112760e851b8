"""Entry point of the program `outbox-relay`."""

from outbox_relay.cli import app


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
