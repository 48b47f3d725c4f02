"""Changes of the map under load: partitions split, merged and moved at random, shards added, drained and removed.

All through the admin API. A change that the server refuses because another one is under way is counted; one that fails
otherwise is a violation.
"""

import collections
import itertools
import random
import threading
import time

import requests

from calls import Violation
from server import ADMIN_TOKEN

ANSWER_SECONDS_MAX = 60
# The map is cut into about so many partitions.
PARTITIONS_KEPT = 40
SHARDS = 4
# Moves that take as long as they take; the others are slowed down to a few seconds.
FAST_SHARE = 0.6
SLOW_SECONDS_MAX = 3
SLOW_BYTES_MIN = 10_000
# How long a new shard takes part before it is drained.
SHARD_LIFE_SECONDS = 8
# How long all jobs may take to end once no new ones begin, and a shard to become empty.
SETTLE_SECONDS_MAX = 120
# The same on databases, where every death of a leader lets moves rest until another node may lead them.
DATABASES_SETTLE_SECONDS_MAX = 240
# Jobs that take longer than this are noted, with what they are doing.
LONG_JOB_SECONDS = 15
JOBS_SHOWN = 3
WATCH_SECONDS = 2
POLL_SECONDS = 0.1


class Away(Exception):
    """The server was killed under the request."""


class Refused(Exception):
    def __init__(self, status, error):
        super().__init__(f"{status} {error.get('code')}: {error.get('message')}")
        self.status = status
        self.code = error.get("code")


class Admin:
    """The admin API, from any thread."""

    def __init__(self, url, on_databases=False):
        self.url = url
        self.on_databases = on_databases

    def ask(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        try:
            answer = requests.request(
                method,
                f"{self.url}/v1/{path}",
                json=body,
                headers=headers,
                timeout=ANSWER_SECONDS_MAX,
            )
        except requests.Timeout as timeout:
            raise Violation(f"{method} {path} hangs") from timeout
        except requests.RequestException as error:
            raise Away(str(error)) from error
        if answer.status_code == 503 and self.on_databases:
            raise Away("a database is away")
        if answer.status_code >= 400:
            raise Refused(answer.status_code, answer.json()["error"])
        return answer.json()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body=None):
        return self.ask("POST", path, body or {})


