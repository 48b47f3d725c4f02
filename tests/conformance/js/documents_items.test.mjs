// Documents: items, conditions on their etags, feeds and partial updates.

import assert from "node:assert/strict";

import { PartitionKeyBuilder } from "@azure/cosmos";

import { everything, ids, make, sorted, status } from "./documents_target.mjs";
import { test } from "./target.mjs";

test("test_an_item_is_created_read_replaced_and_deleted", async () => {
  const container = await make();
  const deep = { list: [1, 2.5, null, true, "ä"] };
  const { resource: made } = await container.items.create({ id: "1", pk: "a", n: 1, deep });
  assert.ok(made._etag && made._rid && made._ts > 0);
  const item = container.item("1", "a");
  assert.deepEqual((await item.read()).resource.deep, deep);
  const { resource: replaced } = await item.replace({ ...made, n: 2 });
  assert.ok(replaced.n === 2 && replaced._etag !== made._etag && replaced._rid === made._rid);
  await item.delete();
  assert.equal((await item.read()).statusCode, 404);
  assert.equal(await status(() => item.delete()), 404);
});

test("test_an_item_is_created_once", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a" });
  assert.equal(await status(() => container.items.create({ id: "1", pk: "a" })), 409);
  await container.items.create({ id: "1", pk: "b" });
});

test("test_an_upsert_creates_or_replaces", async () => {
  const container = await make();
  assert.equal((await container.items.upsert({ id: "1", pk: "a", n: 1 })).statusCode, 201);
  const second = await container.items.upsert({ id: "1", pk: "a", n: 2 });
  assert.ok(second.statusCode === 200 && second.resource.n === 2);
  assert.equal((await container.item("1", "a").read()).resource.n, 2);
});

test("test_a_missing_item_cannot_be_replaced", async () => {
  const container = await make();
  assert.equal(await status(() => container.item("1", "a").replace({ id: "1", pk: "a" })), 404);
});

for (const key of ["text", "", 5, -1.5, true, false, null]) {
  test(`test_a_partition_key_may_be_any_plain_value[${JSON.stringify(key)}]`, async () => {
    const container = await make();
    await container.items.upsert({ id: "1", pk: key, mark: `${key}` });
    assert.equal((await container.item("1", key).read()).resource.mark, `${key}`);
  });
}

test("test_an_item_without_its_key_has_an_undefined_one", async () => {
  const container = await make();
  await container.items.create({ id: "1" });
  assert.equal((await container.item("1", undefined).read()).resource.id, "1");
});

test("test_etags_guard_changes", async () => {
  const container = await make();
  const { resource: made } = await container.items.create({ id: "1", pk: "a", n: 0 });
  const item = container.item("1", "a");
  const { resource: changed } = await item.replace({ id: "1", pk: "a", n: 1 });
  const guarded = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
  assert.equal(await status(() => item.replace({ id: "1", pk: "a" }, guarded(made._etag))), 412);
  assert.equal(await status(() => item.delete(guarded(made._etag))), 412);
  await item.replace({ id: "1", pk: "a", n: 2 }, guarded(changed._etag));
});

for (const [name, body] of [["no id", { id: "" }], ["no time", { id: "1", ttl: 0 }], ["no number", { id: "1", ttl: "x" }]]) {
  test(`test_bad_items_are_refused[${name}]`, async () => {
    const container = await make();
    const options = { disableAutomaticIdGeneration: true };
    const refused = await status(() => container.items.create({ pk: "a", ...body }, options));
    assert.ok(refused === 400 || refused === undefined, refused);
  });
}

test("test_an_item_over_two_megabytes_is_refused", async () => {
  const container = await make();
  const text = "x".repeat(2 * 1024 * 1024);
  assert.equal(await status(() => container.items.create({ id: "1", pk: "a", text })), 413);
});

