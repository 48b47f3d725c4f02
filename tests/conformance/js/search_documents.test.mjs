// Documents of Search: actions and their results, lookups, counts.

import assert from "node:assert/strict";

import {
  IndexDocumentsBatch,
  SearchIndexingBufferedSender,
} from "@azure/search-documents";

import { HOTELS, documents, hotelIndex, indexes, shown, status } from "./search_target.mjs";
import { refusal, test } from "./target.mjs";

const empty = async () => documents((await indexes.createIndex(hotelIndex())).name);

test("test_documents_are_uploaded_merged_and_deleted", async () => {
  const client = await empty();
  const { results } = await client.uploadDocuments(HOTELS);
  const seen = results.map((it) => [it.key, it.succeeded, it.statusCode]);
  assert.deepEqual(seen, HOTELS.map((hotel) => [hotel.id, true, 201]));
  assert.equal((await client.uploadDocuments([HOTELS[0]])).results[0].statusCode, 200);
  const merged = await client.mergeDocuments([{ id: "1", rating: 4.0, address: { city: "Boston" } }]);
  assert.equal(merged.results[0].statusCode, 200);
  const one = await client.getDocument("1");
  assert.ok(one.rating === 4.0 && one.name === HOTELS[0].name);
  assert.deepEqual(one.address, { city: "Boston", country: "USA" });
  const added = await client.mergeOrUploadDocuments([{ id: "9", name: "New" }]);
  assert.equal(added.results[0].statusCode, 201);
  const deleted = await client.deleteDocuments("id", ["1", "unknown"]);
  assert.deepEqual(deleted.results.map((it) => it.statusCode), [200, 200]);
  assert.equal(await status(() => client.getDocument("1")), 404);
  assert.equal(await client.getDocumentsCount(), 5);
});

test("test_a_batch_answers_for_each_document", async () => {
  const client = await empty();
  const batch = new IndexDocumentsBatch();
  batch.upload([{ id: "1", name: "One" }]);
  batch.merge([{ id: "2", name: "Two" }]);
  batch.upload([{ id: "no good key", name: "Three" }]);
  batch.delete("id", ["4"]);
  const { results } = await client.indexDocuments(batch);
  assert.deepEqual(results.map((it) => it.statusCode), [201, 404, 400, 200]);
  assert.deepEqual(results.map((it) => it.succeeded), [true, false, false, true]);
  assert.ok(results[2].errorMessage.includes("key"));
  assert.equal(await client.getDocumentsCount(), 1);
});

test("test_a_document_is_read_by_its_key_with_selected_fields", async () => {
  const client = await empty();
  await client.uploadDocuments(HOTELS);
  const whole = await client.getDocument("2");
  for (const name of ["id", "name", "tags", "rooms", "address", "rating", "parking", "vector"]) {
    assert.deepEqual(whole[name], HOTELS[1][name], name);
  }
  assert.deepEqual({ ...(await client.getDocument("2", { selectedFields: ["id", "rating"] })) }, { id: "2", rating: 4.8 });
  const inner = await client.getDocument("2", { selectedFields: ["address/city"] });
  assert.deepEqual({ ...inner }, { address: { city: "Sarasota" } });
  assert.equal(await status(() => client.getDocument("2", { selectedFields: ["nothing"] })), 400);
});

test("test_counts_and_lookups_see_every_answered_write", async () => {
  const client = await empty();
  for (let number = 0; number < 30; number += 1) {
    await client.uploadDocuments([{ id: String(number), stories: number }]);
    assert.equal(await client.getDocumentsCount(), number + 1);
    assert.equal((await client.getDocument(String(number))).stories, number);
  }
});

test("test_a_buffered_sender_writes_all", async () => {
  const client = await empty();
  const sender = new SearchIndexingBufferedSender(client, (document) => document.id, { autoFlush: false });
  const many = Array.from({ length: 2000 }, (_, number) => ({ id: String(number), stories: number }));
  await sender.uploadDocuments(many);
  await sender.flush();
  await sender.dispose();
  assert.equal(await client.getDocumentsCount(), 2000);
  await shown(client, 2000);
});

test("test_a_document_that_does_not_fit_is_refused", async () => {
  const client = await empty();
  for (const [wrong, what] of [
    [{ id: "1", rating: "high" }, "rating"],
    [{ id: "1", nothing: 1 }, "nothing"],
    [{ id: "1", tags: "one" }, "tags"],
    [{ name: "no key" }, "key"],
    [{ id: "1", vector: [1.0] }, "vector"],
  ]) {
    const error = await refusal(() => client.uploadDocuments([{ id: "0" }, wrong]));
    assert.ok(error.statusCode === 400 && error.message.includes(what), what);
  }
  assert.equal(await client.getDocumentsCount(), 0);
});
