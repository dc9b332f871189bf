"""What is interrupted: a process that says when it is there, and then when SIGTERM came, to the socket of its bench."""

import signal
import socket
import sys
import time


def main() -> None:
    """Wait for SIGTERM, which is looked at the moment it comes; the clock is that of the whole machine."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bench:
        bench.connect(sys.argv[1])
        bench.send(b"0")
        signal.sigwait([signal.SIGTERM])
        at = time.monotonic()
        bench.send(repr(at).encode())


if __name__ == "__main__":
    main()
