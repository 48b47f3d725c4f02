"""A fleet under test: private PostgreSQL servers, nodes that share them, and a proxy that sends every request to the next
node. It answers to the same calls as one server does. As a program it runs a fleet for other tests until it is ended:
`fleet.py --binary LAZULI --postgres POSTGRES-SERVER --folder FOLDER --ready-file FILE`.
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from network import Network, Unavailable
from server import FRONTS, Failed, Server, free_port
from troubles import OF_FLEETS, Troubles

NODES = 2
# The catalog and every second shard are on the first server, the other shards on the second.
DATABASES = 2
PROXY = pathlib.Path(__file__).parent / "proxy.py"


class Database:
    """A private PostgreSQL server, with a synchronous standby if asked for, ended with its standard input."""

    def __init__(self, program, standby, listen=None):
        words = [program, "--setting", "fsync=off"] + (["--standby"] if standby else [])
        words += ["--listen", listen] if listen else []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, **pipes)
        line = self.process.stdout.readline()
        if not line.startswith("postgres ready "):
            raise Failed(f"no PostgreSQL server: {line}")
        # The primary first.
        self.hosts = line.split()[2:]
        self.has_standby = standby

    def address(self, schema):
        hosts = ",".join(self.hosts)
        return f"postgres://postgres@{hosts}/postgres?sslmode=disable&schema={schema}"

    def order(self, what):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise Failed(f"the PostgreSQL server did not {what}")

    def fail_over(self):
        """The primary crashes for good, and its standby takes over."""
        self.order("failover")
        self.has_standby = False
        self.hosts.reverse()

    def rejoin(self):
        """A new standby takes the place of the primary that is gone."""
        self.order("rejoin")
        self.has_standby = True

    def end_sessions(self):
        """Ends all connections of clients; those of standbys come back by themselves."""
        host, port = self.hosts[0].split(":")
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        words = ["psql", "-X", "-q", "-h", host, "-p", port, "-U", "postgres", "-c", query]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Node(Server):
    def __init__(self, binary, folder, catalog, more):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(binary, folder, ["--catalog", catalog, "--node-name", folder.name, *more])


class Fleet:
    # Its requests may be answered by databases that are away, and its commits come late.
    on_databases = True
    # A node that is away is not the end of service.
    goes_on = True

    def __init__(self, binary, folder, postgres, seed=0, more=(), troubled=False):
        self.binary = binary
        self.folder = pathlib.Path(folder)
        self.network = self.make_network() if troubled else None
        listen = self.network.addresses if self.network else [None] * DATABASES
        self.databases = [Database(postgres, troubled, at) for at in listen]
        catalog = self.databases[0].address("catalog")
        name = "node-{}".format
        self.nodes = [
            Node(binary, self.folder / name(n), catalog, more) for n in range(1, NODES + 1)
        ]
        self.ports = {front: free_port() for front in FRONTS}
        self.sockets = pathlib.Path(tempfile.mkdtemp(prefix="lazuli-relay-"))
        self.proxies = []
        self.troubles = Troubles(self, OF_FLEETS, random.Random(f"{seed} fleet"))

    def make_network(self):
        try:
            return Network.make(DATABASES)
        except Unavailable as reason:
            print(f"no node is cut off from databases: {reason}", flush=True)
            return None

    @property
    def starts(self):
        return [took for node in self.nodes for took in node.starts]

    @property
    def behind_network(self):
        """The node whose links to databases can be cut; none without a network of its own."""
        return self.nodes[-1] if self.network else None

    def url(self, front):
        return f"http://127.0.0.1:{self.ports[front]}"

    def first_shards(self):
        """A fleet begins without shards."""
        return 0

    def shard_at(self, name):
        """Where a shard of this name lives."""
        number = int(name.rsplit("-", 1)[1])
        return self.databases[number % DATABASES].address(name.replace("-", "_"))

    def start(self):
        if self.network:
            self.behind_network.before = self.network.inside()
        for node in self.nodes:
            node.start()
        if not self.proxies:
            self.start_proxies()

    def start_proxies(self):
        places = {front: [node.ports[front] for node in self.nodes] for front in FRONTS}
        if self.network:
            relays = []
            for front, ports in places.items():
                socket = str(self.sockets / front)
                relays.append([socket, [ports[-1]]])
                ports[-1] = socket
            self.start_proxy(relays, self.network.inside())
        self.start_proxy([[self.ports[front], places[front]] for front in FRONTS], [])

    def start_proxy(self, fronts, before):
        words = [*before, sys.executable, PROXY, json.dumps(fronts)]
        proxy = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.proxies.append(proxy)
        if proxy.stdout.readline() != "proxy ready\n":
            raise Failed("the proxy did not start")

    def add_shards(self, count):
        for number in range(1, count + 1):
            name = f"shard-{number:04}"
            words = ["shard", "add", name, "--at", self.shard_at(name)]
            self.nodes[0].command(words)

    def trouble(self, calm):
        return self.troubles.next(calm)

    def stop(self):
        """As an operator would, but for the node that checks the data."""
        for node in self.nodes[1:]:
            node.stop()

    def fsck(self):
        """Fails unless the data is sound."""
        told = self.nodes[0].command(["fsck"])
        self.nodes[0].stop()
        return told

    def end(self):
        """Whatever happened before."""
        for node in self.nodes:
            node.end()
        for proxy in self.proxies:
            proxy.kill()
            proxy.wait()
        for database in self.databases:
            database.end()
        if self.network:
            self.network.end()
        shutil.rmtree(self.sockets, ignore_errors=True)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--binary", required=True)
    options.add_argument("--postgres", required=True)
    options.add_argument("--folder", required=True)
    options.add_argument("--ready-file", required=True)
    options.add_argument("settings", nargs="*")
    options = options.parse_args()
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    fleet = Fleet(options.binary, options.folder, options.postgres, more=options.settings)
    try:
        fleet.start()
        fleet.add_shards(2)
        endpoints = {front: fleet.url(front) for front in FRONTS}
        ready = pathlib.Path(options.ready_file)
        beside = ready.with_suffix(".new")
        beside.write_text(json.dumps({"endpoints": endpoints}))
        beside.rename(ready)
        while not stopped:
            time.sleep(0.1)
        fleet.stop()
        print(fleet.fsck())
    finally:
        fleet.end()


if __name__ == "__main__":
    main()
