// Indexes of Search: created, read, changed, listed, deleted, and what their analyzers make of texts.

import assert from "node:assert/strict";

import { all, documents, fresh, hotelIndex, hotels, indexes, status } from "./search_target.mjs";
import { refusal, test } from "./target.mjs";

const plain = (name = fresh(), fields = []) => ({
  name,
  fields: [{ name: "id", type: "Edm.String", key: true }, ...fields],
});
const text = (name, more = {}) => ({ name, type: "Edm.String", searchable: true, ...more });

test("test_an_index_is_created_read_listed_and_deleted", async () => {
  const made = await indexes.createIndex(hotelIndex());
  const read = await indexes.getIndex(made.name);
  const fields = Object.fromEntries(read.fields.map((field) => [field.name, field]));
  assert.ok(fields.id.key && fields.name.searchable && !fields.rating.searchable);
  assert.equal(fields.description.analyzerName, "en.lucene");
  assert.deepEqual(fields.address.fields.map((field) => field.name), ["city", "country"]);
  assert.equal(fields.vector.vectorSearchDimensions, 3);
  assert.deepEqual(read.suggesters[0].sourceFields, ["name", "category"]);
  assert.ok(made.eTag);
  assert.equal(read.eTag, made.eTag);
  assert.ok((await all(indexes.listIndexesNames())).includes(made.name));
  assert.ok((await all(indexes.listIndexes())).some((index) => index.name === made.name));
  await indexes.deleteIndex(made.name);
  assert.equal(await status(() => indexes.getIndex(made.name)), 404);
  assert.equal(await status(() => documents(made.name).getDocumentsCount()), 404);
});

test("test_an_index_that_exists_is_not_created_again", async () => {
  const index = await indexes.createIndex(plain());
  assert.equal(await status(() => indexes.createIndex(plain(index.name))), 409);
});

test("test_fields_can_be_added_and_not_changed", async () => {
  const index = await indexes.createIndex(plain(fresh(), [text("text")]));
  const client = documents(index.name);
  await client.uploadDocuments([{ id: "1", text: "one" }]);
  index.fields.push(text("more"));
  await indexes.createOrUpdateIndex(index);
  await client.uploadDocuments([{ id: "2", more: "two" }]);
  const names = (await indexes.getIndex(index.name)).fields.map((field) => field.name);
  assert.deepEqual(names, ["id", "text", "more"]);
  assert.equal((await client.getDocument("1")).more, null);
  index.fields[1] = { name: "text", type: "Edm.Int32" };
  assert.equal(await status(() => indexes.createOrUpdateIndex(index)), 400);
});

/** The SDK reads the ETag of an index as `eTag`, and sends `etag`. */
const tagged = (index) => ({ ...index, etag: index.eTag });

test("test_an_etag_guards_an_index", async () => {
  const first = tagged(await indexes.createIndex(plain(fresh(), [text("text")])));
  const second = tagged(await indexes.getIndex(first.name));
  second.fields.push(text("more"));
  const onlyIfUnchanged = true;
  const changed = tagged(await indexes.createOrUpdateIndex(second, { onlyIfUnchanged }));
  assert.notEqual(changed.etag, first.etag);
  first.fields.push(text("other"));
  assert.equal(await status(() => indexes.createOrUpdateIndex(first, { onlyIfUnchanged })), 412);
  assert.equal(await status(() => indexes.deleteIndex(first, { onlyIfUnchanged })), 412);
  await indexes.deleteIndex(changed, { onlyIfUnchanged });
});

test("test_what_is_wrong_with_a_definition_is_said", async () => {
  const withoutKey = await refusal(() => indexes.createIndex({ name: fresh(), fields: [text("text")] }));
  assert.ok(withoutKey.statusCode === 400 && withoutKey.message.includes("key"));
  assert.equal(await status(() => indexes.createIndex(plain("Bad_Name!"))), 400);
  const unknown = plain(fresh(), [text("text", { analyzerName: "no.such" })]);
  const error = await refusal(() => indexes.createIndex(unknown));
  assert.ok(error.statusCode === 400 && error.message.includes("no.such"));
});

test("test_an_analyzer_says_its_tokens", async () => {
  const analyzers = [
    {
      odatatype: "#Microsoft.Azure.Search.CustomAnalyzer",
      name: "mine",
      tokenizerName: "whitespace",
      tokenFilters: ["lowercase", "asciifolding"],
    },
  ];
  const index = { ...plain(fresh(), [text("text", { analyzerName: "mine" })]), analyzers };
  await indexes.createIndex(index);
  const say = async (how) => (await indexes.analyzeText(index.name, how)).tokens.map((token) => token.token);
  assert.deepEqual(await say({ text: "The Quick-Fox", analyzerName: "standard.lucene" }), ["the", "quick", "fox"]);
  assert.deepEqual(await say({ text: "The Quick-Fox", analyzerName: "mine" }), ["the", "quick-fox"]);
  assert.deepEqual(await say({ text: "running dogs", analyzerName: "en.lucene" }), ["run", "dog"]);
  const { tokens } = await indexes.analyzeText(index.name, { text: "one two", analyzerName: "whitespace" });
  const places = tokens.map(({ startOffset, endOffset, position }) => [startOffset, endOffset, position]);
  assert.deepEqual(places, [[0, 3, 0], [4, 7, 1]]);
});

test("test_statistics_count_documents", async () => {
  const client = await hotels();
  const statistics = await indexes.getIndexStatistics(client.indexName);
  assert.equal(statistics.documentCount, 5);
  assert.ok(statistics.storageSize > 0);
});
