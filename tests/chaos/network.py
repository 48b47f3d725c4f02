"""A node behind a network of its own, which can be cut: a network namespace of Linux with one link to each database server.

A link that is down loses packets without a word, as a broken switch does: connections that exist stay silent, and new ones
get no answer. The node's own ports are on the loopback device of its namespace; a relay in there brings requests to them from
sockets in the file system (`proxy.py`). All of it needs root and iproute2: `Network.make` says why it is not possible.
"""

import random
import shutil
import subprocess

COMMAND_SECONDS_MAX = 10


class Unavailable(Exception):
    """This machine has no network namespaces for us."""


class Network:
    def __init__(self, servers):
        chance = random.SystemRandom()
        self.number = chance.randrange(1, 255)
        self.name = f"lazuli{self.number}"
        # The database servers listen on these, which every namespace reaches by its own way.
        self.addresses = [f"10.77.{self.number}.{1 + n}" for n in range(servers)]
        self.links = [f"{self.name}-{n}" for n in range(servers)]
        self.made = []

    @classmethod
    def make(cls, servers):
        if shutil.which("ip") is None:
            raise Unavailable("there is no iproute2")
        network = cls(servers)
        try:
            network.build()
        except Unavailable:
            network.end()
            raise
        return network

    def build(self):
        self.do(["netns", "add", self.name], ["netns", "del", self.name])
        self.do(["-n", self.name, "link", "set", "lo", "up"])
        for n, (address, link) in enumerate(zip(self.addresses, self.links)):
            here, there = (f"10.78.{self.number}.{4 * n + side}" for side in (1, 2))
            peer = ["peer", "name", f"eth{n}", "netns", self.name]
            self.do(["address", "add", f"{address}/32", "dev", "lo"], self.without(address))
            self.do(["link", "add", link, "type", "veth", *peer])
            self.do(["address", "add", f"{here}/30", "dev", link])
            self.do(["link", "set", link, "up"])
            self.do(["-n", self.name, "address", "add", f"{there}/30", "dev", f"eth{n}"])
            self.do(["-n", self.name, "link", "set", f"eth{n}", "up"])
            self.do(["-n", self.name, "route", "add", f"{address}/32", "via", here])

    def without(self, address):
        return ["address", "del", f"{address}/32", "dev", "lo"]

    def do(self, words, undo=None):
        words = ["ip", *words]
        done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(words)}: {done.stderr.strip()}")
        if undo:
            self.made.append(undo)

    def inside(self):
        """What stands before the words of a program that runs behind this network."""
        return ["ip", "netns", "exec", self.name]

    def cut(self, n):
        self.do(["link", "set", self.links[n], "down"])

    def mend(self, n):
        # The addresses of the link have stayed, and with them the way back.
        self.do(["link", "set", self.links[n], "up"])

    def end(self):
        """Whatever happened before. The links go with the namespace."""
        for words in reversed(self.made):
            subprocess.run(["ip", *words], stderr=subprocess.DEVNULL, check=False)
        self.made = []
