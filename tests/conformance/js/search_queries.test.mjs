// Queries of Search: words, syntaxes, filters, order, pages, facets, highlights, scoring, synonyms, vectors.

import assert from "node:assert/strict";

import { HOTELS, all, documents, found, fresh, hotelIndex, hotels, ids, indexes, shown, status } from "./search_target.mjs";
import { refusal, test } from "./target.mjs";

const shared = await hotels();

test("test_words_find_documents_by_relevance", async () => {
  const results = await all(await shared.search("luxury palace"));
  assert.equal(results[0].document.id, "2");
  assert.deepEqual(results.map((it) => it.document.id).sort(), ["2", "4"]);
  const scores = results.map((it) => it.score);
  assert.ok(scores[0] >= scores[1] && scores[0] > 0);
  assert.deepEqual(await found(shared, "palaces"), ["2", "4"], "words are stemmed");
  assert.deepEqual(await found(shared, "zebra"), []);
  assert.ok((await all(await shared.search("*"))).every((it) => it.score === 1));
});

test("test_a_search_mode_of_all_needs_every_word", async () => {
  const searchMode = "all";
  assert.deepEqual(await found(shared, "garden pool"), ["1", "2", "4"]);
  assert.deepEqual(await found(shared, "garden quiet", { searchMode }), ["1", "4"]);
  assert.deepEqual(await found(shared, "garden +wifi", { searchMode }), ["1"]);
  assert.deepEqual(await found(shared, '"free wifi"'), ["1", "2"]);
  assert.deepEqual(await found(shared, "garden -palace", { searchMode }), ["1"]);
  assert.deepEqual(await found(shared, "boutique", { searchFields: ["category"] }), ["1", "4"]);
  assert.deepEqual(await found(shared, "boutique", { searchFields: ["name"] }), []);
});

test("test_lucene_syntax_has_fields_phrases_and_fuzziness", async () => {
  const full = (text) => found(shared, text, { queryType: "full" });
  assert.deepEqual(await full("name:palace"), ["4"]);
  assert.deepEqual(await full("description:palace AND category:luxury"), ["2"]);
  assert.deepEqual(await full("palce~1"), ["4"]);
  assert.deepEqual(await full('"classic town"~6'), ["1"]);
  assert.deepEqual(await full("gast*"), ["3"]);
  assert.deepEqual(await full("/palac[ei]/"), ["4"]);
  assert.deepEqual(await full("garden NOT classic"), ["4"]);
  assert.equal((await ids(shared.search("pool^10 OR garden", { queryType: "full" })))[0], "2");
});

for (const [filter, expected] of [
  ["rating gt 4.5", "234"],
  ["rating ge 4.8 and category ne 'Luxury'", "3"],
  ["parking eq true or stories eq 2", "345"],
  ["parking eq null", "5"],
  ["not (rating lt 4)", "234"],
  ["category eq 'Boutique' and (stories lt 6 or stories gt 20)", "4"],
  ["tags/any(t: t eq 'view')", "14"],
  ["tags/all(t: t ne 'view')", "235"],
  ["tags/any()", "1234"],
  ["not tags/any()", "5"],
  ["search.in(category, 'Resort|Budget', '|')", "35"],
  ["tags/any(t: search.in(t, 'pool,bar'))", "23"],
  ["renovated ge 2020-01-01T00:00:00Z", "14"],
  ["address/city eq 'Berlin'", "5"],
  ["search.ismatch('palace', 'name')", "4"],
  ["search.ismatch('palace') or rating lt 3", "245"],
  ["4.7 le rating", "23"],
  ["parking", "34"],
]) {
  test(`test_a_filter_finds_what_it_says[${filter}]`, async () => {
    assert.deepEqual(await found(shared, undefined, { filter }), [...expected]);
  });
}

test("test_complex_collections_are_filtered_by_element", async () => {
  const filtered = (filter) => found(shared, undefined, { filter });
  assert.deepEqual(await filtered("rooms/any(r: r/kind eq 'Suite' and r/price lt 100)"), ["2"]);
  assert.deepEqual(await filtered("rooms/any(r: r/kind eq 'Budget') and rooms/any(r: r/price gt 200)"), ["1"]);
  assert.deepEqual(await filtered("rooms/all(r: r/price gt 100)"), ["3", "4", "5"]);
});

test("test_results_are_ordered_and_paged", async () => {
  const ordered = (how) => ids(shared.search("*", how));
  assert.deepEqual(await ordered({ orderBy: ["rating desc", "name"] }), ["3", "2", "4", "1", "5"]);
  assert.deepEqual(await ordered({ orderBy: ["stories asc", "id desc"] }), ["5", "3", "2", "4", "1"]);
  assert.deepEqual(await ordered({ orderBy: ["id"], skip: 1, top: 2 }), ["2", "3"]);
  const results = await shared.search("*", { orderBy: ["id"], top: 2, includeTotalCount: true });
  assert.equal(results.count, 5);
  assert.deepEqual(await ids(results), ["1", "2"]);
  const [one] = await all(await shared.search("*", { orderBy: ["id"], select: ["id", "address/city"] }));
  assert.deepEqual(one.document.address, { city: "New York" });
  assert.equal(one.document.name, undefined);
});

test("test_all_pages_are_followed", async () => {
  const client = documents((await indexes.createIndex(hotelIndex())).name);
  const names = Array.from({ length: 120 }, (_, number) => String(number).padStart(4, "0"));
  await client.uploadDocuments(names.map((id, stories) => ({ id, stories })));
  await shown(client, 120);
  assert.deepEqual(await ids(client.search("*", { orderBy: ["id"] })), names);
  const sizes = [];
  const results = await client.search("*", { orderBy: ["id"], filter: "stories lt 70" });
  for await (const page of results.results.byPage()) {
    sizes.push(page.results.length);
  }
  assert.deepEqual(sizes, [50, 20]);
});

