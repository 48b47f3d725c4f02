"""Load on Blobs: block blobs of all sizes, append blobs, leases, snapshots, conditions, lists.

The content of a blob follows from its name and its version, so what is read back can be compared byte for byte.
"""

import random
import time
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobLeaseClient

from calls import BLOB_PUT_BYTES_MAX, InDoubt, Sdk, Unreachable, Violation
from load import Presence, Worker, pages

CONTAINERS = ["first", "second"]
WRITERS = 3
# Blobs that each writer keeps, about.
BLOBS_KEPT = 60
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# In the row, in a block file, in several pieces.
SIZES = [(0, 2_000), (20_000, 64_000), (66_000, 150_000), (BLOB_PUT_BYTES_MAX + 1, 500_000)]
APPEND_BYTES_MAX = 30_000
PAGE_BLOBS = 20


def content(name, version):
    chance = random.Random(f"{name} {version}")
    least, most = chance.choices(SIZES, [4, 2, 2, 1])[0]
    return chance.randbytes(chance.randrange(least, most))


def appended(name, part):
    chance = random.Random(f"{name} {part}")
    return chance.randbytes(chance.randrange(1, APPEND_BYTES_MAX))


class Blob:
    """What a writer knows of one of its blobs."""

    def __init__(self):
        self.version = 0
        self.etag = None
        self.lease = None
        self.snapshots = []


class Load:
    def __init__(self, run):
        self.run = run
        self.presence = {container: Presence(container) for container in CONTAINERS}
        self.writers = [Writer(self, number) for number in range(WRITERS)]

    def prepare(self):
        blobs = Sdk(self.run.target, self.run.tally, self.run.retries).blobs()
        for container in CONTAINERS:
            blobs.create_container(container)

    def workers(self):
        return self.writers + [Lister(self)]

    def check(self):
        lister = Lister(self)
        lister.prepare()
        for container in CONTAINERS:
            lister.list(container)
        for writer in self.writers:
            for place in writer.blobs:
                writer.read_whole(place)
            for place in writer.logs:
                writer.read_log(place)


