"""The rules about known gaps can fail: each is broken here once, in a run of its own."""

import pathlib
import subprocess
import sys

import pytest

SAMPLE = """
import pytest

def test_passes(): pass
def test_fails(): assert False
@pytest.mark.parametrize("x", [1, 2])
def test_half(x): assert x == 1
"""

CONFTEST = """
import gaps

def pytest_configure(config):
    config.pluginmanager.register(gaps.Gaps(gaps.load("known_gaps.toml"), "ours"))
"""

FAILS = ("test_fails", "ours")
HALF = ("test_half[2]", "ours")


def run(folder, listed, sample=SAMPLE):
    """Runs the sample with these tests listed as gaps; answers pytest's exit code and output."""
    entries = (
        f'[[gap]]\nfront = "sample"\ntest = "{test}"\ntarget = "{target}"\nreason = "it is so"\n'
        for test, target in listed
    )
    (folder / "known_gaps.toml").write_text("\n".join(entries))
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_sample.py").write_text(sample)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "."]
    here = str(pathlib.Path(__file__).parent)
    result = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": here}, capture_output=True, text=True
    )
    return result.returncode, result.stdout + result.stderr


def test_a_run_passes_when_every_failure_is_listed(tmp_path):
    code, output = run(tmp_path, [FAILS, HALF])
    assert code == 0, output


def test_an_unlisted_failure_fails(tmp_path):
    code, output = run(tmp_path, [FAILS])
    assert code == 1 and "test_half[2]" in output


def test_a_listed_test_that_passes_fails(tmp_path):
    code, output = run(tmp_path, [FAILS, HALF, ("test_passes", "ours")])
    assert code == 1 and "test_passes" in output


def test_an_entry_for_another_target_does_not_count(tmp_path):
    code, output = run(tmp_path, [HALF, ("test_fails", "azurite")])
    assert code == 1 and "test_fails" in output


def test_an_entry_for_no_test_fails(tmp_path):
    code, output = run(tmp_path, [FAILS, HALF, ("test_of_yesterday", "ours")])
    assert code == pytest.ExitCode.USAGE_ERROR and "test_of_yesterday" in output


def test_a_skipped_test_fails(tmp_path):
    code, output = run(tmp_path, [], "import pytest\ndef test_lazy(): pytest.skip('later')\n")
    assert code == 1 and "test_lazy was skipped" in output
