// Documents: physical partitions, their splits, and request units.

import assert from "node:assert/strict";

import { CosmosClient } from "@azure/cosmos";

import { allOf, cosmos, database, endpoint, ids, key, make, settle, sorted } from "./documents_target.mjs";
import { refusal, test } from "./target.mjs";

const rangesOf = async (container) => (await container.readPartitionKeyRanges().fetchAll()).resources;
const count = (n) => Array.from({ length: n }, (_, one) => `${one}`);

async function setThroughput(container, units) {
  const { resource: offer } = await container.readOffer();
  const content = { ...offer.content, offerThroughput: units };
  return (await cosmos.offer(offer.id).replace({ ...offer, content })).resource;
}

test("test_throughput_decides_how_many_ranges_there_are", async () => {
  for (const [throughput, expected] of [[400, 1], [12000, 2], [30000, 5]]) {
    assert.equal((await rangesOf(await make({ throughput }))).length, expected);
  }
});

test("test_ranges_tile_the_space_of_keys", async () => {
  const ranges = await rangesOf(await make({ throughput: 30000 }));
  assert.ok(ranges[0].minInclusive === "" && ranges.at(-1).maxExclusive === "FF");
  for (let n = 1; n < ranges.length; n++) {
    assert.equal(ranges[n].minInclusive, ranges[n - 1].maxExclusive);
  }
});

test("test_a_range_is_queried_by_itself", async () => {
  const container = await make({ throughput: 12000 });
  for (const id of count(40)) {
    await container.items.create({ id, pk: id });
  }
  const parts = [];
  for (const range of await rangesOf(container)) {
    const initialHeaders = { "x-ms-documentdb-partitionkeyrangeid": range.id };
    parts.push(ids(await allOf(container, "SELECT * FROM c", { initialHeaders })));
  }
  assert.ok(parts.length === 2 && parts.every((part) => part.length > 0));
  assert.deepEqual(sorted(parts.flat()), sorted(count(40)));
});

test("test_more_throughput_splits_ranges_and_nothing_is_lost", async () => {
  const container = await make();
  for (const id of count(60)) {
    await container.items.create({ id, pk: id });
  }
  const [before] = await rangesOf(container);
  await setThroughput(container, 30000);
  await settle(container);
  const ranges = await rangesOf(container);
  assert.equal(ranges.length, 5);
  assert.ok(ranges.every((range) => range.parents.includes(before.id)));
  assert.deepEqual(sorted(ids(await allOf(container, "SELECT * FROM c"))), sorted(count(60)));
  assert.equal((await container.item("7", "7").read()).resource.id, "7");
});

test("test_a_split_under_load_reaches_no_caller", async () => {
  const container = await make();
  const written = [];
  let stop = false;
  const work = async (name) => {
    for (let n = 0; !stop; n++) {
      const id = `${name}-${n}`;
      await container.items.create({ id, pk: id });
      written.push(id);
      assert.equal((await container.item(id, id).read()).resource.id, id);
    }
  };
  const workers = ["a", "b", "c"].map(work);
  const until = async (items) => {
    while (written.length < items) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await until(20);
  assert.equal((await rangesOf(container)).length, 1);
  await setThroughput(container, 30000);
  await settle(container);
  await until(100);
  stop = true;
  await Promise.all(workers);
  assert.equal((await rangesOf(container)).length, 5);
  assert.deepEqual(sorted(ids(await allOf(container, "SELECT * FROM c"))), sorted(written));
});

test("test_a_change_of_throughput_is_pending_until_its_ranges_are_there", async () => {
  const container = await make();
  const replaced = await setThroughput(container, 30000);
  assert.equal(replaced.content.isOfferReplacePending, true);
  assert.equal(replaced.content.offerThroughput, 30000);
  await settle(container);
  assert.equal((await rangesOf(container)).length, 5);
  // What the ranges can give is given at once.
  assert.equal((await setThroughput(container, 20000)).content.isOfferReplacePending, false);
});

test("test_costs_follow_the_size_of_items", async () => {
  const container = await make();
  const small = (await container.items.create({ id: "1", pk: "a" })).requestCharge;
  const large = (await container.items.create({ id: "2", pk: "a", text: "x".repeat(100 * 1024) })).requestCharge;
  const readSmall = (await container.item("1", "a").read()).requestCharge;
  const readLarge = (await container.item("2", "a").read()).requestCharge;
  assert.ok(small > 5 && small < 10 && large > 45, `${small} ${large}`);
  assert.ok(readSmall === 1 && readLarge > 9.5 && readLarge < 10.5, `${readSmall} ${readLarge}`);
});

test("test_a_container_over_its_budget_refuses_and_says_when_to_come", async () => {
  const container = await make();
  const retryOptions = { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 1, maxWaitTimeInSeconds: 0 };
  const client = new CosmosClient({ endpoint, key, connectionPolicy: { retryOptions } });
  const hasty = client.database(database.id).container(container.id);
  const big = { id: "1", pk: "a", text: "x".repeat(500 * 1024) };
  const refused = await refusal(async () => {
    for (let n = 0; n < 20; n++) {
      await hasty.items.upsert(big);
    }
  });
  assert.ok(refused.code === 429 && Number(refused.substatus) === 3200, `${refused.code} ${refused.substatus}`);
  assert.ok(refused.retryAfterInMs > 0 || Number(refused.headers["x-ms-retry-after-ms"]) > 0);
  // The neighbour does not feel it.
  await (await make()).items.create({ id: "1", pk: "a" });
});

test("test_sessions_go_on", async () => {
  const container = await make();
  const made = await container.items.create({ id: "1", pk: "a" });
  const token = made.headers["x-ms-session-token"];
  assert.ok(token.includes("#") && made.headers["x-ms-content-path"]);
  assert.equal((await container.item("1", "a").read({ sessionToken: token })).resource.id, "1");
});