class Changes:
    """Three threads: one changes partitions, one lets shards come and go, one watches how long jobs take."""

    def __init__(self, admin, signals, settings, log, server):
        self.admin = admin
        self.server = server
        on_databases = server.on_databases
        self.settle_seconds_max = (
            DATABASES_SETTLE_SECONDS_MAX if on_databases else SETTLE_SECONDS_MAX
        )
        # The longest that each job was seen to take, and what it was then.
        self.jobs = {}
        self.signals = signals
        self.interval = settings["interval"]
        self.random = random.Random(f"{settings['seed']} changes")
        self.log = log
        self.lock = threading.Lock()
        self.done = collections.Counter()
        self.refused = collections.Counter()
        self.interrupted = 0
        self.violations = []
        # Shards that nothing may be moved to, because they are to go.
        self.leaving = set()
        self.stop = threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(self.change_partitions,), daemon=True),
            threading.Thread(target=self.run, args=(self.change_shards,), daemon=True),
        ]
        self.watcher = threading.Thread(target=self.run, args=(self.watch_jobs,), daemon=True)

    def prepare(self):
        for number in range(self.server.first_shards() + 1, SHARDS + 1):
            self.add_shard(f"shard-{number:04}")

    def add_shard(self, name):
        return self.admin.post("shards", {"name": name, "at": self.server.shard_at(name)})

    def start(self):
        for thread in [*self.threads, self.watcher]:
            thread.start()

    def end(self):
        """Lets what goes on come to its end, and begins nothing new."""
        self.stop.set()
        for thread in self.threads:
            thread.join(self.settle_seconds_max)

    def goes_on(self):
        return not self.stop.is_set() and not self.signals.broken.is_set()

    def run(self, change):
        try:
            change()
        except Exception as error:
            self.violations.append(f"{change.__name__}: {type(error).__name__}: {error}")
            self.signals.broken.set()

    def attempt(self, kind, change, *words):
        """The answer of a change, or none."""
        began = time.monotonic()
        try:
            answer = change(*words)
        except Away:
            self.note(kind, "interrupted", began)
            with self.lock:
                self.interrupted += 1
            self.signals.up.wait(1)
            return None
        except Refused as refusal:
            self.note(kind, str(refusal), began)
            # 503 asks to try again: a shard that was added a moment ago is not open yet.
            if refusal.status >= 500 and refusal.status != 503:
                raise Violation(f"{kind}: {refusal}") from refusal
            with self.lock:
                self.refused[f"{kind}: {refusal.code}"] += 1
            return None
        self.note(kind, answer, began)
        if answer is not None:
            with self.lock:
                self.done[kind] += 1
        return answer

    def note(self, kind, answer, began):
        took = time.monotonic() - began
        print(f"{time.time():.3f} {kind} took {took:.3f}: {answer}", file=self.log, flush=True)

    # Jobs.

    def watch_jobs(self):
        while not self.signals.stop.is_set() and not self.signals.broken.is_set():
            try:
                for job in self.open_jobs():
                    self.watch_job(job)
            except (Away, Refused):
                pass
            self.signals.stop.wait(WATCH_SECONDS)

    def open_jobs(self):
        return [job for job in self.admin.get("jobs")["jobs"] if "ended_ms" not in job]

    def watch_job(self, job):
        seconds = time.time() - job["begun_ms"] / 1000
        self.jobs[job["job"]] = (seconds, job)
        if seconds > LONG_JOB_SECONDS:
            print(f"{time.time():.3f} after {seconds:.0f} s: {job}", file=self.log, flush=True)

    def longest_jobs(self):
        longest = sorted(self.jobs.values(), key=lambda one: one[0], reverse=True)[:JOBS_SHOWN]
        return [
            f"{seconds:.0f} s, {job['phase']}, pause predicted {job['pause_predicted_us']} us"
            for seconds, job in longest
            if seconds > LONG_JOB_SECONDS
        ]

    # Partitions.

    def change_partitions(self):
        while self.goes_on():
            began = time.monotonic()
            try:
                partitions = self.admin.get("partitions")["partitions"]
                self.change_one(partitions)
            except Away:
                self.signals.up.wait(1)
            rest = began + self.interval - time.monotonic()
            self.stop.wait(max(0.001, rest))

    def change_one(self, partitions):
        many = len(partitions) > PARTITIONS_KEPT
        weights = {
            self.split: 5 if many else 35,
            self.merge: 60 if many else 20,
            self.move: 35,
            self.move_shardlet: 3,
            self.call_off: 4,
            self.pause: 4,
        }
        change = self.random.choices(list(weights), list(weights.values()))[0]
        change(partitions)

    def split(self, partitions):
        one = self.random.choice(partitions)
        body = {"by": self.random.choice(["size", "load"])}
        key = one.get("hottest") and self.random.choice(one["hottest"])["key"]
        if key and self.random.random() < 0.3:
            body = {self.random.choice(["at", "isolate"]): key}
        self.attempt("split", self.admin.post, f"partitions/{one['id']}/split", body)

    def merge(self, partitions):
        pairs = [
            (left, right)
            for left, right in itertools.pairwise(partitions)
            if left["map"] == right["map"]
        ]
        together = [left for left, right in pairs if left["shard"] == right["shard"]]
        if together:
            one = self.random.choice(together)
            self.attempt("merge", self.admin.post, f"partitions/{one['id']}/merge")
        elif pairs:
            left, right = self.random.choice(pairs)
            self.send(right, left["shard"])

    def others(self, shard):
        names = [one["name"] for one in self.admin.get("shards")["shards"]]
        return [name for name in names if name != shard and name not in self.leaving]

    def send(self, one, to, **options):
        body = {"to": to, **options}
        return self.attempt("move", self.admin.post, f"partitions/{one['id']}/move", body)

    def move(self, partitions):
        one = self.random.choice(partitions)
        if others := self.others(one["shard"]):
            self.send(one, self.random.choice(others), **self.pace(one))

    def pace(self, one):
        """Some moves take a few seconds, so that kills meet them in every phase."""
        if self.random.random() < FAST_SHARE:
            return {}
        seconds = self.random.uniform(0.5, SLOW_SECONDS_MAX)
        return {"bytes_per_second": max(SLOW_BYTES_MIN, int((one.get("bytes") or 0) / seconds))}

    def move_shardlet(self, partitions):
        hot = [one for one in partitions if one.get("hottest")]
        if not hot:
            return
        one = self.random.choice(hot)
        if others := self.others(one["shard"]):
            key = self.random.choice(one["hottest"])["key"]
            body = {"to": self.random.choice(others), "shardlet": key}
            self.attempt("move shardlet", self.admin.post, f"partitions/{one['id']}/move", body)

    def slow_move(self, partitions):
        """A move that takes long enough for something to be done about it."""
        one = max(partitions, key=lambda one: one.get("bytes") or 0)
        if others := self.others(one["shard"]):
            slow = max(SLOW_BYTES_MIN, (one.get("bytes") or 0) // SLOW_SECONDS_MAX)
            return self.send(one, self.random.choice(others), bytes_per_second=slow)
        return None

    def call_off(self, partitions):
        if begun := self.slow_move(partitions):
            self.stop.wait(self.random.random())
            self.attempt("cancel", self.admin.post, f"jobs/{begun['job']}/cancel")

    def pause(self, partitions):
        if begun := self.slow_move(partitions):
            job = f"jobs/{begun['job']}"
            self.stop.wait(self.random.random())
            self.attempt("pause", self.admin.post, f"{job}/pause")
            self.stop.wait(self.random.random())
            # A job whose pause or resumption was interrupted by a kill would rest for ever.
            self.until_done("resume", lambda: self.resume(job))

    def resume(self, job):
        try:
            return self.admin.post(f"{job}/resume")
        except Refused as refusal:
            # It may be over, or past the point where it can rest.
            return refusal.code

    # Shards.

    def change_shards(self):
        """Adds a shard, then drains and removes the one that has been there for longest, again and again."""
        number = SHARDS
        while self.goes_on():
            number += 1
            name = f"shard-{number:04}"
            self.until_done(
                "add shard",
                lambda: self.has_shard(name) or self.add_shard(name),
            )
            self.stop.wait(SHARD_LIFE_SECONDS)
            shards = self.until_done("list shards", lambda: self.admin.get("shards"), counted=False)
            if not self.goes_on() or shards is None:
                return
            oldest = min(shards["shards"], key=lambda one: one["id"])["name"]
            self.leaving.add(oldest)
            if not self.drain(oldest):
                return
            self.until_done("remove shard", lambda: self.remove(oldest))

    def has_shard(self, name):
        return next(
            (one for one in self.admin.get("shards")["shards"] if one["name"] == name), None
        )

    def until_done(self, kind, change, counted=True):
        """Tries again whatever a kill has interrupted."""
        until = time.monotonic() + self.settle_seconds_max
        while not self.signals.broken.is_set():
            try:
                answer = change()
                if answer is not None:
                    if counted:
                        self.note(kind, answer, time.monotonic())
                        with self.lock:
                            self.done[kind] += 1
                    return answer
            except Away:
                self.signals.up.wait(1)
            if time.monotonic() > until:
                raise Violation(f"{kind} was not done within {self.settle_seconds_max} s")
            time.sleep(POLL_SECONDS)
        return None

    def drain(self, name):
        """Moves everything away, as often as something is left: what moves just now is not moved again."""

        def empty():
            shard = self.has_shard(name)
            if shard["partitions"] == 0:
                return shard
            self.attempt("drain", self.admin.post, f"shards/{name}/drain")
            time.sleep(POLL_SECONDS * 5)
            return None

        return self.until_done("shard drained", empty)

    def remove(self, name):
        if self.has_shard(name) is None:
            # Removed by a request whose answer never came.
            return name
        try:
            return self.admin.ask("DELETE", f"shards/{name}")
        except Refused as refusal:
            # Moves that have arrived still clean up there, and a move that was under way may have come back.
            with self.lock:
                self.refused[f"remove shard: {refusal.code}"] += 1
            if refusal.status >= 500 and refusal.status != 503:
                raise Violation(f"remove shard: {refusal}") from refusal
            self.drain(name)
            return None

    # The end.

    def status(self):
        return self.admin.get("status")

    def until_answered(self, ask):
        """Nothing is killed any more, but a database may have just come back."""
        until = time.monotonic() + self.settle_seconds_max
        while True:
            try:
                return ask()
            except Away:
                if time.monotonic() > until:
                    raise
                time.sleep(POLL_SECONDS)

    def settle(self):
        """Waits until no job is under way and no operation is half done."""
        until = time.monotonic() + self.settle_seconds_max
        while True:
            jobs, status = self.until_answered(self.open_jobs), self.until_answered(self.status)
            if not jobs and not status["operations_pending"]:
                return status
            if time.monotonic() > until:
                raise Violation(f"jobs do not come to an end: {jobs}, {status}")
            time.sleep(POLL_SECONDS)
