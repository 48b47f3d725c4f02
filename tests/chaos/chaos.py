"""Chaos: the server under the load of the official SDKs, while its map changes every second and it is killed again and
again. Run by `cargo xtask chaos`.

The checkers in `tables_load.py`, `blobs_load.py` and `queues_load.py` look for lost, doubled and torn writes all the time
and at the end; then all jobs must end and `lazuli fsck` must find nothing. Without kills the SDKs retry as they do by
default, and every retry counts as a failure: clients must notice nothing but latency.
"""

import argparse
import json
import multiprocessing
import pathlib
import random
import signal
import sys
import time

import blobs_load
import queues_load
import tables_load
from calls import Violation
from changes import Admin, Away, Changes
from fleet import Fleet
from load import carry_out
from mixed import Mixed
from report import Report
from server import Failed, Server

LOADS = {"tables": tables_load.Load, "blobs": blobs_load.Load, "queues": queues_load.Load}
# The server lives this long between two kills.
LIFE_SECONDS = (2.0, 6.0)
# The same on databases: who is in doubt about a write waits before it looks.
DATABASES_LIFE_SECONDS = (5.0, 13.0)
# Between two changes of the map.
CHANGE_SECONDS_WITH_KILLS = 0.5
CHANGE_SECONDS_WITHOUT_KILLS = 0.3
# How long a load may take to begin.
BEGIN_SECONDS_MAX = 60
# How long the last look at everything may take.
CHECK_SECONDS_MAX = 300


class Signals:
    """What the processes tell each other."""

    def __init__(self, context):
        self.stop = context.Event()
        self.broken = context.Event()
        self.changing = context.Event()
        self.up = context.Event()
        # Not set while commits may come late by any time.
        self.calm = context.Event()
        self.calm.set()


class Chaos:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(f"{options.seed} kills")
        self.folder = pathlib.Path(options.folder)
        words = (options.binary, self.folder)
        if options.mixed:
            self.server = Mixed(*words, options.postgres, options.seed)
        elif options.postgres:
            words = (*words, options.postgres, options.seed)
            self.server = Fleet(*words, troubled=options.kills)
        else:
            self.server = Server(*words)
        self.context = multiprocessing.get_context("spawn")
        self.signals = Signals(self.context)
        self.report = Report()
        self.loads = {}
        interval = CHANGE_SECONDS_WITH_KILLS if options.kills else CHANGE_SECONDS_WITHOUT_KILLS
        self.settings = {
            "seed": options.seed,
            "kills": options.kills,
            "retries": not options.kills,
            "on_databases": self.server.on_databases,
            "interval": interval,
        }
        admin = Admin(self.server.url("admin"), self.server.on_databases)
        log = open(self.folder / "changes.log", "w")
        self.changes = Changes(admin, self.signals, self.settings, log, self.server)

    def run(self):
        self.server.start()
        self.signals.up.set()
        self.changes.prepare()
        self.start_loads()
        if not self.options.kills:
            # Latencies without changes, to compare with.
            self.sleep(self.options.seconds / 2)
        self.signals.changing.set()
        self.changes.start()
        self.live()
        self.changes.end()
        if not self.signals.broken.is_set():
            self.report.status = self.changes.settle()
        self.signals.stop.set()
        self.gather()
        self.report.changes(self.changes)
        self.report.starts(self.server.starts)
        if not self.report.violations:
            self.server.stop()
            self.report.fsck = self.server.fsck()

    def start_loads(self):
        fronts = {front: self.server.url(front) for front in LOADS}
        target = {"endpoints": fronts, "account": self.options.account, "key": self.options.key}
        for name, load in LOADS.items():
            ours, theirs = self.context.Pipe(duplex=False)
            words = (load, target, self.settings, self.signals, theirs)
            process = self.context.Process(target=carry_out, args=words, name=name, daemon=True)
            process.start()
            theirs.close()
            self.loads[name] = (process, ours)
        for name in self.loads:
            self.report.begun(name, self.answer_of(name, BEGIN_SECONDS_MAX))

    def answer_of(self, name, seconds):
        """What the process of a load says next; nothing if it says nothing in time."""
        _, pipe = self.loads[name]
        try:
            return pipe.recv() if pipe.poll(seconds) else None
        except EOFError:
            return None

    def sleep(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.signals.broken.is_set():
            time.sleep(0.05)

    def live(self):
        until = time.monotonic() + self.options.seconds
        while time.monotonic() < until and not self.signals.broken.is_set():
            if not self.options.kills:
                self.sleep(until - time.monotonic())
                continue
            life = DATABASES_LIFE_SECONDS if self.server.on_databases else LIFE_SECONDS
            self.sleep(self.random.uniform(*life))
            if self.signals.broken.is_set():
                return
            # A fleet goes on without one of its nodes.
            if not self.server.goes_on:
                self.signals.up.clear()
            began = time.time()
            trouble = self.server.trouble(self.signals.calm)
            print(f"{began:.3f} {trouble}, until {time.time():.3f}", file=self.changes.log, flush=True)
            self.signals.up.set()
            self.report.trouble(trouble)

    def gather(self):
        for name, (process, _) in self.loads.items():
            self.report.load(name, self.answer_of(name, CHECK_SECONDS_MAX))
            process.kill()


def read_options():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--binary", required=True)
    options.add_argument("--folder", required=True)
    options.add_argument("--seconds", type=float, required=True)
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--account", required=True)
    options.add_argument("--key", required=True)
    options.add_argument("--kills", action="store_true")
    options.add_argument("--postgres", help="run a fleet on servers that this program starts")
    options.add_argument("--mixed", action="store_true", help="one server with shards of both kinds")
    return options.parse_args()


def main():
    options = read_options()
    # Whoever ends this run ends the server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chaos = Chaos(options)
    failure = None
    try:
        chaos.run()
    except (Failed, Violation, Away) as error:
        failure = str(error)
        chaos.signals.broken.set()
        if not chaos.report.loads:
            chaos.gather()
    finally:
        chaos.server.end()
    if failure:
        chaos.report.violations.append(failure)
    if not options.kills:
        chaos.report.judge_retries()
    print(chaos.report)
    (chaos.folder / "report.json").write_text(json.dumps(chaos.report.figures(), indent=1))
    if chaos.report.violations:
        print(f"FAILED with seed {options.seed}; the data is in {options.folder}")
        sys.exit(1)


if __name__ == "__main__":
    main()
