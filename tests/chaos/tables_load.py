"""Load on Tables: entities inserted, changed under their ETags, deleted, and groups changed by transactions.

Every entity says which version it is, and its content follows from that. The four entities of a group always have the
same version: transactions change them together.
"""

import random
import time

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import TableTransactionError, UpdateMode

from calls import InDoubt, Sdk, Unreachable, Violation
from load import Presence, Worker, pages

TABLES = ["ordered", "hashed"]
WRITERS = 4
# Entities that each writer keeps, about.
ROWS_KEPT = 250
GROUPS_KEPT = 25
GROUP_ROWS = 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CONTENT_BYTES_MAX = 1500
PAGE_ROWS = 200


def content(row, version):
    """What an entity holds: nothing but its key and its version decides it."""
    chance = random.Random(f"{row} {version}")
    return "".join(chance.choices(LETTERS, k=chance.randrange(CONTENT_BYTES_MAX)))


def entity(key, version):
    return {
        "PartitionKey": key[0],
        "RowKey": key[1],
        "version": version,
        "content": content(key[1], version),
    }


def version_of(found):
    """The version of an entity that is whole."""
    if found["content"] != content(found["RowKey"], found["version"]):
        raise Violation(f"TORN: {found['PartitionKey']}/{found['RowKey']} at {found['version']}")
    return found["version"]


class Row:
    def __init__(self):
        self.version = 0
        self.etag = None


class Load:
    def __init__(self, run):
        self.run = run
        self.presence = {table: Presence(table) for table in TABLES}
        # The versions that were answered, for scans: who reads later reads no less.
        self.versions = {table: {} for table in TABLES}
        self.groups = {}

    def prepare(self):
        tables = Sdk(self.run.target, self.run.tally, self.run.retries).tables()
        tables.create_table("ordered")
        tables.create_table("hashed", headers={"x-lazuli-map": "hash"})

    def workers(self):
        writers = [Writer(self, number) for number in range(WRITERS)]
        return writers + [Scanner(self), GroupReader(self)]

    def check(self):
        scanner = Scanner(self)
        scanner.prepare()
        for table in TABLES:
            scanner.scan(table)
        for table in TABLES:
            for key in self.presence[table].there():
                scanner.get(table, key)


