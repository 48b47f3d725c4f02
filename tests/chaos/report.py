"""What a run of chaos did and found, in lines for people and in figures for programs."""

import collections


class Report:
    def __init__(self):
        self.troubles = collections.Counter()
        self.longest_jobs = []
        self.violations = []
        self.loads = {}
        self.done = {}
        self.refused = {}
        self.interrupted = 0
        self.start_seconds = []
        self.status = None
        self.fsck = None

    def begun(self, name, answer):
        if answer != "begun":
            self.violations.append(f"the load of {name} did not begin: {answer}")

    def load(self, name, result):
        """What the process of a load has to say at its end."""
        if not isinstance(result, dict):
            self.violations.append(f"the load of {name} did not come to its end")
            return
        self.loads[name] = result
        self.violations += [f"{name}: {text}" for text in result["violations"]]

    def trouble(self, told):
        self.troubles[told.split()[0]] += 1

    def changes(self, changes):
        self.done = dict(sorted(changes.done.items()))
        self.refused = dict(sorted(changes.refused.items()))
        self.interrupted = changes.interrupted
        self.longest_jobs = changes.longest_jobs()
        self.violations += changes.violations

    def starts(self, seconds):
        self.start_seconds = sorted(seconds)

    def retries(self):
        return sum(
            (collections.Counter(load["retries"]) for load in self.loads.values()),
            collections.Counter(),
        )

    def judge_retries(self):
        """Clients must not need their retries."""
        if retries := self.retries():
            self.violations.append(f"the SDKs had to retry: {dict(retries)}")

    def figures(self):
        loads = {}
        for name, load in self.loads.items():
            latencies = {phase: quantiles(all) for phase, all in load["latencies"].items()}
            loads[name] = {**load, "latencies": latencies}
        return {
            "troubles": dict(self.troubles),
            "longest_jobs": self.longest_jobs,
            "changes": self.done,
            "changes_refused": self.refused,
            "changes_interrupted": self.interrupted,
            "starts": quantiles(self.start_seconds),
            "loads": loads,
            "violations": self.violations,
        }

    def __str__(self):
        lines = [
            f"troubles: {listed(self.troubles)}; starts: {shown(quantiles(self.start_seconds))}",
            f"changes of the map: {listed(self.done)}",
            f"  refused: {listed(self.refused)}; interrupted by kills: {self.interrupted}",
            f"  longest jobs: {'; '.join(self.longest_jobs) or 'none of more than seconds'}",
        ]
        for name, load in self.loads.items():
            calls, retries = sum(load["answered"].values()), sum(load["retries"].values())
            lines += [
                f"{name}: {calls} calls answered, {load['sent']} requests sent, {retries} retries",
                f"  answered: {listed(load['answered'])}",
                f"  refused as they must be: {listed(load['refused'])}",
                f"  in doubt: {listed(load['doubts'])}; never sent: {load['unreachable']}",
                f"  slowest refusal with 503: {load['slowest_refusal'] * 1000:.0f} ms",
                f"  settled: {listed(load['settled'])}",
            ]
            for phase, seconds in sorted(load["latencies"].items()):
                lines.append(f"  latency {phase}: {shown(quantiles(seconds))}")
            slowest = [
                f"{kind} {seconds * 1000:.0f} ms ({phase})"
                for seconds, phase, kind in load["slowest"]
            ]
            lines.append(f"  slowest: {', '.join(slowest)}")
        if self.status is not None:
            lines.append(f"troubles of the server: {self.status['troubles']}")
        if self.fsck is not None:
            lines.append(f"fsck: {self.fsck.splitlines()[-1] if self.fsck else 'nothing found'}")
        lines += [f"VIOLATION: {text}" for text in self.violations] or [
            "nothing lost, doubled, torn or given to two"
        ]
        return "\n".join(lines)


def listed(counts):
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())) or "none"


def quantiles(values):
    """Of sorted values, in seconds."""
    if not values:
        return {}
    p50, p99 = (values[min(len(values) - 1, int(len(values) * it))] for it in (0.5, 0.99))
    return {"count": len(values), "p50": p50, "p99": p99, "max": values[-1]}


def shown(quantiles):
    if not quantiles:
        return "none"
    times = [f"{name} {quantiles[name] * 1000:.1f} ms" for name in ("p50", "p99", "max")]
    return f"{quantiles['count']} of them, {', '.join(times)}"
