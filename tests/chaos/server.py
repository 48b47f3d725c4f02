"""The server under test as a process: started on the same ports again and again, killed, stopped, and its data checked."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import time

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
POLL_SECONDS = 0.01
FRONTS = {
    "blobs": "--blob-port",
    "queues": "--queue-port",
    "tables": "--table-port",
    "documents": "--document-port",
    "kafka": "--kafka-port",
    "bus": "--bus-port",
    "admin": "--admin-port",
}
# Below what systems give to outgoing connections, so that none of them takes a port while the server is away.
PORTS = range(20_000, 32_000)
ADMIN_TOKEN = "chaos-chaos-chaos-chaos-chaos-chaos"


class Failed(Exception):
    """The server did not do what a server must."""


class Server:
    # Whether shards are in databases, which may be away and whose commits may come late.
    on_databases = False
    # Whether requests are answered while a process is away.
    goes_on = False

    def __init__(self, binary, folder, settings=()):
        self.binary = binary
        self.settings = list(settings)
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.ready = self.folder / "ready.json"
        self.log = open(self.folder / "server.log", "ab")
        self.ports = {front: free_port() for front in FRONTS}
        # What stands before the words that start it.
        self.before = []
        self.process = None
        self.starts = []

    def url(self, front):
        return f"http://127.0.0.1:{self.ports[front]}"

    def start(self):
        """Returns when it accepts."""
        self.ready.unlink(missing_ok=True)
        words = [*self.before, self.binary, "serve", "--data", self.data, "--ready-file", self.ready]
        words += ["--ports", "free"]
        for front, flag in FRONTS.items():
            words += [flag, str(self.ports[front])]
        words += self.settings
        environment = {**os.environ, "LAZULI_ADMIN_TOKEN": ADMIN_TOKEN}
        began = time.monotonic()
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment
        )
        while not self.ready.exists():
            if self.process.poll() is not None:
                raise Failed(f"the server ended at its start: {self.process.returncode}")
            if time.monotonic() > began + START_SECONDS_MAX:
                raise Failed(f"the server was not ready within {START_SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)
        self.starts.append(time.monotonic() - began)

    def kill(self):
        """SIGKILL: no flush, no farewell."""
        if self.process.poll() is not None:
            raise Failed(f"the server ended by itself: {self.process.returncode}")
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As an operator would."""
        if self.process.poll() is not None:
            raise Failed(f"the server ended by itself: {self.process.returncode}")
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(STOP_SECONDS_MAX) != 0:
            raise Failed(f"the server ended with {self.process.returncode}")

    def end(self):
        """Whatever happened before."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def command(self, words):
        """What a command prints that must succeed on the running server."""
        environment = {**os.environ, "LAZULI_ADMIN_TOKEN": ADMIN_TOKEN}
        words = [self.binary, *words, "--admin", self.url("admin")]
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise Failed(f"{words[1:3]}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def first_shards(self):
        """How many shards there are from the start."""
        return 1

    def trouble(self, calm):
        """Something that happens to a server: what it was."""
        self.kill()
        self.start()
        return "kill"

    def shard_at(self, name):
        """Where a shard of this name lives: in the data folder."""
        return None

    def fsck(self):
        """Fails unless the data of the stopped server is sound."""
        words = [self.binary, "fsck", "--data", self.data]
        checked = subprocess.run(words, capture_output=True, text=True)
        if checked.returncode != 0:
            raise Failed(f"fsck: {checked.stdout}{checked.stderr}")
        return checked.stdout.strip()


def free_port():
    chance = random.SystemRandom()
    while True:
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
