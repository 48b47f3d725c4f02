// The service of Search: statistics, aliases, synonym maps, keys, and what it does not have.

import assert from "node:assert/strict";

import { AzureKeyCredential, SearchIndexClient, SearchIndexerClient } from "@azure/search-documents";

import { all, documents, endpoint, fresh, hotelIndex, hotels, ids, indexes, key, options, status } from "./search_target.mjs";
import { refusal, test } from "./target.mjs";

test("test_service_statistics_count_what_there_is", async () => {
  const before = await indexes.getServiceStatistics();
  await hotels();
  const after = await indexes.getServiceStatistics();
  assert.equal(after.counters.indexCounter.usage, before.counters.indexCounter.usage + 1);
  assert.equal(after.counters.documentCounter.usage, before.counters.documentCounter.usage + 5);
  assert.equal(after.limits.maxFieldsPerIndex, 1000);
});

test("test_aliases_stand_for_indexes", async () => {
  const client = await hotels();
  const name = fresh("a");
  await indexes.createAlias({ name, indexes: [client.indexName] });
  assert.deepEqual((await indexes.getAlias(name)).indexes, [client.indexName]);
  assert.ok((await all(indexes.listAliases())).some((alias) => alias.name === name));
  const through = documents(name);
  assert.equal(await through.getDocumentsCount(), 5);
  assert.deepEqual(await ids(through.search("luxury")), ["2"]);
  const other = await indexes.createIndex(hotelIndex());
  await indexes.createOrUpdateAlias({ name, indexes: [other.name] });
  assert.equal(await through.getDocumentsCount(), 0);
  await indexes.deleteAlias(name);
  assert.equal(await status(() => through.getDocumentsCount()), 404);
  assert.equal(await status(() => indexes.createAlias({ name: fresh("a"), indexes: ["no-such-index"] })), 404);
});

test("test_synonym_maps_are_kept", async () => {
  const made = await indexes.createSynonymMap({ name: fresh("s"), synonyms: ["a, b", "c => d"] });
  assert.deepEqual((await indexes.getSynonymMap(made.name)).synonyms, ["a, b", "c => d"]);
  assert.ok((await indexes.listSynonymMapsNames()).includes(made.name));
  const changed = await indexes.createOrUpdateSynonymMap({ ...made, synonyms: ["e, f"] });
  assert.deepEqual(changed.synonyms, ["e, f"]);
  assert.notEqual(changed.etag, made.etag);
  assert.equal(await status(() => indexes.deleteSynonymMap(made, { onlyIfUnchanged: true })), 412);
  assert.equal(await status(() => indexes.createSynonymMap(made)), 409);
  await indexes.deleteSynonymMap(made.name);
  assert.equal(await status(() => indexes.getSynonymMap(made.name)), 404);
});

test("test_a_query_key_reads_and_does_not_write", async () => {
  const client = await hotels();
  const made = await fetch(`${endpoint}/lazuli.querykeys?api-version=2024-07-01`, {
    method: "POST",
    headers: { "api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ name: fresh("k") }),
  });
  assert.equal(made.status, 201);
  const own = (await made.json()).key;
  const reader = documents(client.indexName, own);
  assert.equal(await reader.getDocumentsCount(), 5);
  assert.deepEqual(await ids(reader.search("luxury")), ["2"]);
  assert.equal(await status(() => reader.uploadDocuments([{ id: "1" }])), 403);
  const admin = new SearchIndexClient(endpoint, new AzureKeyCredential(own), options);
  assert.equal(await status(() => admin.getIndex(client.indexName)), 403);
});

test("test_a_wrong_key_is_refused", async () => {
  for (const wrong of ["wrong", `${key.slice(0, -4)}AA==`]) {
    const client = new SearchIndexClient(endpoint, new AzureKeyCredential(wrong), options);
    assert.equal(await status(() => client.getServiceStatistics()), 403);
  }
});

test("test_skillsets_and_indexers_are_refused_by_name", async () => {
  const client = new SearchIndexerClient(endpoint, new AzureKeyCredential(key), options);
  for (const [call, what] of [
    [() => client.listIndexersNames(), "Indexers"],
    [() => client.listSkillsetsNames(), "Skillsets"],
    [() => client.listDataSourceConnectionsNames(), "Data sources"],
  ]) {
    const error = await refusal(call);
    assert.ok(error.statusCode === 501 && error.message.includes(what), error.message);
  }
});
