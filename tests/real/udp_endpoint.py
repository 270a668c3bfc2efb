"""Runs inside a namespace: `send SOURCE TARGET COUNT` sends bursts, `listen ADDRESS` takes packets and says nothing.

The sender reads one source port a line, sends a burst from it to port 4791, and says so. Both end with their input.
"""

import socket
import sys

PORT = 4791


def send(source: str, target: str, count: int) -> None:
    """Send `count` packets from every source port that is read."""
    for line in sys.stdin:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind((source, int(line)))
            for _ in range(count):
                sender.sendto(b"burst", (target, PORT))
        print(line.strip(), flush=True)


def listen(address: str) -> None:
    """Own the port until the input ends, as an RDMA adapter does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((address, PORT))
        print("listening", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "send":
        send(rest[0], rest[1], int(rest[2]))
    else:
        listen(rest[0])
