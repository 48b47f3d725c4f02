"""Parquet files on Blobs as data people have them: pandas and pyarrow through adlfs, and pyarrow's own Azure file system.

Each check writes with one of the two file systems, reads with both, and compares what came back with what was written.
The arguments are the address of the Blob service and the account with its key.
"""

import sys
from urllib.parse import urlsplit

import adlfs
import pandas
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet

ROWS = 10_000
CONTAINER = "lake"


def frame():
    """Rows of several types, with a column to partition by and values that are missing."""
    numbers = range(ROWS)
    return pandas.DataFrame({
        "id": list(numbers),
        "city": [f"city-{n % 7}" for n in numbers],
        "year": [2020 + n % 3 for n in numbers],
        "share": [None if n % 11 == 0 else n / 7 for n in numbers],
        "at": pandas.to_datetime([n * 86_400 for n in numbers], unit="s", utc=True),
        "text": [f"Zeile {n} – ÿ" * (n % 5) for n in numbers],
    })


def same(found, expected):
    """Fails unless both have the same rows, in whatever order they came."""
    found = found[list(expected.columns)].sort_values("id").reset_index(drop=True)
    found = found.astype(expected.dtypes.to_dict())
    pandas.testing.assert_frame_equal(found, expected)


class Lake:
    def __init__(self, url, account, key):
        place = urlsplit(url)
        connection = (
            f"DefaultEndpointsProtocol={place.scheme};AccountName={account};AccountKey={key};"
            f"BlobEndpoint={url}/{account};"
        )
        self.options = {"connection_string": connection}
        self.adlfs = adlfs.AzureBlobFileSystem(connection_string=connection, skip_instance_cache=True)
        # It takes the account of an emulator as the first piece of the path, as the emulator has it.
        self.arrow = pyarrow.fs.AzureFileSystem(
            account_name=account,
            account_key=key,
            blob_storage_authority=place.netloc,
            blob_storage_scheme=place.scheme,
            dfs_storage_authority=place.netloc,
            dfs_storage_scheme=place.scheme,
        )

    def both(self):
        return (("adlfs", self.adlfs), ("pyarrow", self.arrow))


def pandas_writes_and_reads(lake):
    rows = frame()
    path = f"abfs://{CONTAINER}/pandas/rows.parquet"
    rows.to_parquet(path, storage_options=lake.options)
    same(pandas.read_parquet(path, storage_options=lake.options), rows)
    some = pandas.read_parquet(path, columns=["id", "city"], storage_options=lake.options)
    assert list(some.columns) == ["id", "city"] and len(some) == ROWS
    rows.head(10).to_csv(f"abfs://{CONTAINER}/pandas/rows.csv", index=False, storage_options=lake.options)
    csv = pandas.read_csv(f"abfs://{CONTAINER}/pandas/rows.csv", storage_options=lake.options)
    assert list(csv["id"]) == list(range(10))


def files_go_through_either_file_system(lake):
    table = pyarrow.Table.from_pandas(frame(), preserve_index=False)
    for writer, fs in lake.both():
        path = f"{CONTAINER}/single/{writer}.parquet"
        pyarrow.parquet.write_table(table, path, filesystem=fs, row_group_size=1_000)
        for reader, fs in lake.both():
            read = pyarrow.parquet.read_table(path, filesystem=fs)
            assert read.equals(table), f"written by {writer}, read by {reader}"


def partitioned_sets_go_through_either_file_system(lake):
    rows = frame()
    table = pyarrow.Table.from_pandas(rows, preserve_index=False)
    for writer, fs in lake.both():
        root = f"{CONTAINER}/parts-{writer}"
        pyarrow.parquet.write_to_dataset(table, root, partition_cols=["year", "city"], filesystem=fs)
        for reader, fs in lake.both():
            found = pyarrow.dataset.dataset(root, filesystem=fs, format="parquet", partitioning="hive")
            assert len(found.files) == 21, f"{writer}, {reader}: {found.files}"
            same(found.to_table().to_pandas(), rows)
            one = (pyarrow.dataset.field("year") == 2021) & (pyarrow.dataset.field("city") == "city-3")
            part = found.to_table(filter=one).to_pandas()
            same(part, rows[(rows["year"] == 2021) & (rows["city"] == "city-3")].reset_index(drop=True))


