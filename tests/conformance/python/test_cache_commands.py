"""The cache judged by redis-py: every type of value, transactions, waiting, messages and scripts."""

import threading
import time
import uuid

import pytest
import redis


@pytest.fixture(scope="session")
def address(target):
    host, port = target["endpoints"]["cache"].split("://")[1].rsplit(":", 1)
    return {"host": host, "port": int(port)}


@pytest.fixture
def cache(address):
    client = redis.Redis(**address, decode_responses=True)
    yield client
    client.close()


@pytest.fixture
def key():
    return f"k{uuid.uuid4().hex}"


def test_strings_are_set_counted_and_expire(cache, key):
    assert cache.set(key, "5") is True
    assert cache.incrby(key, 7) == 12
    assert cache.incrbyfloat(key, "0.1") == 12.1
    assert cache.set(key, "x", nx=True) is None
    assert cache.set(key, "x", ex=100, get=True) == "12.1"
    assert 0 < cache.ttl(key) <= 100
    assert cache.mget(key, key + "no") == ["x", None]
    cache.psetex(key, 20, "gone")
    time.sleep(0.1)
    assert cache.exists(key) == 0


def test_hashes_keep_fields_with_their_own_expiry(cache, key):
    assert cache.hset(key, mapping={"a": 1, "b": "two"}) == 2
    assert cache.hgetall(key) == {"a": "1", "b": "two"}
    assert cache.hincrby(key, "a", 41) == 42
    assert cache.hpexpire(key, 20, "a", "missing") == [1, -2]
    time.sleep(0.1)
    assert cache.hkeys(key) == ["b"]


def test_lists_are_queues_that_can_be_waited_for(cache, address, key):
    assert cache.rpush(key, "a", "b", "c") == 3
    assert cache.lrange(key, 0, -1) == ["a", "b", "c"]
    assert cache.lmove(key, key + "2", "LEFT", "RIGHT") == "a"
    cache.delete(key)
    other = redis.Redis(**address)
    later = threading.Timer(0.2, lambda: other.lpush(key, "late"))
    later.start()
    assert cache.blpop([key], timeout=10) in [(key, "late"), [key, "late"]]
    later.join()
    other.close()
    assert cache.blpop([key], timeout=0.1) is None


def test_sets_are_combined(cache, key):
    one, two = "{" + key + "}1", "{" + key + "}2"
    assert cache.sadd(one, "a", "b", "c") == 3
    cache.sadd(two, "b", "c", "d")
    assert set(cache.sinter(one, two)) == {"b", "c"}
    assert cache.sunionstore(one, one, two) == 4
    assert cache.smismember(one, ["a", "x"]) == [1, 0]


def test_sorted_sets_rank_members(cache, key):
    assert cache.zadd(key, {"a": 1, "b": 2.5, "c": 3}) == 3
    assert cache.zrank(key, "b") == 1
    assert cache.zscore(key, "b") == 2.5
    assert cache.zrange(key, 2, 3, byscore=True) == ["b", "c"]
    assert cache.zincrby(key, 10, "a") == 11
    lowest = cache.zpopmin(key)
    assert [list(pair) for pair in lowest] == [["b", 2.5]]


def test_streams_are_read_by_groups(cache, key):
    first = cache.xadd(key, {"n": "1"})
    cache.xadd(key, {"n": "2"})
    assert cache.xlen(key) == 2
    assert cache.xgroup_create(key, "g", id="0")
    assert cache.xreadgroup("g", "anna", {key: ">"}, count=1)
    assert cache.xpending(key, "g")["pending"] == 1
    assert cache.xack(key, "g", first) == 1
    assert [fields for _, fields in cache.xrange(key)] == [{"n": "1"}, {"n": "2"}]


def test_transactions_run_whole_or_not_at_all(cache, address, key):
    with cache.pipeline(transaction=True) as batch:
        batch.set(key, 1).incr(key).get(key)
        assert batch.execute() == [True, 2, "2"]
    other = redis.Redis(**address)
    with cache.pipeline() as batch:
        batch.watch(key)
        other.set(key, "changed")
        batch.multi()
        batch.set(key, "lost")
        with pytest.raises(redis.WatchError):
            batch.execute()
    other.close()
    assert cache.get(key) == "changed"


def test_messages_reach_subscribers(cache, key):
    listener = cache.pubsub()
    listener.subscribe(key)
    listener.psubscribe(key + "*")
    kinds = [listener.get_message(timeout=5)["type"] for _ in range(2)]
    assert kinds == ["subscribe", "psubscribe"]
    assert cache.publish(key, "hello") == 2
    got = [listener.get_message(timeout=5) for _ in range(2)]
    assert sorted(message["type"] for message in got) == ["message", "pmessage"]
    listener.close()


def test_scripts_run_where_the_data_is(cache, key):
    add = cache.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
    assert add(keys=[key], args=[5]) == 5
    assert add(keys=[key], args=[6]) == 11
    body = "return cjson.encode({n = tonumber(redis.call('get', KEYS[1]))})"
    assert cache.eval(body, 1, key) == '{"n":11}'
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        cache.eval("return redis.call('lpush', KEYS[1], 'x')", 1, key)


def test_scans_find_all_keys(cache, key):
    names = {f"{key}:{number}" for number in range(300)}
    cache.mset({name: "x" for name in names})
    assert set(cache.scan_iter(match=f"{key}:*", count=50)) == names
    cache.hset(key, mapping={f"f{number}": number for number in range(1000)})
    assert len(dict(cache.hscan_iter(key))) == 1000


def test_places_and_counts_are_approximate(cache, key):
    cache.geoadd(key, [13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"])
    assert float(cache.geodist(key, "Palermo", "Catania")) == 166274.1516
    assert cache.geosearch(key, longitude=15, latitude=37, radius=100, unit="km") == ["Catania"]
    cache.pfadd(key + "p", *[f"e{number}" for number in range(1000)])
    assert 970 < cache.pfcount(key + "p") < 1030


def test_errors_are_those_of_the_service(cache, key):
    cache.set(key, "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE Operation against a key"):
        cache.lpush(key, "x")
    with pytest.raises(redis.ResponseError, match="value is not an integer or out of range"):
        cache.incr(key)
    with pytest.raises(redis.ResponseError, match="unknown command"):
        cache.execute_command("NONSENSE")