class Writer(Worker):
    def __init__(self, load, number):
        super().__init__(load.run, f"tables-{number}")
        self.load = load
        self.number = number
        self.made = 0
        self.rows = {}
        self.own_groups = {}

    def prepare(self):
        service = self.sdk.tables()
        self.clients = {table: service.get_table_client(table) for table in TABLES}

    def step(self):
        crowded = len(self.rows) > ROWS_KEPT
        many_groups = len(self.own_groups) > GROUPS_KEPT
        self.choose(
            {
                self.insert: 10 if crowded else 40,
                self.change: 30,
                self.change_by_old_etag: 3,
                self.delete: 25 if crowded else 5,
                self.get: 10,
                self.make_group: 1 if many_groups else 10,
                self.change_group: 20,
                self.refused_group: 3,
                self.delete_group: 10 if many_groups else 2,
            }
        )()

    def new_key(self):
        self.made += 1
        letter = self.random.choice(LETTERS)
        partition = f"{letter}-{self.number}-{self.random.randrange(3)}"
        return partition, f"{self.number}-{self.made:06}"

    def insert(self):
        table, key = self.random.choice(TABLES), self.new_key()
        presence = self.load.presence[table]
        presence.set(key, "unsure")
        row = Row()
        try:
            made = self.calls("insert", self.clients[table].create_entity, entity(key, 0))
            row.etag = made["etag"]
        except Unreachable:
            presence.set(key, "gone")
            raise
        except InDoubt:
            found = self.find(table, key)
            self.settled("insert", found is not None)
            if found is None:
                presence.set(key, "gone")
                return
            row.etag = found.metadata["etag"]
        self.rows[table, key] = row
        self.load.versions[table][key] = 0
        presence.set(key, "there")

    def settled(self, kind, made):
        self.go.tally.count(self.go.tally.settled, f"{kind} {'made' if made else 'not made'}")

    def find(self, table, key):
        try:
            return self.calls.until_answered("get", self.clients[table].get_entity, *key)
        except ResourceNotFoundError:
            return None

    def any_row(self):
        return self.random.choice(list(self.rows)) if self.rows else None

    def change(self):
        """Merges or replaces, if nobody else has: nobody has, so the ETag must be good wherever the entity lives now."""
        if (place := self.any_row()) is None:
            return
        (table, key), row = place, self.rows[place]
        mode = self.random.choice([UpdateMode.MERGE, UpdateMode.REPLACE])
        terms = {"mode": mode, "etag": row.etag, "match_condition": MatchConditions.IfNotModified}
        call = self.clients[table].update_entity
        try:
            row.etag = self.calls("update", call, entity(key, row.version + 1), **terms)["etag"]
        except InDoubt:
            found = self.find(table, key)
            version = found and version_of(found)
            if version not in (row.version, row.version + 1):
                raise Violation(f"LOST: {key} in {table} was {row.version} and is {version}")
            if version == row.version and found.metadata["etag"] != row.etag:
                raise Violation(f"{key} in {table} has another ETag and was not changed")
            self.settled("update", version > row.version)
            row.etag = found.metadata["etag"]
            if version == row.version:
                return
        except HttpResponseError as refusal:
            raise Violation(f"{key} in {table} at {row.version}: {refusal}") from refusal
        row.version += 1
        self.load.versions[table][key] = row.version

    def change_by_old_etag(self):
        if (place := self.any_row()) is None or not self.rows[place].version:
            return
        table, key = place
        old = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
        terms = {"mode": UpdateMode.REPLACE, "etag": old}
        terms["match_condition"] = MatchConditions.IfNotModified
        try:
            self.calls(
                "update by an old etag", self.clients[table].update_entity, entity(key, 0), **terms
            )
        except ResourceModifiedError:
            return
        except InDoubt:
            return
        raise Violation(f"{key} in {table} was changed under an old ETag")

    def delete(self):
        if (place := self.any_row()) is None:
            return
        (table, key), row = place, self.rows[place]
        terms = {"etag": row.etag, "match_condition": MatchConditions.IfNotModified}
        presence = self.load.presence[table]
        presence.set(key, "unsure")
        try:
            # By an entity, because the SDK takes a condition with nothing else.
            self.calls("delete", self.clients[table].delete_entity, entity(key, 0), **terms)
        except Unreachable:
            presence.set(key, "there")
            raise
        except InDoubt:
            found = self.find(table, key)
            self.settled("delete", found is None)
            if found is not None:
                presence.set(key, "there")
                return
        except HttpResponseError as refusal:
            raise Violation(f"delete {key} in {table} at {row.version}: {refusal}") from refusal
        presence.set(key, "gone")
        del self.rows[place]

    def get(self):
        if (place := self.any_row()) is None:
            return
        (table, key), row = place, self.rows[place]
        found = self.find(table, key)
        if found is None:
            raise Violation(f"LOST: {key} in {table}")
        if (version_of(found), found.metadata["etag"]) != (row.version, row.etag):
            raise Violation(f"LOST: {key} in {table} is {found}, not {row.version} {row.etag}")

    # Groups: four entities of one partition key that change together.

    def keys(self, group):
        return [(group, f"member-{member}") for member in range(GROUP_ROWS)]

    def found_group(self, table, group):
        return group_version(self.calls, self.clients[table], group)

    def transact(self, kind, table, group, operations):
        """Whether it was made, by its answer or by what is there afterwards."""
        before = self.own_groups.get((table, group))
        try:
            self.calls(kind, self.clients[table].submit_transaction, operations)
            return True
        except InDoubt:
            after = self.found_group(table, group)
            self.settled(kind, after != before)
            return after != before
        except TableTransactionError as refusal:
            raise Violation(f"{kind} of {group} in {table}: {refusal}") from refusal

    def make_group(self):
        self.made += 1
        letter = self.random.choice(LETTERS)
        table, group = self.random.choice(TABLES), f"{letter}-group-{self.number}-{self.made:06}"
        keys = self.keys(group)
        presence = self.load.presence[table]
        for key in keys:
            presence.set(key, "unsure")
        try:
            made = self.transact(
                "insert group", table, group, [("create", entity(key, 0)) for key in keys]
            )
        except Unreachable:
            made = False
        if made:
            self.own_groups[table, group] = 0
            self.load.groups[table, group] = 0
        for key in keys:
            presence.set(key, "there" if made else "gone")

    def any_group(self):
        return self.random.choice(list(self.own_groups)) if self.own_groups else (None, None)

    def change_group(self):
        table, group = self.any_group()
        if table is None:
            return
        version = self.own_groups[table, group] + 1
        changes = [
            ("update", entity(key, version), {"mode": UpdateMode.REPLACE})
            for key in self.keys(group)
        ]
        if self.transact("update group", table, group, changes):
            self.own_groups[table, group] = version
            self.load.groups[table, group] = version

    def refused_group(self):
        """A transaction whose last change cannot be made changes nothing."""
        table, group = self.any_group()
        if table is None:
            return
        version = self.own_groups[table, group]
        keys = self.keys(group)
        changes = [
            ("update", entity(key, version + 9), {"mode": UpdateMode.REPLACE}) for key in keys[:-1]
        ]
        try:
            self.calls(
                "refused group",
                self.clients[table].submit_transaction,
                changes + [("create", entity(keys[-1], 0))],
            )
        except (InDoubt, TableTransactionError):
            if self.found_group(table, group) != version:
                raise Violation(
                    f"TORN: {group} in {table} was changed by a refused transaction"
                ) from None
            return
        raise Violation(f"{group} in {table}: an entity was inserted that was there")

    def delete_group(self):
        table, group = self.any_group()
        if table is None:
            return
        presence, keys = self.load.presence[table], self.keys(group)
        for key in keys:
            presence.set(key, "unsure")
        self.load.groups.pop((table, group), None)
        try:
            made = self.transact(
                "delete group", table, group, [("delete", entity(key, 0)) for key in keys]
            )
        except Unreachable:
            made = False
        for key in keys:
            presence.set(key, "gone" if made else "there")
        if made:
            del self.own_groups[table, group]
        else:
            self.load.groups[table, group] = self.own_groups[table, group]


