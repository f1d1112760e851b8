"""`outbox-operator`, also as `python -m outbox_operator`."""

from outbox_operator.cli import app


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
