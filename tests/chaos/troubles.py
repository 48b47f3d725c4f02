"""What happens to a fleet, or to one server with shards in databases: nodes are killed and stopped, databases crash, fail over,
lose their standbys and their sessions, and networks between nodes and databases are cut.
"""

import contextlib
import signal
import time

# Long enough for the other nodes to take a stopped one for gone.
STOPPED_SECONDS = 13
# How long a node is cut off from a database: sometimes shorter than the limits of time of its store, sometimes longer.
CUT_SECONDS = (1, 14)
# How long commits wait for a standby that is away: sometimes longer than anybody waits for a commit.
DETACHED_SECONDS = (2, 14)
# Until the new primary has a standby again.
ALONE_SECONDS = (1, 5)


# How often each happens to a fleet.
OF_FLEETS = {"kill": 6, "stop": 2, "sessions": 2, "crash": 2, "failover": 3, "detach": 2, "cut": 3}
# The same of one server with shards of both kinds.
OF_ONE = {"kill": 10, "sessions": 2, "crash": 3, "failover": 1, "detach": 1}


class Troubles:
    """Chooses, carries out, and says what it was."""

    def __init__(self, fleet, weights, chance):
        self.fleet = fleet
        self.weights = weights
        self.random = chance

    def next(self, calm):
        """While `calm` is not set, commits may come late by any time."""
        kinds = dict(self.weights)
        database = self.random.choice(self.fleet.databases)
        if not database.has_standby:
            kinds["failover"] = kinds["detach"] = 0
        if self.fleet.behind_network is None:
            kinds["cut"] = 0
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        told = getattr(self, kind)(database, calm)
        return f"{kind} {told or ''}".strip()

    def kill(self, database, calm):
        node = self.random.choice(self.fleet.nodes)
        node.kill()
        time.sleep(self.random.uniform(0, 2))
        node.start()
        return node.folder.name

    def stop(self, database, calm):
        node = self.random.choice(self.fleet.nodes)
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_SECONDS)
        node.process.send_signal(signal.SIGCONT)
        return node.folder.name

    def sessions(self, database, calm):
        database.end_sessions()

    def crash(self, database, calm):
        database.order("crash")

    def failover(self, database, calm):
        database.fail_over()
        time.sleep(self.random.uniform(*ALONE_SECONDS))
        database.rejoin()

    def detach(self, database, calm):
        """A synchronous standby is away: every commit waits."""
        with late(calm):
            seconds = self.random.uniform(*DETACHED_SECONDS)
            database.order("detach")
            time.sleep(seconds)
            database.order("attach")
        return f"for {seconds:.1f} s"

    def cut(self, database, calm):
        """Packets between a node and a database, or both databases, are lost."""
        network = self.fleet.network
        links = list(range(len(self.fleet.databases)))
        if self.random.random() < 0.7:
            links = [self.random.choice(links)]
        seconds = self.random.uniform(*CUT_SECONDS)
        with late(calm):
            for link in links:
                network.cut(link)
            time.sleep(seconds)
            for link in links:
                network.mend(link)
        return f"{links} for {seconds:.1f} s"


@contextlib.contextmanager
def late(calm):
    calm.clear()
    try:
        yield
    finally:
        calm.set()
