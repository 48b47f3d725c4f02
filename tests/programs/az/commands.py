"""The Azure CLI on Lazuli: what people type for containers, blobs, tables, entities, queues and messages.

Each command runs as it would in a shell, with a connection string in the environment. The arguments are the `az` program,
the addresses of the Blob, Queue and Table services, and the account with its key.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# How often it is looked whether a copy is done. Each look is a command, which takes a second.
COPY_LOOKS_MAX = 30


class Az:
    def __init__(self, program, blobs, queues, tables, account, key, home):
        self.program = program
        self.blobs = f"{blobs}/{account}"
        self.env = dict(
            os.environ,
            AZURE_STORAGE_CONNECTION_STRING=(
                f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};"
                f"BlobEndpoint={blobs}/{account};QueueEndpoint={queues}/{account};"
                f"TableEndpoint={tables}/{account};"
            ),
            # Settings of its own, and nothing sent home.
            AZURE_CONFIG_DIR=str(home),
            AZURE_CORE_COLLECT_TELEMETRY="false",
            AZURE_CORE_NO_COLOR="true",
            AZURE_CORE_ONLY_SHOW_ERRORS="true",
        )
        self.count = 0

    def run(self, *words, fails=None):
        """What a command prints, as JSON. With `fails` it must fail and say so."""
        self.count += 1
        done = subprocess.run(
            [self.program, *words, "--output", "json"], env=self.env, capture_output=True, text=True, check=False
        )
        line = "az " + " ".join(words)
        if fails is not None:
            assert done.returncode != 0, f"{line} did not fail"
            assert fails in done.stderr, f"{line}: {done.stderr.strip()}"
            print(f"ok      {line} (refused with {fails})", flush=True)
            return None
        assert done.returncode == 0, f"{line}: {done.stderr.strip()}"
        print(f"ok      {line}", flush=True)
        return json.loads(done.stdout) if done.stdout.strip() else None


def blobs(az, folder):
    small, large = folder / "small.txt", folder / "large.bin"
    small.write_text("hello from az\n", encoding="utf-8")
    large.write_bytes(bytes(n % 251 for n in range(1 << 16)) * 1_200)
    assert az.run("storage", "container", "create", "--name", "files")["created"] is True
    assert az.run("storage", "container", "create", "--name", "files")["created"] is False
    names = [one["name"] for one in az.run("storage", "container", "list")]
    assert names == ["files"], names
    assert az.run("storage", "container", "exists", "--name", "none")["exists"] is False
    to = ["--container-name", "files", "--name"]
    az.run("storage", "blob", "upload", *to, "a/small.txt", "--file", str(small), "--metadata", "kind=note")
    az.run("storage", "blob", "upload", *to, "large.bin", "--file", str(large))
    az.run("storage", "blob", "upload", *to, "large.bin", "--file", str(small), fails="already exists")
    shown = az.run("storage", "blob", "show", *to, "a/small.txt")
    assert shown["metadata"] == {"kind": "note"} and shown["properties"]["contentLength"] == 14, shown
    back = folder / "back.bin"
    az.run("storage", "blob", "download", *to, "large.bin", "--file", str(back))
    assert back.read_bytes() == large.read_bytes()
    found = [one["name"] for one in az.run("storage", "blob", "list", "--container-name", "files", "--prefix", "a/")]
    assert found == ["a/small.txt"], found
    copied = ["--destination-container", "files", "--destination-blob", "copy.bin"]
    # Without the address of the source the program would take that of the cloud.
    source = ["--source-uri", f"{az.blobs}/files/large.bin"]
    status = az.run("storage", "blob", "copy", "start", *copied, *source)["copy_status"]
    for _ in range(COPY_LOOKS_MAX):
        if status != "pending":
            break
        status = az.run("storage", "blob", "show", *to, "copy.bin")["properties"]["copy"]["status"]
    assert status == "success", status
    az.run("storage", "blob", "metadata", "update", *to, "copy.bin", "--metadata", "from=copy")
    assert az.run("storage", "blob", "metadata", "show", *to, "copy.bin") == {"from": "copy"}
    az.run("storage", "blob", "snapshot", *to, "copy.bin")
    sas = az.run(
        "storage", "blob", "generate-sas", *to, "copy.bin", "--permissions", "r", "--expiry", "2099-01-01T00:00Z"
    )
    assert "sig=" in sas, sas
    az.run("storage", "blob", "delete", *to, "copy.bin", "--delete-snapshots", "include")
    az.run("storage", "blob", "delete", *to, "copy.bin", fails="BlobNotFound")
    assert az.run("storage", "blob", "exists", *to, "copy.bin")["exists"] is False
    az.run("storage", "container", "delete", "--name", "files")


def batches(az, folder):
    tree = folder / "tree"
    for name in ("one.txt", "deep/two.txt", "deep/three.log"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name, encoding="utf-8")
    az.run("storage", "container", "create", "--name", "tree")
    az.run("storage", "blob", "upload-batch", "--destination", "tree", "--source", str(tree))
    back = folder / "tree-back"
    back.mkdir()
    az.run("storage", "blob", "download-batch", "--source", "tree", "--destination", str(back), "--pattern", "*.txt")
    found = sorted(str(path.relative_to(back)) for path in back.rglob("*") if path.is_file())
    assert found == ["deep/two.txt", "one.txt"], found
    az.run("storage", "blob", "delete-batch", "--source", "tree")
    assert az.run("storage", "blob", "list", "--container-name", "tree") == []


def tables(az):
    assert az.run("storage", "table", "create", "--name", "people")["created"] is True
    assert [one["name"] for one in az.run("storage", "table", "list")] == ["people"]
    for key, age in (("ada", 36), ("bob", 41), ("eve", 29)):
        entity = ["PartitionKey=team", f"RowKey={key}", f"Age={age}", "Age@odata.type=Edm.Int32"]
        az.run("storage", "entity", "insert", "--table-name", "people", "--entity", *entity)
    again = ["PartitionKey=team", "RowKey=ada", "Age=1"]
    az.run("storage", "entity", "insert", "--table-name", "people", "--entity", *again, fails="already exists")
    query = az.run("storage", "entity", "query", "--table-name", "people", "--filter", "Age gt 30")
    assert sorted(one["RowKey"] for one in query["items"]) == ["ada", "bob"], query
    one = ["--table-name", "people", "--partition-key", "team", "--row-key", "bob"]
    changed = ["PartitionKey=team", "RowKey=bob", "City=Ulm"]
    az.run("storage", "entity", "merge", "--table-name", "people", "--entity", *changed)
    shown = az.run("storage", "entity", "show", *one)
    assert shown["City"] == "Ulm" and shown["Age"] == 41, shown
    az.run("storage", "entity", "delete", *one)
    az.run("storage", "entity", "show", *one, fails="does not exist")
    az.run("storage", "table", "delete", "--name", "people")


def queues(az):
    assert az.run("storage", "queue", "create", "--name", "work")["created"] is True
    assert [one["name"] for one in az.run("storage", "queue", "list")] == ["work"]
    for text in ("first", "second"):
        az.run("storage", "message", "put", "--queue-name", "work", "--content", text)
    assert az.run("storage", "message", "peek", "--queue-name", "work")[0]["content"] == "first"
    got = az.run("storage", "message", "get", "--queue-name", "work", "--visibility-timeout", "60")[0]
    assert got["content"] == "first", got
    this = ["--queue-name", "work", "--id", got["id"], "--pop-receipt", got["popReceipt"]]
    az.run("storage", "message", "delete", *this)
    az.run("storage", "message", "clear", "--queue-name", "work")
    assert az.run("storage", "message", "peek", "--queue-name", "work") == []
    az.run("storage", "queue", "delete", "--name", "work")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        az = Az(*sys.argv[1:7], folder / "home")
        failed = 0
        groups = [lambda: blobs(az, folder), lambda: batches(az, folder), lambda: tables(az), lambda: queues(az)]
        for group in groups:
            try:
                group()
            except Exception as error:  # Any failure is told, and the other groups are tried all the same.
                failed += 1
                print(f"FAILED  {type(error).__name__}: {error}", flush=True)
        print(f"{az.count} commands, {failed} groups failed")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
