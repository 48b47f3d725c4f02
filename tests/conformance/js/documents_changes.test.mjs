// Documents: the change feed in both modes, and time to live.

import assert from "node:assert/strict";

import { ChangeFeedMode, ChangeFeedStartFrom } from "@azure/cosmos";

import { cosmos, everything, ids, make, settle, sorted, status } from "./documents_target.mjs";
import { test } from "./target.mjs";

/** Everything that has changed since a position, and the next position. */
async function changes(container, changeFeedStartFrom, changeFeedMode) {
  const reader = container.items.getChangeFeedIterator({ changeFeedStartFrom, changeFeedMode });
  const found = [];
  let position;
  for (let quiet = 0; quiet < 2; ) {
    const page = await reader.readNext();
    position = page.continuationToken;
    found.push(...(page.result ?? []));
    quiet = page.statusCode === 304 ? quiet + 1 : 0;
  }
  return [found, position];
}

const beginning = ChangeFeedStartFrom.Beginning();

test("test_the_change_feed_has_every_change", async () => {
  const container = await make();
  for (let n = 0; n < 5; n++) {
    await container.items.create({ id: `${n}`, pk: `${n % 2}`, n: 0 });
  }
  await container.items.upsert({ id: "0", pk: "0", n: 1 });
  const [found] = await changes(container, beginning);
  assert.deepEqual(sorted(ids(found)), ["0", "1", "2", "3", "4"]);
  assert.equal(found.find((row) => row.id === "0").n, 1);
});

test("test_a_reader_goes_on_where_it_was", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a" });
  const [found, position] = await changes(container, beginning);
  assert.deepEqual(ids(found), ["1"]);
  await container.items.create({ id: "2", pk: "a" });
  await container.items.upsert({ id: "1", pk: "a", n: 1 });
  const [later] = await changes(container, ChangeFeedStartFrom.Continuation(position));
  assert.deepEqual(sorted(ids(later)), ["1", "2"]);
});

test("test_changes_of_one_partition_key_are_in_order", async () => {
  const container = await make();
  for (let n = 0; n < 6; n++) {
    await container.items.create({ id: `${n}`, pk: n % 2 ? "a" : "b" });
  }
  const [found] = await changes(container, ChangeFeedStartFrom.Beginning("a"));
  assert.deepEqual(ids(found), ["1", "3", "5"]);
});

test("test_a_reader_may_begin_now", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a" });
  assert.deepEqual((await changes(container, ChangeFeedStartFrom.Now()))[0], []);
});

test("test_the_feed_goes_on_over_a_split", async () => {
  const container = await make();
  for (let n = 0; n < 10; n++) {
    await container.items.create({ id: `${n}`, pk: `${n}` });
  }
  const [first, position] = await changes(container, beginning);
  assert.equal(first.length, 10);
  const { resource: offer } = await container.readOffer();
  await cosmos.offer(offer.id).replace({ ...offer, content: { ...offer.content, offerThroughput: 30000 } });
  await settle(container);
  for (let n = 10; n < 20; n++) {
    await container.items.create({ id: `${n}`, pk: `${n}` });
  }
  const [found] = await changes(container, ChangeFeedStartFrom.Continuation(position));
  assert.deepEqual(sorted(ids(found)), Array.from({ length: 10 }, (_, n) => `${n + 10}`));
});

test("test_every_version_and_deletion_is_read", async () => {
  const kept = await make({ changeFeedPolicy: { retentionDuration: 10 } });
  const mode = ChangeFeedMode.AllVersionsAndDeletes;
  const [none, position] = await changes(kept, ChangeFeedStartFrom.Now(), mode);
  assert.deepEqual(none, []);
  await kept.items.create({ id: "1", pk: "a", n: 1 });
  await kept.items.upsert({ id: "1", pk: "a", n: 2 });
  await kept.item("1", "a").delete();
  const [found] = await changes(kept, ChangeFeedStartFrom.Continuation(position), mode);
  assert.deepEqual(found.map((row) => row.metadata.operationType), ["create", "replace", "delete"]);
  assert.deepEqual(found.map((row) => row.current?.n), [1, 2, undefined]);
  assert.equal(found[2].previous.n, 2);
  // What is not kept cannot be read.
  const container = await make();
  assert.equal(await status(() => changes(container, ChangeFeedStartFrom.Now(), mode)), 400);
});

test("test_items_expire", async () => {
  const container = await make({ defaultTtl: -1 });
  await container.items.create({ id: "1", pk: "a", ttl: 1 });
  await container.items.create({ id: "2", pk: "a" });
  const until = Date.now() + 10_000;
  while (Date.now() < until && (await everything(container)).length > 1) {
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.deepEqual(ids(await everything(container)), ["2"]);
});
