// The cache judged by node-redis and ioredis: every type of value, transactions, waiting, messages and scripts.

import assert from "node:assert/strict";
import { after } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Redis } from "ioredis";
import { createClient } from "redis";

import { freshName, target, test } from "./target.mjs";

const address = target.endpoints.cache.split("://")[1];
const [host, port] = [address.split(":")[0], Number(address.split(":")[1])];

const nodeRedis = createClient({ socket: { host, port } });
await nodeRedis.connect();
const ioRedis = new Redis({ host, port });
after(async () => {
  await nodeRedis.close();
  await ioRedis.quit();
});

/** Commands as words, which both libraries can send; each reads the replies in its own way. */
const send = {
  "node-redis": (...words) => nodeRedis.sendCommand(words.map(String)),
  ioredis: (name, ...words) => ioRedis.call(name, ...words),
};
const SDKS = Object.keys(send);

/** Maps and sets of RESP3 as plain arrays and objects. */
function plain(reply) {
  if (reply instanceof Map) {
    return Object.fromEntries([...reply].map(([name, value]) => [name, plain(value)]));
  }
  if (reply instanceof Set) {
    return [...reply].map(plain);
  }
  return Array.isArray(reply) ? reply.map(plain) : reply;
}

function each(name, body) {
  for (const sdk of SDKS) {
    test(`${name}[${sdk}]`, () => body(async (...words) => plain(await send[sdk](...words)), sdk));
  }
}

each("test_strings_are_set_counted_and_expire", async (run) => {
  const key = freshName("k");
  assert.equal(await run("SET", key, "5"), "OK");
  assert.equal(await run("INCRBY", key, 7), 12);
  assert.equal(Number(await run("INCRBYFLOAT", key, "0.1")), 12.1);
  assert.equal(await run("SET", key, "x", "NX"), null);
  assert.equal(await run("SET", key, "x", "EX", 100, "GET"), "12.1");
  assert((await run("TTL", key)) > 0);
  assert.deepEqual(await run("MGET", key, key + "no"), ["x", null]);
  await run("PSETEX", key, 20, "gone");
  await pause(100);
  assert.equal(await run("EXISTS", key), 0);
});

each("test_hashes_keep_fields_with_their_own_expiry", async (run) => {
  const key = freshName("k");
  assert.equal(await run("HSET", key, "a", 1, "b", "two"), 2);
  const all = await run("HGETALL", key);
  const found = Array.isArray(all) ? all : Object.entries(all).flat();
  assert.deepEqual(found, ["a", "1", "b", "two"]);
  assert.equal(await run("HINCRBY", key, "a", 41), 42);
  assert.deepEqual(await run("HPEXPIRE", key, 20, "FIELDS", 2, "a", "missing"), [1, -2]);
  await pause(100);
  assert.deepEqual(await run("HKEYS", key), ["b"]);
});

each("test_lists_are_queues_that_can_be_waited_for", async (run) => {
  const key = freshName("k");
  assert.equal(await run("RPUSH", key, "a", "b", "c"), 3);
  assert.deepEqual(await run("LRANGE", key, 0, -1), ["a", "b", "c"]);
  assert.equal(await run("LMOVE", key, key + "2", "LEFT", "RIGHT"), "a");
  await run("DEL", key);
  const waiting = new Redis({ host, port });
  const late = waiting.blpop(key, 10);
  await pause(200);
  await run("LPUSH", key, "late");
  assert.deepEqual(await late, [key, "late"]);
  assert.equal(await waiting.blpop(key, 0.1), null);
  await waiting.quit();
});

each("test_sets_are_combined", async (run) => {
  const key = freshName("k");
  const [one, two] = [`{${key}}1`, `{${key}}2`];
  assert.equal(await run("SADD", one, "a", "b", "c"), 3);
  await run("SADD", two, "b", "c", "d");
  assert.deepEqual([...(await run("SINTER", one, two))].sort(), ["b", "c"]);
  assert.equal(await run("SUNIONSTORE", one, one, two), 4);
  assert.deepEqual(await run("SMISMEMBER", one, "a", "x"), [1, 0]);
});

each("test_sorted_sets_rank_members", async (run) => {
  const key = freshName("k");
  assert.equal(await run("ZADD", key, 1, "a", 2.5, "b", 3, "c"), 3);
  assert.equal(await run("ZRANK", key, "b"), 1);
  assert.equal(Number(await run("ZSCORE", key, "b")), 2.5);
  assert.deepEqual(await run("ZRANGE", key, 2, 3, "BYSCORE"), ["b", "c"]);
  assert.equal(Number(await run("ZINCRBY", key, 10, "a")), 11);
  assert.deepEqual((await run("ZPOPMIN", key)).map(String), ["b", "2.5"]);
});

