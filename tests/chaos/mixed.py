"""One server with shards of both kinds: every second one is in a private PostgreSQL database, the others in its data folder.
Partitions move between them under load. It answers to the same calls as a server does.
"""

import random

from fleet import Database
from server import Server
from troubles import OF_ONE, Troubles


class Mixed(Server):
    on_databases = True
    goes_on = False
    network = None
    behind_network = None

    def __init__(self, binary, folder, postgres, seed):
        super().__init__(binary, folder)
        self.databases = [Database(postgres, standby=True)]
        self.nodes = [self]
        self.troubles = Troubles(self, OF_ONE, random.Random(f"{seed} mixed"))

    def shard_at(self, name):
        number = int(name.rsplit("-", 1)[1])
        return self.databases[0].address(name.replace("-", "_")) if number % 2 == 0 else None

    def trouble(self, calm):
        return self.troubles.next(calm)

    def stop(self):
        """It checks its data while it runs, because shards in databases are not in its folder."""

    def fsck(self):
        told = self.command(["fsck"])
        super().stop()
        return told

    def end(self):
        super().end()
        for database in self.databases:
            database.end()
