"""The end of a relay that a client starts: its standard streams, to and from the proxy.

A script of its own: it imports nothing of this package and little of the standard library, so
that it starts at once, and it knows nothing of what it carries.
"""

import os
import socket
from _thread import start_new_thread

ADDRESS = "PYTEST_MST_RELAY_ADDRESS"
TOKEN = "PYTEST_MST_RELAY_TOKEN"
CHUNK_BYTES = 1 << 18

CLIENT_LEFT = 0
PROXY_LEFT = 1
NOT_STARTED_BY_US = 2
INTERRUPTED = 130


def complain(words: str) -> None:
    """Say one line to whoever reads the standard error of a server."""
    os.write(2, f"pytest-mst relay: {words}\n".encode())


def read_client() -> bytes:
    """Read what the client sends next; nothing where it has left."""
    try:
        return os.read(0, CHUNK_BYTES)
    except OSError:
        return b""


def pump_up(proxy: socket.socket, left: list[bool]) -> None:
    """Carry the client's bytes to the proxy until the client closes them."""
    try:
        while chunk := read_client():
            proxy.sendall(chunk)
        left.append(True)
        proxy.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the proxy is gone, as the other direction is about to see


def pump_down(proxy: socket.socket) -> bool:
    """Carry the proxy's bytes to the client; tell whether the client still takes them."""
    while True:
        try:
            chunk = proxy.recv(CHUNK_BYTES)
        except OSError:
            return True
        if not chunk:
            return True
        try:
            while chunk:
                chunk = chunk[os.write(1, chunk) :]
        except OSError:
            return False


def connect(address: str, token: str) -> socket.socket | None:
    """Reach the proxy and show it the token; `None` where it does not let us in."""
    host, _, port = address.rpartition(":")
    try:
        proxy = socket.create_connection((host, int(port)))
        proxy.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        proxy.sendall(token.encode() + b"\n")
        welcome = proxy.recv(1)
    except (OSError, ValueError) as error:
        complain(f"nobody answers at {address} ({error}); the test run that gave it has ended")
        return None
    if not welcome:
        complain("this attempt has ended, and its servers are not to be reached any more")
        return None
    return proxy


def main() -> int:
    """Carry bytes until either side ends.

    Returns:
        The exit status: 0 where the client ended first, 1 where the proxy did or was not there,
        2 where the variables are missing that the proxy gives.

    """
    address, token = os.environ.get(ADDRESS), os.environ.get(TOKEN)
    if not address or not token:
        complain(f"needs {ADDRESS} and {TOKEN}, as pytest-mst gives them with the command")
        return NOT_STARTED_BY_US
    proxy = connect(address, token)
    if proxy is None:
        return PROXY_LEFT
    client_left: list[bool] = []
    start_new_thread(pump_up, (proxy, client_left))
    takes_more = pump_down(proxy)
    if client_left or not takes_more:
        return CLIENT_LEFT
    complain("the proxy ended the connection: the attempt has ended")
    return PROXY_LEFT


if __name__ == "__main__":
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    os._exit(status)  # a thread may still wait for the client, and nothing is left to flush
