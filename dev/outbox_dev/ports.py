"""Free TCP ports, so that nothing of ours ever collides with what already runs."""

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port that was free on `host` a moment ago.

    The kernel hands out ephemeral ports in random order, so that one which was
    just closed is unlikely to be handed out again before its user binds it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
