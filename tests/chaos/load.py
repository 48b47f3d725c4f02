"""Load on one service: threads that call, each with things of its own, and one that looks at everything.

Who writes is alone with what it writes, so it knows what must be there: what was answered. What was in doubt when the
server died is looked at once the server is back, and certain from then on.
"""

import random
import threading
import time
import traceback

from calls import Calls, Sdk, Tally, Unreachable, Violation

# How long the server may be away after it was killed.
BACK_SECONDS_MAX = 60
BACK_POLL_SECONDS = 0.02
# How long after its process has died a write may still be committed by the database.
LATE_COMMIT_SECONDS = 4
# Violations that are shown; the first one ends the run.
VIOLATIONS_SHOWN = 10


class Run:
    """What all threads of a process share with the one that rules the run."""

    def __init__(self, target, settings, signals):
        self.target = target
        self.seed = settings["seed"]
        self.kills = settings["kills"]
        self.retries = settings["retries"]
        self.on_databases = settings["on_databases"]
        self.signals = signals
        self.tally = Tally()
        self.violations = []
        self.lock = threading.Lock()

    def goes_on(self):
        return not self.signals.stop.is_set() and not self.signals.broken.is_set()

    def phase(self):
        return "with changes" if self.signals.changing.is_set() else "without changes"

    def wait_for_server(self):
        """A moment without a server; who waits for too long has found a violation."""
        until = time.monotonic() + BACK_SECONDS_MAX
        time.sleep(BACK_POLL_SECONDS)
        while not self.signals.up.wait(1):
            if time.monotonic() > until:
                raise Violation("the server did not come back")

    def wait_for_late_commits(self):
        """Until what a process or a connection that is gone had sent to its database is committed there or never will be."""
        time.sleep(LATE_COMMIT_SECONDS)
        while not self.signals.calm.is_set():
            self.signals.calm.wait(1)
            time.sleep(LATE_COMMIT_SECONDS)

    def violated(self, message):
        with self.lock:
            self.violations.append(message)
        self.signals.broken.set()


class Worker(threading.Thread):
    """A thread with clients and chance of its own."""

    def __init__(self, run, name):
        super().__init__(name=name, daemon=True)
        self.go = run
        self.random = random.Random(f"{run.seed} {name}")
        self.calls = Calls(run, run.tally)
        self.sdk = Sdk(run.target, run.tally, run.retries)

    def run(self):
        try:
            self.prepare()
            while self.go.goes_on():
                try:
                    self.step()
                except Unreachable:
                    self.go.wait_for_server()
        except Violation as violation:
            self.go.violated(f"{self.name}: {violation}")
        except Exception:
            self.go.violated(f"{self.name}: {traceback.format_exc()}")

    def prepare(self):
        """Makes the clients."""

    def step(self):
        """One operation."""
        raise NotImplementedError

    def choose(self, weights):
        """One of the operations, as often as their weights say."""
        operations = list(weights)
        return self.random.choices(operations, [weights[it] for it in operations])[0]


def carry_out(kind, target, settings, signals, answer):
    """A process of load: runs the workers of a service until it is told to stop, then looks at everything once more."""
    run = Run(target, settings, signals)
    try:
        load = kind(run)
        load.prepare()
        workers = load.workers()
        for worker in workers:
            worker.start()
        answer.send("begun")
        for worker in workers:
            worker.join()
        if not run.violations:
            load.check()
    except Violation as violation:
        run.violated(str(violation))
    except Exception:
        run.violated(traceback.format_exc())
    answer.send({**run.tally.result(), "violations": run.violations[:VIOLATIONS_SHOWN]})
    answer.close()


class Presence:
    """Which of many names are there: certain ones, and those that are being created or deleted just now.

    A scan notes the time before it begins. What was there from before that and still is must have been seen once; what was
    gone before must not have been seen.
    """

    def __init__(self, what):
        self.what = what
        self.lock = threading.Lock()
        self.states = {}

    def set(self, name, state):
        """`there`, `gone` or `unsure`."""
        with self.lock:
            self.states[name] = (state, time.monotonic())

    def there(self):
        with self.lock:
            return [name for name, (state, _) in self.states.items() if state == "there"]

    def judge(self, seen, began):
        """Compares what a scan has seen, in its order and with repetitions, with what must be so."""
        if len(set(seen)) != len(seen):
            doubled = sorted({name for name in seen if seen.count(name) > 1})
            raise Violation(f"DOUBLED in a scan of {self.what}: {doubled[:5]}")
        seen = set(seen)
        with self.lock:
            states = dict(self.states)
        unknown = sorted(seen - states.keys())
        if unknown:
            raise Violation(f"a scan of {self.what} shows what nobody wrote: {unknown[:5]}")
        for name, (state, since) in states.items():
            if since >= began:
                continue
            if state == "there" and name not in seen:
                raise Violation(f"LOST in a scan of {self.what}: {name}")
            if state == "gone" and name in seen:
                raise Violation(f"a scan of {self.what} shows {name}, which was deleted")


def pages(calls, kind, start):
    """All things of a list, page by page, each page asked for until it is answered: a place in a list stays good."""
    token = None
    while True:
        page, token = calls.until_answered(kind, one_page, start, token)
        yield from page
        if not token:
            return


def one_page(start, token):
    turned = start().by_page(continuation_token=token)
    page = list(next(turned, []))
    return page, turned.continuation_token
