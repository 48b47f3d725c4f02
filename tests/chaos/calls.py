"""Calls of the official SDKs, each measured and its outcome named: answered, in doubt, or never sent.

The transport below the SDK's pipeline counts what is sent: a request that comes by twice is a retry of the SDK. So the
count is the same for all three SDKs, whatever policy each has.
"""

import collections
import threading
import time

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError, HttpResponseError, ServiceRequestError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableServiceClient, TableTransactionError
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

# How long an answer may take before it counts as hanging.
ANSWER_SECONDS_MAX = 60
# A request that must be refused is refused within this time.
REFUSAL_SECONDS_MAX = 40
# Latencies above these are what a user would feel; they are listed with their operation.
SLOW_SHOWN = 5
# Blobs above these sizes go up and come down in pieces.
BLOB_PUT_BYTES_MAX = 192 * 1024
BLOB_PIECE_BYTES = 96 * 1024


class InDoubt(Exception):
    """The request may have been carried out or not: its answer never came."""


class Unreachable(Exception):
    """Nobody listened, so the request was never sent."""


class Violation(Exception):
    """Something happened that never may."""


class Tally:
    """What was sent and answered, over all threads of this process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.answered = collections.Counter()
        self.refused = collections.Counter()
        self.doubts = collections.Counter()
        self.settled = collections.Counter()
        self.unreachable = 0
        self.sent = 0
        self.retries = collections.Counter()
        self.latencies = collections.defaultdict(list)
        self.slowest = []
        self.slowest_refusal = 0.0

    def count(self, counter, kind):
        with self.lock:
            counter[kind] += 1

    def note_latency(self, phase, kind, seconds):
        with self.lock:
            self.latencies[phase].append(seconds)
            self.slowest.append((seconds, phase, kind))
            if len(self.slowest) > 100:
                self.slowest = sorted(self.slowest, reverse=True)[:SLOW_SHOWN]

    def note_refusal(self, seconds):
        """How long it took to say that a database is away."""
        with self.lock:
            self.slowest_refusal = max(self.slowest_refusal, seconds)

    def result(self):
        return {
            "slowest_refusal": self.slowest_refusal,
            "answered": dict(self.answered),
            "refused": dict(self.refused),
            "doubts": dict(self.doubts),
            "settled": dict(self.settled),
            "unreachable": self.unreachable,
            "sent": self.sent,
            "retries": dict(self.retries),
            "latencies": {phase: sorted(all) for phase, all in self.latencies.items()},
            "slowest": sorted(self.slowest, reverse=True)[:SLOW_SHOWN],
        }


class CountingTransport(RequestsTransport):
    """The SDK's own transport, with a count of what passes."""

    def __init__(self, tally):
        super().__init__()
        self.tally = tally

    def send(self, request, **options):
        again = getattr(request, "was_sent", False)
        request.was_sent = True
        with self.tally.lock:
            self.tally.sent += 1
            if again:
                self.tally.retries[f"{request.method} {request.why_again}"] += 1
        try:
            response = super().send(request, **options)
        except AzureError as error:
            request.why_again = type(error).__name__
            raise
        request.why_again = f"after status {response.status_code}"
        return response


class Sdk:
    """One thread's clients of all three services."""

    def __init__(self, target, tally, retries):
        self.target = target
        self.tally = tally
        # Without retries of the SDK every request that was not answered is known to us.
        self.options = {} if retries else {"retry_total": 0, "retry_connect": 0, "retry_read": 0}
        self.options["read_timeout"] = ANSWER_SECONDS_MAX

    def _url(self, front):
        return f"{self.target['endpoints'][front]}/{self.target['account']}"

    def _client(self, kind, front, credential, **options):
        options = {**self.options, **options, "transport": CountingTransport(self.tally)}
        return kind(self._url(front), credential=credential, **options)

    def _key(self):
        return {"account_name": self.target["account"], "account_key": self.target["key"]}

    def tables(self):
        credential = AzureNamedKeyCredential(self.target["account"], self.target["key"])
        return self._client(TableServiceClient, "tables", credential)

    def queues(self):
        return self._client(QueueServiceClient, "queues", self._key())

    def blobs(self):
        sizes = {
            "max_single_put_size": BLOB_PUT_BYTES_MAX,
            "max_block_size": BLOB_PIECE_BYTES,
            "max_single_get_size": BLOB_PUT_BYTES_MAX,
            "max_chunk_get_size": BLOB_PIECE_BYTES,
        }
        return self._client(BlobServiceClient, "blobs", self._key(), **sizes)


class Calls:
    """Makes the calls of one thread."""

    def __init__(self, run, tally):
        self.run = run
        self.tally = tally

    def __call__(self, kind, call, *words, **options):
        """The answer of a call. Refusals of the service (4xx) are raised as the SDK raises them."""
        phase = self.run.phase()
        begin = time.monotonic()
        try:
            answer = call(*words, **options)
        except AzureError as error:
            raise self._outcome(kind, error, time.monotonic() - begin) from error
        self.tally.note_latency(phase, kind, time.monotonic() - begin)
        self.tally.count(self.tally.answered, kind)
        return answer

    def _outcome(self, kind, error, took):
        status = getattr(error, "status_code", None)
        refused = isinstance(error, (HttpResponseError, TableTransactionError))
        if refused and status is not None and status < 500:
            self.tally.count(self.tally.refused, f"{kind} {status}")
            return error
        if refused and status == 503 and self.run.on_databases and self.run.kills:
            # A database is away, or a fence that a killed node left stands until another one takes its work over.
            self.tally.note_refusal(took)
            if took > REFUSAL_SECONDS_MAX:
                return Violation(f"{kind} was refused with 503 after {took:.1f} s")
            return self._doubt(kind, error)
        if refused and status is not None:
            # A server that lives must not say this, whatever happens to its partitions.
            return Violation(f"{kind} was answered with {status}: {first_line(error)}")
        if not self.run.kills:
            return Violation(
                f"{kind} was not answered: {type(error).__name__}: {first_line(error)}"
            )
        if isinstance(error, ServiceRequestError) and "refused" in str(error):
            with self.tally.lock:
                self.tally.unreachable += 1
            return Unreachable()
        if "timed out" in str(error):
            return Violation(f"{kind} hangs: {first_line(error)}")
        return self._doubt(kind, error)

    def _doubt(self, kind, error):
        self.tally.count(self.tally.doubts, kind)
        if self.run.on_databases:
            self.run.wait_for_late_commits()
        return InDoubt(first_line(error))

    def until_answered(self, kind, call, *words, **options):
        """For what may be asked again without harm: asks until there is an answer."""
        while True:
            try:
                return self(kind, call, *words, **options)
            except (InDoubt, Unreachable):
                self.run.wait_for_server()


def first_line(error):
    return (str(error).splitlines() or [""])[0]
