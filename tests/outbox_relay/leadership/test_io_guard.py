"""Past the deadline not even what was buffered is written."""

import asyncio
import socket

import pytest

from outbox_relay.leadership.deadline import Deadline
from outbox_relay.leadership.io_guard import GuardedSelector

SIZE = 30_000_000  # more than the kernel buffers of two sockets take


@pytest.mark.parametrize(("over", "all_written"), [(True, False), (False, True)])
def test_what_a_transport_holds_is_dropped_once_the_deadline_has_passed(over: bool, all_written: bool) -> None:
    selector = GuardedSelector()
    deadline = Deadline.never()

    async def write() -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        _, writer = await asyncio.open_connection(*listener.getsockname())
        accepted, _ = listener.accept()
        writer.write(b"x" * SIZE)
        assert writer.transport.get_write_buffer_size() > 0
        if over:
            deadline.revoke()
        selector.before_io = lambda: writer.transport.abort() if deadline.passed else None
        read = await asyncio.to_thread(_read_all, accepted, SIZE)
        selector.before_io = None
        writer.transport.abort()
        for each in (listener, accepted):
            each.close()
        await asyncio.sleep(0)
        return read

    with asyncio.Runner(loop_factory=selector.new_loop) as runner:
        assert (runner.run(write()) == SIZE) is all_written


def _read_all(connection: socket.socket, most: int) -> int:
    connection.settimeout(10)
    read = 0
    while read < most:
        try:
            data = connection.recv(1_000_000)
        except ConnectionResetError:
            break
        if not data:
            break
        read += len(data)
    return read
