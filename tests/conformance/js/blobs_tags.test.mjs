// Tags: set, read, searched for, and as conditions.

import assert from "node:assert/strict";

import { blobs, code, freshContainer, names, put, status, text } from "./blobs.mjs";
import { all, freshName, test } from "./target.mjs";

test("test_tags_are_kept_and_replaced", async () => {
  const blob = await put(await freshContainer(), "b", "x", { tags: { one: "1", two: "2" } });
  const tags = async () => (await blob.getTags()).tags;
  assert.deepEqual(await tags(), { one: "1", two: "2" });
  const { etag, tagCount } = await blob.getProperties();
  assert.equal(tagCount, 2);
  await blob.setTags({ three: "3" });
  assert.deepEqual(await tags(), { three: "3" });
  assert.equal((await blob.getProperties()).etag, etag);
  await blob.setTags({});
  assert.deepEqual(await tags(), {});
});

for (const [id, tags] of [
  ["eleven", Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`k${n}`, "v"]))],
  ["long key", { ["k".repeat(129)]: "v" }],
  ["long value", { k: "v".repeat(257) }],
  ["bad letter", { k: "a<b" }],
]) {
  test(`test_tags_have_limits[${id}]`, async () => {
    const blob = await put(await freshContainer(), "b", "x");
    assert.equal(await status(() => blob.setTags(tags)), 400);
  });
}

test("test_blobs_are_found_by_their_tags", async () => {
  const container = await freshContainer();
  const mark = freshName("");
  for (const [name, project] of [["a", "x"], ["b", "y"], ["c", "x"]]) {
    await put(container, name, "", { tags: { mark, project } });
  }
  const found = await all(blobs.findBlobsByTags(`"mark" = '${mark}' AND "project" = 'x'`));
  const { containerName } = container;
  assert.deepEqual(
    found.map((item) => [item.name, item.containerName]),
    [["a", containerName], ["c", containerName]],
  );
  assert.deepEqual(found[0].tags, { mark, project: "x" });
  const inside = container.findBlobsByTags(`"mark" = '${mark}' AND "project" > 'x'`);
  assert.deepEqual(await names(inside), ["b"]);
  const named = `@container = '${containerName}' AND "mark" = '${mark}'`;
  assert.deepEqual(await names(blobs.findBlobsByTags(named)), ["a", "b", "c"]);
});

test("test_a_search_gives_back_the_tags_that_it_names", async () => {
  const container = await freshContainer();
  const mark = freshName("");
  await put(container, "b", "", { tags: { mark, one: "1", two: "2" } });
  const found = await all(blobs.findBlobsByTags(`"mark" = '${mark}' AND "two" > '1'`));
  assert.deepEqual(found.map((item) => item.tags), [{ mark, two: "2" }]);
});

test("test_a_search_names_ten_tags_at_the_most", async () => {
  const query = (count) => Array.from({ length: count }, (_, n) => `"k${n}" = 'v'`).join(" AND ");
  assert.deepEqual(await all(blobs.findBlobsByTags(query(10))), []);
  assert.equal(await status(() => all(blobs.findBlobsByTags(query(11)))), 400);
});

test("test_a_condition_knows_no_container", async () => {
  const container = await freshContainer();
  const blob = await put(container, "b", "x", { tags: { a: "b" } });
  const tagConditions = `@container = '${container.containerName}' AND "a" = 'b'`;
  const refused = () => blob.download(0, undefined, { conditions: { tagConditions } });
  assert.equal(await code(refused), "InvalidHeaderValue");
});

test("test_pages_of_a_search_lose_nothing", async () => {
  const container = await freshContainer();
  const mark = freshName("");
  for (let n = 0; n < 10; n += 1) {
    await put(container, `b${n}`, "", { tags: { mark: n % 2 ? mark : "other" } });
  }
  const pages = blobs.findBlobsByTags(`"mark" = '${mark}'`).byPage({ maxPageSize: 2 });
  const found = (await all(pages)).flatMap((page) => page.blobs.map((item) => item.name));
  assert.deepEqual(found, ["b1", "b3", "b5", "b7", "b9"]);
});

for (const query of ["a", '"a" = b', "\"a\" ~ 'b'"]) {
  test(`test_a_bad_search_is_refused[${query}]`, async () => {
    assert.equal(await status(() => all(blobs.findBlobsByTags(query))), 400);
  });
}

test("test_tags_are_conditions", async () => {
  const blob = await put(await freshContainer(), "b", "x", { tags: { state: "done", n: "5" } });
  const when = (tagConditions) => ({ conditions: { tagConditions } });
  assert.equal(await text(blob, 0, undefined, when("\"state\" = 'done'")), "x");
  await blob.setMetadata({ a: "b" }, when("\"n\" > '4' AND \"state\" <> 'open'"));
  for (const query of ["\"state\" = 'open'", "\"missing\" = 'x'"]) {
    const refused = () => blob.setMetadata({ c: "d" }, when(query));
    assert.equal(await code(refused), "ConditionNotMet");
  }
  await blob.delete(when("\"state\" = 'open' OR \"n\" = '5'"));
});