def group_version(calls, client, group):
    """The version that all entities of a group have; none if there are none."""
    query = f"PartitionKey eq '{group}'"
    found = calls.until_answered("query group", lambda: list(client.query_entities(query)))
    versions = [version_of(one) for one in found]
    if not versions:
        return None
    if len(versions) != GROUP_ROWS or len(set(versions)) != 1:
        raise Violation(f"TORN: {group} has {versions}")
    return versions[0]


class GroupReader(Worker):
    """Looks at groups of others: whole at every moment, and never older than what was answered before."""

    def __init__(self, load):
        super().__init__(load.run, "tables-groups")
        self.load = load

    def prepare(self):
        service = self.sdk.tables()
        self.clients = {table: service.get_table_client(table) for table in TABLES}

    def step(self):
        groups = list(self.load.groups.items())
        if not groups:
            time.sleep(0.01)
            return
        (table, group), answered = self.random.choice(groups)
        version = group_version(self.calls, self.clients[table], group)
        is_there = (table, group) in self.load.groups
        if is_there and (version is None or version < answered):
            raise Violation(f"LOST: {group} in {table} was {answered} and is {version}")


class Scanner(Worker):
    """Queries of all entities, one after another."""

    def __init__(self, load):
        super().__init__(load.run, "tables-scanner")
        self.load = load

    def prepare(self):
        service = self.sdk.tables()
        self.clients = {table: service.get_table_client(table) for table in TABLES}

    def step(self):
        self.scan(self.random.choice(TABLES))

    def scan(self, table):
        answered, began = dict(self.load.versions[table]), time.monotonic()
        client = self.clients[table]
        seen = []
        for found in pages(
            self.calls, "query page", lambda: client.list_entities(results_per_page=PAGE_ROWS)
        ):
            key = (found["PartitionKey"], found["RowKey"])
            seen.append(key)
            if version_of(found) < answered.get(key, 0):
                raise Violation(
                    f"LOST: a scan shows {key} at {found['version']}, not {answered[key]}"
                )
        self.load.presence[table].judge(seen, began)
        self.go.tally.count(self.go.tally.settled, "scans of tables")

    def get(self, table, key):
        found = self.calls.until_answered("get", self.clients[table].get_entity, *key)
        if version_of(found) < self.load.versions[table].get(key, 0):
            raise Violation(f"LOST: {key} in {table} is {found}")
