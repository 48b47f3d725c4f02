"""A load balancer of the simplest kind: every request goes to the next node of its front, in turns. Run as a process of its own.

A place is a port on loopback, or the path of a socket in the file system. The latter leads to a relay, which is this program
in another network namespace: it says `+` before anything else if the node has accepted, and passes bytes as they are.

It reads the head of the first request of a connection and asks for the connection to be closed after the answer. So the
client comes with a new connection for its next request, which goes to another node. A node that does not accept is passed
over.
"""

import argparse
import asyncio
import itertools
import json

HEAD_BYTES_MAX = 256 * 1024
PIECE_BYTES = 64 * 1024
# How long a node may take to accept.
CONNECT_SECONDS_MAX = 2


def closing(head):
    """The head of a request that asks for the connection to be closed."""
    first, *rest = head.split(b"\r\n")
    kept = [line for line in rest if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([first, b"Connection: close", *kept])


async def connect(place):
    """A connection to a place, none if nobody accepts there."""
    if isinstance(place, int):
        return await asyncio.open_connection("127.0.0.1", place)
    reader, writer = await asyncio.open_unix_connection(place)
    if await reader.read(1) == b"+":
        return reader, writer
    writer.close()
    raise ConnectionRefusedError


async def carry(source, sink):
    try:
        while piece := await source.read(PIECE_BYTES):
            sink.write(piece)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
    except OSError:
        pass


class Front:
    def __init__(self, places):
        self.places = places
        self.turn = itertools.cycle(range(len(places)))

    async def reach(self):
        """A connection to the next node that accepts; none if none does."""
        first = next(self.turn)
        for step in range(len(self.places)):
            place = self.places[(first + step) % len(self.places)]
            try:
                return await asyncio.wait_for(connect(place), CONNECT_SECONDS_MAX)
            except (OSError, asyncio.TimeoutError):
                continue
        return None

    async def serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.close()
            return
        reached = await self.reach()
        if reached is not None:
            node_reader, node_writer = reached
            node_writer.write(closing(head))
            up = asyncio.create_task(carry(reader, node_writer))
            # The answer ends the exchange, also one that comes before the whole request was sent.
            await carry(node_reader, writer)
            up.cancel()
            node_writer.close()
        writer.close()


    async def relay(self, reader, writer):
        """Passes everything on, both ways."""
        reached = await self.reach()
        if reached is not None:
            writer.write(b"+")
            node_reader, node_writer = reached
            up = asyncio.create_task(carry(reader, node_writer))
            await carry(node_reader, writer)
            up.cancel()
            node_writer.close()
        writer.close()


async def run(fronts):
    servers = []
    for own, places in fronts:
        front = Front(places)
        if isinstance(own, int):
            opening = asyncio.start_server(front.serve, "127.0.0.1", own, limit=HEAD_BYTES_MAX)
        else:
            opening = asyncio.start_unix_server(front.relay, own)
        servers.append(await opening)
    print("proxy ready", flush=True)
    # Connections that are idle when they are dropped are no news.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("fronts", help="JSON: [[own place, [places of the nodes]], ...]")
    asyncio.run(run(json.loads(options.parse_args().fronts)))
