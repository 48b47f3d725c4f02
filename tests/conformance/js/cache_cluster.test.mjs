// The cache as a cluster judged by node-redis and ioredis: keys in all slots, pipelines, and the map of slots.

import assert from "node:assert/strict";
import { after } from "node:test";

import { Cluster, Redis } from "ioredis";
import { createCluster } from "redis";

import { freshName, target, test } from "./target.mjs";

const nodes = [1, 2].map((number) => {
  const [host, port] = target.endpoints[`cache-node-${number}`].split("://")[1].split(":");
  return { host, port: Number(port) };
});

const nodeRedis = createCluster({ rootNodes: [{ socket: nodes[0] }] });
await nodeRedis.connect();
const ioRedis = new Cluster([nodes[0]]);
after(async () => {
  await nodeRedis.close();
  await ioRedis.quit();
});

/** Commands as words, sent to the node that has the key. */
const send = {
  "node-redis": (key, ...words) => nodeRedis.sendCommand(key, false, words.map(String)),
  ioredis: (key, name, ...words) => ioRedis[name.toLowerCase()](...words),
};

function each(name, body) {
  for (const sdk of Object.keys(send)) {
    test(`${name}[${sdk}]`, () => body(send[sdk]));
  }
}

each("test_keys_of_all_slots_are_set_and_read", async (run) => {
  const key = freshName("k");
  for (let number = 0; number < 200; number++) {
    assert.equal(await run(`${key}:${number}`, "SET", `${key}:${number}`, number), "OK");
  }
  for (let number = 0; number < 200; number++) {
    assert.equal(await run(`${key}:${number}`, "GET", `${key}:${number}`), String(number));
  }
  assert.equal(await run(`${key}:1`, "DEL", `${key}:1`), 1);
});

test("test_a_pipeline_over_one_tag_is_answered_in_order", async () => {
  const key = freshName("k");
  const pipeline = ioRedis.pipeline();
  pipeline.rpush(`{${key}}:l`, "a", "b");
  pipeline.lrange(`{${key}}:l`, 0, -1);
  pipeline.incr(`{${key}}:n`);
  const replies = await pipeline.exec();
  assert.deepEqual(replies.map(([error, reply]) => error ?? reply), [2, ["a", "b"], 1]);
  const multi = nodeRedis.multi();
  multi.rPush(`{${key}}:m`, ["a", "b"]);
  multi.lRange(`{${key}}:m`, 0, -1);
  multi.incr(`{${key}}:n`);
  assert.deepEqual(await multi.exec(), [2, ["a", "b"], 2]);
});

test("test_commands_over_several_slots_are_refused", async () => {
  const key = freshName("k");
  const node = new Redis(nodes[0]);
  await assert.rejects(node.call("MSET", `{a}${key}`, 1, `{b}${key}`, 2), /CROSSSLOT/);
  await node.quit();
});

each("test_a_script_runs_where_its_key_is", async (run) => {
  const key = freshName("k");
  const body = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
  assert.equal(await run(key, "EVAL", body, 1, key, 5), 5);
  assert.equal(await run(key, "EVAL", body, 1, key, 2), 7);
});

test("test_the_map_covers_every_slot", async () => {
  const node = new Redis(nodes[0]);
  const covered = new Set();
  for (const [first, last] of await node.call("CLUSTER", "SLOTS")) {
    for (let slot = first; slot <= last; slot++) {
      covered.add(slot);
    }
  }
  assert.equal(covered.size, 16_384);
  assert.match(await node.call("CLUSTER", "INFO"), /cluster_state:ok/);
  await node.quit();
});