class Writer(Worker):
    def __init__(self, load, number):
        super().__init__(load.run, f"blobs-{number}")
        self.load = load
        self.number = number
        self.made = 0
        self.blobs = {}
        # Append blobs: how many parts each has.
        self.logs = {}

    def prepare(self):
        self.service = self.sdk.blobs()

    def step(self):
        crowded = len(self.blobs) > BLOBS_KEPT
        self.choose(
            {
                self.put: 8 if crowded else 25,
                self.overwrite: 20,
                self.overwrite_by_old_etag: 3,
                self.read: 20,
                self.read_range: 5,
                self.take_lease: 6,
                self.write_past_lease: 4,
                self.renew_lease: 5,
                self.release_lease: 4,
                self.snapshot: 4,
                self.read_snapshot: 4,
                self.delete: 20 if crowded else 4,
                self.append: 10,
            }
        )()

    def client(self, place):
        return self.service.get_blob_client(*place)

    def settled(self, kind, made):
        self.go.tally.count(self.go.tally.settled, f"{kind} {'made' if made else 'not made'}")

    def new_place(self):
        self.made += 1
        name = f"{self.random.choice(LETTERS)}/{self.number}-{self.made:05}"
        return self.random.choice(CONTAINERS), name

    def any_blob(self):
        return self.random.choice(list(self.blobs)) if self.blobs else None

    def properties(self, place):
        try:
            return self.calls.until_answered(
                "get properties", self.client(place).get_blob_properties
            )
        except ResourceNotFoundError:
            return None

    def put(self):
        place = self.new_place()
        presence = self.load.presence[place[0]]
        presence.set(place[1], "unsure")
        blob = Blob()
        try:
            blob.etag = self.calls(
                "put blob", self.client(place).upload_blob, content(place[1], 0)
            )["etag"]
        except (InDoubt, Unreachable):
            # A large one goes up in pieces: nobody knows which of its requests was never sent.
            found = self.properties(place)
            self.settled("put blob", found is not None)
            if found is None:
                presence.set(place[1], "gone")
                return
            blob.etag = found.etag
        self.blobs[place] = blob
        presence.set(place[1], "there")

    def terms(self, blob):
        terms = {"etag": blob.etag, "match_condition": MatchConditions.IfNotModified}
        if blob.lease:
            terms["lease"] = blob.lease
        return terms

    def overwrite(self):
        """With its ETag, and its lease if it has one: both must be good wherever the blob lives now."""
        if (place := self.any_blob()) is None:
            return
        blob, data = self.blobs[place], content(place[1], self.blobs[place].version + 1)
        try:
            put = self.client(place).upload_blob
            blob.etag = self.calls("overwrite", put, data, overwrite=True, **self.terms(blob))[
                "etag"
            ]
            blob.version += 1
        except (InDoubt, Unreachable):
            found = self.properties(place)
            if found is None:
                raise Violation(f"LOST: {place} after an overwrite in doubt") from None
            made = found.etag != blob.etag
            self.settled("overwrite", made)
            blob.version += made
            blob.etag = found.etag
            self.read_whole(place)
        except HttpResponseError as refusal:
            raise Violation(f"overwrite of {place} at {blob.version}: {refusal}") from refusal

    def overwrite_by_old_etag(self):
        if (place := self.any_blob()) is None:
            return
        terms = {**self.terms(self.blobs[place]), "etag": '"0x8D000000000000"'}
        try:
            self.calls(
                "overwrite by an old etag",
                self.client(place).upload_blob,
                b"no",
                overwrite=True,
                **terms,
            )
        except InDoubt:
            return
        except HttpResponseError as refusal:
            if refusal.status_code == 412:
                return
            raise
        raise Violation(f"{place} was overwritten under an old ETag")

    def download(self, kind, client, **options):
        return self.calls.until_answered(kind, lambda: client.download_blob(**options).readall())

    def read(self):
        if (place := self.any_blob()) is not None:
            self.read_whole(place)

    def read_whole(self, place):
        blob = self.blobs[place]
        try:
            data = self.download("get blob", self.client(place))
        except ResourceNotFoundError:
            raise Violation(f"LOST: {place}") from None
        if data != content(place[1], blob.version):
            raise Violation(
                f"{place} at {blob.version} reads back as something else, {len(data)} bytes"
            )

    def read_range(self):
        if (place := self.any_blob()) is None:
            return
        whole = content(place[1], self.blobs[place].version)
        if not whole:
            return
        offset = self.random.randrange(len(whole))
        length = self.random.randrange(1, len(whole) - offset + 1)
        data = self.download("get range", self.client(place), offset=offset, length=length)
        if data != whole[offset : offset + length]:
            raise Violation(f"a range of {place} reads back as something else")

    def take_lease(self):
        if (place := self.any_blob()) is None or self.blobs[place].lease:
            return
        blob, lease = self.blobs[place], str(uuid.UUID(int=self.random.getrandbits(128)))
        # Who proposes the id may ask again.
        self.calls.until_answered("acquire lease", self.client(place).acquire_lease, -1, lease)
        blob.lease = lease

    def leased(self):
        held = [place for place, blob in self.blobs.items() if blob.lease]
        return self.random.choice(held) if held else None

    def write_past_lease(self):
        if (place := self.leased()) is None:
            return
        try:
            self.calls("write past a lease", self.client(place).upload_blob, b"no", overwrite=True)
        except InDoubt:
            return
        except HttpResponseError as refusal:
            if refusal.error_code == "LeaseIdMissing":
                return
            raise
        raise Violation(f"{place} was overwritten past its lease")

    def lease_of(self, place):
        return BlobLeaseClient(self.client(place), lease_id=self.blobs[place].lease)

    def renew_lease(self):
        if (place := self.leased()) is not None:
            self.calls.until_answered("renew lease", self.lease_of(place).renew)

    def release_lease(self):
        if (place := self.leased()) is None:
            return
        try:
            self.calls("release lease", self.lease_of(place).release)
        except InDoubt:
            state = self.properties(place).lease.state
            self.settled("release lease", state != "leased")
            if state == "leased":
                return
        self.blobs[place].lease = None

    def snapshot(self):
        if (place := self.any_blob()) is None:
            return
        blob = self.blobs[place]
        try:
            made = self.calls("snapshot", self.client(place).create_snapshot)
        except InDoubt:
            return
        blob.snapshots.append((made["snapshot"], blob.version))

    def read_snapshot(self):
        kept = [place for place, blob in self.blobs.items() if blob.snapshots]
        if not kept:
            return
        place = self.random.choice(kept)
        snapshot, version = self.random.choice(self.blobs[place].snapshots)
        client = self.service.get_blob_client(*place, snapshot=snapshot)
        if self.download("get snapshot", client) != content(place[1], version):
            raise Violation(f"the snapshot {snapshot} of {place} reads back as something else")

    def delete(self):
        if (place := self.any_blob()) is None:
            return
        blob, presence = self.blobs[place], self.load.presence[place[0]]
        presence.set(place[1], "unsure")
        try:
            terms = {**self.terms(blob), "delete_snapshots": "include"}
            self.calls("delete blob", self.client(place).delete_blob, **terms)
        except Unreachable:
            presence.set(place[1], "there")
            raise
        except InDoubt:
            found = self.properties(place)
            self.settled("delete blob", found is None)
            if found is not None:
                presence.set(place[1], "there")
                return
        presence.set(place[1], "gone")
        del self.blobs[place]

    def append(self):
        """One part more, at the place where it belongs."""
        if len(self.logs) < 3:
            return self.begin_log()
        place = self.random.choice(list(self.logs))
        parts = self.logs[place]
        length = sum(len(appended(place[1], part)) for part in range(parts))
        data = appended(place[1], parts)
        try:
            self.calls("append", self.client(place).append_block, data, appendpos_condition=length)
        except InDoubt:
            size = self.properties(place).size
            if size not in (length, length + len(data)):
                raise Violation(
                    f"TORN: {place} is {size} long, not {length} or {len(data)} more"
                ) from None
            self.settled("append", size > length)
            if size == length:
                return
        self.logs[place] = parts + 1
        if parts % 10 == 9:
            self.read_log(place)
        if parts == 60:
            self.end_log(place)

    def begin_log(self):
        place = self.new_place()
        self.load.presence[place[0]].set(place[1], "unsure")
        # Nothing is lost if an empty one is created twice.
        self.calls.until_answered("create append blob", self.client(place).create_append_blob)
        self.logs[place] = 0
        self.load.presence[place[0]].set(place[1], "there")

    def end_log(self, place):
        self.load.presence[place[0]].set(place[1], "unsure")
        try:
            self.calls.until_answered("delete blob", self.client(place).delete_blob)
        except ResourceNotFoundError:
            # Deleted by a try whose answer never came.
            pass
        del self.logs[place]
        self.load.presence[place[0]].set(place[1], "gone")

    def read_log(self, place):
        expected = b"".join(appended(place[1], part) for part in range(self.logs[place]))
        if self.download("get append blob", self.client(place)) != expected:
            raise Violation(f"the append blob {place} reads back as something else")


class Lister(Worker):
    """Lists of all blobs, one after another."""

    def __init__(self, load):
        super().__init__(load.run, "blobs-lister")
        self.load = load

    def prepare(self):
        service = self.sdk.blobs()
        self.clients = {name: service.get_container_client(name) for name in CONTAINERS}

    def step(self):
        self.list(self.random.choice(CONTAINERS))

    def list(self, container):
        began = time.monotonic()
        client = self.clients[container]
        found = pages(
            self.calls, "list page", lambda: client.list_blobs(results_per_page=PAGE_BLOBS)
        )
        self.load.presence[container].judge([blob.name for blob in found], began)
        self.go.tally.count(self.go.tally.settled, "lists of blobs")