def large_files_go_in_blocks_and_are_read_in_pieces(lake):
    content = bytes(n * 31 % 251 for n in range(1 << 16)) * 400
    for writer, fs in lake.both():
        path = f"{CONTAINER}/large/{writer}.bin"
        if writer == "adlfs":
            with fs.open(path, "wb", block_size=5 << 20) as file:
                for at in range(0, len(content), 3 << 20):
                    file.write(content[at:at + (3 << 20)])
        else:
            with fs.open_output_stream(path) as file:
                file.write(content)
        with lake.adlfs.open(path, "rb") as file:
            file.seek(7_000_001)
            assert file.read(1_000) == content[7_000_001:7_001_001]
        with lake.arrow.open_input_file(path) as file:
            assert file.size() == len(content)
            assert file.read_at(1_000, 7_000_001) == content[7_000_001:7_001_001]
            assert file.read() == content, f"written by {writer}"


def files_are_listed_copied_moved_and_deleted(lake):
    for name, fs in lake.both():
        root = f"{CONTAINER}/tree-{name}"
        for path in ("a.txt", "deep/b.txt", "deep/er/c.txt"):
            lake.adlfs.pipe_file(f"{root}/{path}", path.encode())
        if name == "adlfs":
            assert sorted(fs.find(root)) == [f"{root}/a.txt", f"{root}/deep/b.txt", f"{root}/deep/er/c.txt"]
            assert fs.isdir(f"{root}/deep") and fs.isfile(f"{root}/a.txt") and not fs.exists(f"{root}/none")
            fs.cp_file(f"{root}/a.txt", f"{root}/copy.txt")
            assert fs.cat_file(f"{root}/copy.txt") == b"a.txt"
            fs.mv(f"{root}/copy.txt", f"{root}/moved.txt")
            assert fs.exists(f"{root}/moved.txt") and not fs.exists(f"{root}/copy.txt")
            fs.rm(root, recursive=True)
            assert not fs.exists(f"{root}/deep/b.txt")
        else:
            found = fs.get_file_info(pyarrow.fs.FileSelector(root, recursive=True))
            files = sorted(one.path for one in found if one.type == pyarrow.fs.FileType.File)
            assert files == [f"{root}/a.txt", f"{root}/deep/b.txt", f"{root}/deep/er/c.txt"], files
            kinds = [fs.get_file_info(f"{root}/{path}").type for path in ("a.txt", "deep", "none")]
            kind = pyarrow.fs.FileType
            assert kinds == [kind.File, kind.Directory, kind.NotFound], kinds
            fs.copy_file(f"{root}/a.txt", f"{root}/copy.txt")
            with fs.open_input_stream(f"{root}/copy.txt") as file:
                assert file.read() == b"a.txt"
            fs.delete_file(f"{root}/copy.txt")
            fs.delete_dir_contents(f"{root}/deep")
            assert fs.get_file_info(f"{root}/deep/er/c.txt").type == kind.NotFound
            fs.delete_dir(root)
            assert fs.get_file_info(f"{root}/a.txt").type == kind.NotFound


def containers_come_and_go(lake):
    for name, fs in lake.both():
        container = f"made-by-{name}"
        if name == "adlfs":
            fs.mkdir(container)
            assert container in fs.ls("")
            fs.rmdir(container)
            assert container not in fs.ls("", refresh=True)
        else:
            fs.create_dir(container)
            kind = pyarrow.fs.FileType
            assert fs.get_file_info(container).type == kind.Directory
            fs.delete_dir(container)
            assert fs.get_file_info(container).type == kind.NotFound


CHECKS = [
    pandas_writes_and_reads,
    files_go_through_either_file_system,
    partitioned_sets_go_through_either_file_system,
    large_files_go_in_blocks_and_are_read_in_pieces,
    files_are_listed_copied_moved_and_deleted,
    containers_come_and_go,
]


def main():
    lake = Lake(*sys.argv[1:4])
    lake.adlfs.mkdir(CONTAINER)
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            check(lake)
            print(f"ok      {name}", flush=True)
        except Exception as error:  # Any failure is told, and the others are tried all the same.
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