each("test_streams_are_read_by_groups", async (run) => {
  const key = freshName("k");
  const first = await run("XADD", key, "*", "n", 1);
  await run("XADD", key, "*", "n", 2);
  assert.equal(await run("XLEN", key), 2);
  assert.equal(await run("XGROUP", "CREATE", key, "g", 0), "OK");
  assert(await run("XREADGROUP", "GROUP", "g", "anna", "COUNT", 1, "STREAMS", key, ">"));
  assert.equal((await run("XPENDING", key, "g"))[0], 1);
  assert.equal(await run("XACK", key, "g", first), 1);
  const entries = await run("XRANGE", key, "-", "+");
  assert.deepEqual(entries.map(([, fields]) => fields), [["n", "1"], ["n", "2"]]);
});

each("test_transactions_run_whole_or_not_at_all", async (run, sdk) => {
  const key = freshName("k");
  const batch = sdk === "ioredis" ? ioRedis.multi() : nodeRedis.multi();
  const results = await batch.set(key, "1").incr(key).get(key).exec();
  const values = sdk === "ioredis" ? results.map(([, value]) => value) : results;
  assert.deepEqual(values, ["OK", 2, "2"]);
  const own = new Redis({ host, port });
  await own.watch(key);
  await run("SET", key, "changed");
  assert.equal(await own.multi().set(key, "lost").exec(), null);
  await own.quit();
  assert.equal(await run("GET", key), "changed");
});

each("test_messages_reach_subscribers", async (run, sdk) => {
  const channel = freshName("c");
  const got = [];
  const listener = sdk === "ioredis" ? new Redis({ host, port }) : nodeRedis.duplicate();
  if (sdk === "ioredis") {
    listener.on("message", (_, text) => got.push(text));
    listener.on("pmessage", (_pattern, _channel, text) => got.push(text));
    await listener.subscribe(channel);
    await listener.psubscribe(channel + "*");
  } else {
    await listener.connect();
    await listener.subscribe(channel, (text) => got.push(text));
    await listener.pSubscribe(channel + "*", (text) => got.push(text));
  }
  assert.equal(await run("PUBLISH", channel, "hello"), 2);
  for (let waits = 0; got.length < 2 && waits < 100; waits++) {
    await pause(20);
  }
  assert.deepEqual(got, ["hello", "hello"]);
  await (sdk === "ioredis" ? listener.quit() : listener.close());
});

each("test_scripts_run_where_the_data_is", async (run, sdk) => {
  const key = freshName("k");
  const body = "return redis.call('incrby', KEYS[1], ARGV[1])";
  if (sdk === "ioredis" && !ioRedis.add) {
    ioRedis.defineCommand("add", { numberOfKeys: 1, lua: body });
  }
  const add = (by) => (sdk === "ioredis" ? ioRedis.add(key, by) : run("EVAL", body, 1, key, by));
  assert.equal(await add(5), 5);
  assert.equal(await add(6), 11);
  const encode = "return cjson.encode({n = tonumber(redis.call('get', KEYS[1]))})";
  assert.equal(await run("EVAL", encode, 1, key), '{"n":11}');
  await assert.rejects(run("EVAL", "return redis.call('lpush', KEYS[1], 'x')", 1, key), /WRONGTYPE/);
});

each("test_scans_find_all_keys", async (run) => {
  const key = freshName("k");
  const names = Array.from({ length: 300 }, (_, number) => `${key}:${number}`);
  await run("MSET", ...names.flatMap((name) => [name, "x"]));
  const found = new Set();
  let cursor = "0";
  do {
    const [next, keys] = await run("SCAN", cursor, "MATCH", `${key}:*`, "COUNT", 50);
    keys.forEach((name) => found.add(name));
    cursor = String(next);
  } while (cursor !== "0");
  assert.deepEqual([...found].sort(), names.sort());
  const fields = Array.from({ length: 1000 }, (_, number) => [`f${number}`, number]).flat();
  await run("HSET", key, ...fields);
  assert.equal(await run("HLEN", key), 1000);
});

each("test_places_and_counts_are_approximate", async (run) => {
  const key = freshName("k");
  await run("GEOADD", key, 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania");
  assert.equal(await run("GEODIST", key, "Palermo", "Catania"), "166274.1516");
  const near = await run("GEOSEARCH", key, "FROMLONLAT", 15, 37, "BYRADIUS", 100, "km");
  assert.deepEqual(near, ["Catania"]);
  await run("PFADD", key + "p", ...Array.from({ length: 1000 }, (_, number) => `e${number}`));
  const count = await run("PFCOUNT", key + "p");
  assert(count > 970 && count < 1030, String(count));
});

each("test_errors_are_those_of_the_service", async (run) => {
  const key = freshName("k");
  await run("SET", key, "text");
  await assert.rejects(run("LPUSH", key, "x"), /WRONGTYPE Operation against a key/);
  await assert.rejects(run("INCR", key), /value is not an integer or out of range/);
  await assert.rejects(run("NONSENSE"), /unknown command/);
});
