// Lists of blobs: prefixes, folders, pages, what they include.

import assert from "node:assert/strict";

import { code, freshContainer, names, put } from "./blobs.mjs";
import { all, test } from "./target.mjs";

const NAMES = ["a", "b/1", "b/2", "b/c/1", "d", "e/1"];

async function filled() {
  const container = await freshContainer();
  for (const name of NAMES) {
    await put(container, name, name);
  }
  return container;
}

const pageNames = (page) => [
  ...(page.segment.blobPrefixes ?? []).map((item) => item.name),
  ...page.segment.blobItems.map((item) => item.name),
];

test("test_blobs_are_listed_in_order", async () => {
  const listed = await all((await filled()).listBlobsFlat());
  assert.deepEqual(listed.map((item) => item.name), NAMES);
  const { properties } = listed[0];
  assert.equal(properties.contentLength, 1);
  assert(properties.etag && properties.lastModified && properties.createdOn);
  assert(properties.blobType === "BlockBlob" && properties.contentMD5);
  assert(properties.accessTier === "Hot" && properties.leaseState === "available");
});

test("test_a_prefix_narrows_the_list", async () => {
  const container = await filled();
  const found = (prefix) => names(container.listBlobsFlat({ prefix }));
  assert.deepEqual(await found("b/"), ["b/1", "b/2", "b/c/1"]);
  assert.deepEqual(await found("x"), []);
});

test("test_folders_are_listed_once", async () => {
  const container = await filled();
  const walked = async (delimiter, terms) =>
    (await names(container.listBlobsByHierarchy(delimiter, terms))).sort();
  assert.deepEqual(await walked("/"), ["a", "b/", "d", "e/"]);
  assert.deepEqual(await walked("/", { prefix: "b/" }), ["b/1", "b/2", "b/c/"]);
  assert.deepEqual(await walked("c"), ["a", "b/1", "b/2", "b/c", "d", "e/1"]);
});

for (const size of [1, 2, 4]) {
  test(`test_pages_add_up_to_the_list[${size}]`, async () => {
    const pages = await all((await filled()).listBlobsFlat().byPage({ maxPageSize: size }));
    const found = pages.map(pageNames);
    assert.deepEqual(found.flat(), NAMES);
    assert(found.every((page) => page.length <= size));
  });
}

test("test_pages_of_folders_add_up_to_the_list", async () => {
  const list = (await filled()).listBlobsByHierarchy("/");
  const pages = await all(list.byPage({ maxPageSize: 1 }));
  assert.deepEqual(pages.map(pageNames).flat(), ["a", "b/", "d", "e/"]);
});

test("test_a_list_includes_what_is_asked_for", async () => {
  const container = await freshContainer();
  await put(container, "b", "x", { metadata: { m: "1" }, tags: { t: "2" } });
  const [plain] = await all(container.listBlobsFlat());
  assert.deepEqual([plain.metadata, plain.tags], [undefined, undefined]);
  const [full] = await all(container.listBlobsFlat({ includeMetadata: true, includeTags: true }));
  assert.deepEqual([full.metadata, full.tags], [{ m: "1" }, { t: "2" }]);
  assert.equal(full.properties.tagCount, 1);
});

test("test_a_list_of_nothing_is_empty", async () => {
  const container = await freshContainer();
  assert.deepEqual(await names(container.listBlobsFlat()), []);
  assert.deepEqual(await names(container.listBlobsByHierarchy("/")), []);
});

test("test_many_blobs_are_listed_page_by_page", async () => {
  const container = await freshContainer();
  const expected = Array.from({ length: 250 }, (_, n) => String(n).padStart(4, "0"));
  await Promise.all(expected.map((name) => put(container, name, "")));
  const pages = await all(container.listBlobsFlat().byPage({ maxPageSize: 100 }));
  const found = pages.map(pageNames);
  assert.deepEqual(found.map((page) => page.length), [100, 100, 50]);
  assert.deepEqual(found.flat(), expected);
});

test("test_a_list_has_at_least_one_entry_in_a_page", async () => {
  const container = await filled();
  const refused = () => all(container.listBlobsFlat().byPage({ maxPageSize: 0 }));
  assert.equal(await code(refused), "OutOfRangeQueryParameterValue");
});