test("test_facets_count_values_and_intervals", async () => {
  const how = ["category,sort:value", "tags,count:2", "rating,interval:1", "stories,values:3|10", "address/country"];
  const { facets } = await shared.search("*", { facets: how });
  assert.deepEqual(facets.category.map((it) => [it.value, it.count]), [
    ["Boutique", 2],
    ["Budget", 1],
    ["Luxury", 1],
    ["Resort", 1],
  ]);
  assert.equal(facets.tags.length, 2);
  assert.deepEqual([facets.tags[0].value, facets.tags[0].count], ["concierge", 3]);
  assert.deepEqual(facets.rating.map((it) => [it.value, it.count]), [[2, 1], [3, 1], [4, 3]]);
  assert.deepEqual(facets.stories.map((it) => it.count), [1, 3, 1]);
  const countries = Object.fromEntries(facets["address/country"].map((it) => [it.value, it.count]));
  assert.deepEqual(countries, { USA: 4, Germany: 1 });
});

test("test_highlights_mark_what_was_found", async () => {
  const [pool] = await all(await shared.search("pool", { highlightFields: "description" }));
  assert.ok(pool.highlights.description[0].includes("<em>pool</em>"));
  const how = { searchFields: ["name"], highlightFields: "name", highlightPreTag: "[", highlightPostTag: "]" };
  const [one] = await all(await shared.search("century", how));
  assert.deepEqual(one.highlights.name, ["Old [Century] Hotel"]);
});

test("test_geography_filters_and_orders_by_distance", async () => {
  const here = "geography'POINT(-73.97 40.76)'";
  assert.deepEqual(await found(shared, undefined, { filter: `geo.distance(place, ${here}) le 100` }), ["1"]);
  const how = { filter: "place ne null", orderBy: [`geo.distance(place, ${here})`] };
  assert.deepEqual(await ids(shared.search("*", how)), ["1", "3", "2", "4"]);
  const box = "geography'POLYGON((-85 26, -80 26, -80 34, -85 34, -85 26))'";
  assert.deepEqual(await found(shared, undefined, { filter: `geo.intersects(place, ${box})` }), ["2", "3"]);
});

test("test_a_scoring_profile_lifts_documents", async () => {
  const rated = {
    name: "rated",
    functions: [
      {
        type: "magnitude",
        fieldName: "rating",
        boost: 50,
        interpolation: "linear",
        parameters: { boostingRangeStart: 3, boostingRangeEnd: 5 },
      },
    ],
  };
  const named = { name: "named", textWeights: { weights: { name: 20, description: 1 } } };
  const client = await hotels({ scoringProfiles: [rated, named] });
  const how = { queryType: "full", scoringProfile: "rated" };
  assert.ok(["2", "3", "4"].includes((await ids(client.search("hotel OR garden", how)))[0]));
  assert.equal((await ids(client.search("palace", { scoringProfile: "named" })))[0], "4");
  assert.equal(await status(async () => all(await client.search("palace", { scoringProfile: "other" }))), 400);
});

test("test_synonyms_find_what_was_not_written", async () => {
  const name = fresh("s");
  await indexes.createSynonymMap({ name, synonyms: ["bicycle, bikes", "castle => palace"] });
  const index = hotelIndex();
  const described = index.fields.find((field) => field.name === "description");
  described.synonymMapNames = [name];
  described.analyzerName = "standard.lucene";
  await indexes.createIndex(index);
  const client = documents(index.name);
  await client.uploadDocuments(HOTELS);
  await shown(client, 5);
  const searchFields = ["description"];
  assert.deepEqual(await found(client, "bicycle", { searchFields }), ["5"]);
  assert.deepEqual(await found(client, "castle", { searchFields }), ["2", "4"]);
});

test("test_vectors_find_the_nearest", async () => {
  const near = (vector, k = 2, more = {}) => ({
    vectorSearchOptions: {
      queries: [{ kind: "vector", vector, kNearestNeighborsCount: k, fields: ["vector"], ...more }],
    },
  });
  assert.deepEqual(await ids(shared.search(undefined, near([1, 0, 0]))), ["1", "2"]);
  const filtered = { ...near([1, 0, 0], 1), filter: "rating gt 4.7" };
  assert.deepEqual(await ids(shared.search(undefined, filtered)), ["2"]);
  assert.deepEqual(await ids(shared.search(undefined, near([0, 0, 1], 1, { exhaustive: true }))), ["4"]);
  assert.deepEqual((await ids(shared.search("beach", near([0, 1, 0], 1)))).sort(), ["3", "5"]);
  assert.equal(await status(async () => all(await shared.search(undefined, near([1])))), 400);
});

for (const [place, how, what] of [
  ["how0-nothing", { filter: "nothing eq 1" }, "nothing"],
  ["how1-", { filter: "rating eq" }, ""],
  ["how2-description", { filter: "description eq 'x'" }, "description"],
  ["how3-description", { orderBy: ["description"] }, "description"],
  ["how4-nothing", { facets: ["nothing"] }, "nothing"],
  ["how5-nothing", { select: ["nothing"] }, "nothing"],
  ["how6-", { queryType: "full", text: "name:(palace" }, ""],
  ["how7-skip", { skip: 100001 }, "skip"],
  ["how8-not supported", { queryType: "semantic", semanticSearchOptions: { configurationName: "x" } }, "not supported"],
]) {
  test(`test_a_bad_query_is_refused_by_name[${place}]`, async () => {
    const { text, ...options } = how;
    const error = await refusal(async () => all(await shared.search(text, options)));
    assert.ok([400, 501].includes(error.statusCode) && error.message.includes(what), error.message);
  });
}
