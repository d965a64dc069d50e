"""Serves one folder over FTP, read-only, to anybody.

Arguments: address, port, first and last passive port, folder, and the number of the transport protocol
(0 for TCP, 262 for Multipath TCP).
"""

import logging
import socket
import sys

address, port, first, last, folder, protocol = sys.argv[1:]
PROTOCOL = int(protocol)
Plain = socket.socket


class Socket(Plain):
    """A socket that is of PROTOCOL where nobody asks for another."""

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        stream = type == socket.SOCK_STREAM and family in (socket.AF_INET, socket.AF_INET6)
        if fileno is None and stream and proto in (-1, 0):
            proto = PROTOCOL
        super().__init__(family, type, proto, fileno)


# The library makes its sockets by this name, at the latest when a client asks for data.
if PROTOCOL:
    socket.socket = Socket

from pyftpdlib.authorizers import DummyAuthorizer  # noqa: E402
from pyftpdlib.handlers import FTPHandler  # noqa: E402
from pyftpdlib.servers import FTPServer  # noqa: E402

# Not a line per transfer, let alone per command: this is a measurement.
logging.basicConfig(level=logging.WARNING)

authorizer = DummyAuthorizer()
authorizer.add_anonymous(folder)
FTPHandler.authorizer = authorizer
FTPHandler.passive_ports = range(int(first), int(last) + 1)
FTPServer((address, int(port)), FTPHandler).serve_forever()