test("test_all_items_are_listed_page_by_page", async () => {
  const container = await make();
  for (let n = 0; n < 7; n++) {
    await container.items.create({ id: `${n}`, pk: `${n % 3}` });
  }
  const pages = [];
  for await (const page of container.items.readAll({ maxItemCount: 2 }).getAsyncIterator()) {
    pages.push(page.resources);
  }
  assert.deepEqual(sorted(ids(pages.flat())), ["0", "1", "2", "3", "4", "5", "6"]);
  assert.ok(pages.every((page) => page.length <= 2));
});

test("test_unique_keys_hold_within_a_partition_key", async () => {
  const container = await make({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  await container.items.create({ id: "1", pk: "a", email: "x" });
  assert.equal(await status(() => container.items.create({ id: "2", pk: "a", email: "x" })), 409);
  await container.items.create({ id: "2", pk: "b", email: "x" });
});

for (const [name, operation, expected] of [
  ["add", { op: "add", path: "/b", value: 1 }, { n: 1, list: [1, 2], b: 1 }],
  ["set", { op: "set", path: "/list/0", value: 9 }, { n: 1, list: [9, 2] }],
  ["append", { op: "add", path: "/list/-", value: 3 }, { n: 1, list: [1, 2, 3] }],
  ["replace", { op: "replace", path: "/n", value: "x" }, { n: "x", list: [1, 2] }],
  ["remove", { op: "remove", path: "/n" }, { list: [1, 2] }],
  ["incr", { op: "incr", path: "/n", value: 2.5 }, { n: 3.5, list: [1, 2] }],
  ["move", { op: "move", from: "/n", path: "/m" }, { m: 1, list: [1, 2] }],
]) {
  test(`test_an_item_is_patched[${name}]`, async () => {
    const container = await make();
    await container.items.create({ id: "1", pk: "a", n: 1, list: [1, 2] });
    const { resource: patched } = await container.item("1", "a").patch([operation]);
    const own = Object.fromEntries(Object.entries(patched).filter(([key]) => !key.startsWith("_")));
    assert.deepEqual(own, { id: "1", pk: "a", ...expected });
  });
}

test("test_a_patch_has_a_condition", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a", n: 1 });
  const body = { operations: [{ op: "incr", path: "/n", value: 1 }], condition: "from c where c.n = 1" };
  assert.equal((await container.item("1", "a").patch(body)).resource.n, 2);
  assert.equal(await status(() => container.item("1", "a").patch(body)), 412);
});

test("test_id_and_partition_key_cannot_be_patched", async () => {
  const container = await make();
  await container.items.create({ id: "1", pk: "a" });
  const item = container.item("1", "a");
  for (const path of ["/id", "/pk", "/_ts"]) {
    assert.equal(await status(() => item.patch([{ op: "set", path, value: "x" }])), 400);
  }
  assert.equal(await status(() => item.patch([{ op: "remove", path: "/none" }])), 400);
});

test("test_hierarchical_keys_find_items_by_prefix", async () => {
  const container = await make({ partitionKey: { paths: ["/country", "/city"], kind: "MultiHash", version: 2 } });
  for (const [country, city] of [["de", "berlin"], ["de", "bonn"], ["fr", "paris"]]) {
    await container.items.create({ id: city, country, city });
  }
  const key = new PartitionKeyBuilder().addValue("de").addValue("bonn").build();
  assert.equal((await container.item("bonn", key).read()).resource.city, "bonn");
  const found = await container.items.query("SELECT * FROM c", { partitionKey: ["de"] }).fetchAll();
  assert.deepEqual(sorted(ids(found.resources)), ["berlin", "bonn"]);
});

test("test_all_items_of_a_partition_key_are_deleted", async () => {
  const container = await make();
  for (let n = 0; n < 5; n++) {
    await container.items.create({ id: `${n}`, pk: n < 4 ? "a" : "b" });
  }
  await container.deleteAllItemsForPartitionKey("a");
  assert.deepEqual(ids(await everything(container)), ["4"]);
});
