"""Holds `known_gaps.toml` to its word, both ways.

A listed test must fail on the target it is listed for: when it passes, the entry is a lie and the run fails. A test
that is not listed must pass, and may not be skipped either. An entry for a test that does not exist fails the run too.
"""

import tomllib

import pytest

SDK = "python"
FIELDS = {"front", "test", "target", "sdk", "reason"}


def load(path):
    """The entries of the file that concern this SDK, each checked for what it must say."""
    with open(path, "rb") as file:
        entries = tomllib.load(file).get("gap", [])
    for entry in entries:
        unknown = set(entry) - FIELDS
        missing = FIELDS - {"sdk"} - set(entry)
        if unknown or missing:
            raise pytest.UsageError(f"{path}: {entry}: unknown {unknown}, missing {missing}")
    return [entry for entry in entries if entry.get("sdk", SDK) == SDK]


def front(item):
    """The front that a test is about: its file is called test_<front>_<group>.py."""
    return item.path.stem.removeprefix("test_").split("_")[0]


class Gaps:
    """The plugin: one per run, for one target."""

    def __init__(self, entries, target):
        self.entries = [entry for entry in entries if entry["target"] == target]

    def covers(self, entry, item):
        return entry["front"] == front(item) and entry["test"] in (item.name, item.originalname)

    def pytest_collection_modifyitems(self, items):
        fronts = {front(item) for item in items}
        for entry in self.entries:
            covered = [item for item in items if self.covers(entry, item)]
            if not covered and entry["front"] in fronts:
                raise pytest.UsageError(f"known_gaps.toml lists {entry['test']}, which is no test")
            for item in covered:
                item.add_marker(pytest.mark.xfail(reason=entry["reason"], strict=True))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if report.skipped and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"{item.name} was skipped: a gap belongs into known_gaps.toml"
