"""A fleet under test: private PostgreSQL servers, nodes that share them, and a proxy that sends every request to the next
node. It answers to the same calls as one server does. As a program it runs a fleet for other tests until it is ended:
`fleet.py --binary LAZULI --postgres POSTGRES-SERVER --folder FOLDER --ready-file FILE`.
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import time

from server import FRONTS, STOP_SECONDS_MAX, Failed, Server, free_port

NODES = 2
# The catalog and every second shard are on the first server, the other shards on the second.
DATABASES = 2
# Long enough for the other nodes to take a stopped one for gone.
STOPPED_SECONDS = 13


class Database:
    """A private PostgreSQL server, with a synchronous standby if asked for, ended with its standard input."""

    def __init__(self, program, standby):
        words = [program, "--setting", "fsync=off"] + (["--standby"] if standby else [])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, **pipes)
        line = self.process.stdout.readline()
        if not line.startswith("postgres ready "):
            raise Failed(f"no PostgreSQL server: {line}")
        self.hosts = line.split()[2:]
        self.can_fail_over = standby

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
        self.can_fail_over = False
        self.hosts.reverse()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Node(Server):
    def __init__(self, binary, folder, catalog, more):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(binary, folder, ["--catalog", catalog, "--node-name", folder.name, *more])


class Fleet:
    def __init__(self, binary, folder, postgres, seed=0, more=(), standbys=False):
        self.binary = binary
        self.folder = pathlib.Path(folder)
        self.random = random.Random(f"{seed} fleet")
        self.databases = [Database(postgres, standbys) for _ in range(DATABASES)]
        catalog = self.databases[0].address("catalog")
        name = "node-{}".format
        self.nodes = [
            Node(binary, self.folder / name(n), catalog, more) for n in range(1, NODES + 1)
        ]
        self.ports = {front: free_port() for front in FRONTS}
        self.proxy = None

    @property
    def starts(self):
        return [took for node in self.nodes for took in node.starts]

    def url(self, front):
        return f"http://127.0.0.1:{self.ports[front]}"

    def shard_at(self, name):
        """Where a shard of this name lives."""
        number = int(name.rsplit("-", 1)[1])
        return self.databases[number % DATABASES].address(name.replace("-", "_"))

    def start(self):
        for node in self.nodes:
            node.start()
        if self.proxy is None:
            ports = [[self.ports[it], [node.ports[it] for node in self.nodes]] for it in FRONTS]
            program = pathlib.Path(__file__).parent / "proxy.py"
            words = [sys.executable, program, json.dumps(ports)]
            self.proxy = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            if self.proxy.stdout.readline() != "proxy ready\n":
                raise Failed("the proxy did not start")

    def add_shards(self, count):
        for number in range(1, count + 1):
            name = f"shard-{number:04}"
            words = ["shard", "add", name, "--at", self.shard_at(name)]
            self.nodes[0].command(words)

    def trouble(self):
        """Something that happens to a fleet: what it was."""
        node = self.random.choice(self.nodes)
        kind = self.random.choice(["kill", "kill", "kill", "stop", "cut", "crash", "failover"])
        database = self.random.choice(self.databases)
        if kind == "failover" and not database.can_fail_over:
            kind = "cut"
        if kind == "kill":
            node.kill()
            time.sleep(self.random.uniform(0, 2))
            node.start()
        elif kind == "stop":
            node.process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_SECONDS)
            node.process.send_signal(signal.SIGCONT)
        elif kind == "crash":
            database.order("crash")
        elif kind == "failover":
            database.fail_over()
        else:
            self.cut(database)
        return kind

    def cut(self, database):
        """Ends all connections to a database."""
        host, port = database.hosts[0].split(":")
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        words = ["psql", "-X", "-q", "-h", host, "-p", port, "-U", "postgres", "-c", query]
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)

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
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.wait()
        for database in self.databases:
            database.end()


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
