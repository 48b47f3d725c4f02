// Suggestions of Search while somebody types.

import assert from "node:assert/strict";

import { hotels, status } from "./search_target.mjs";
import { test } from "./target.mjs";

const shared = await hotels();

test("test_suggestions_come_from_the_beginnings_of_words", async () => {
  const suggest = async (text, how = {}) => (await shared.suggest(text, "sg", how)).results;
  const found = (await suggest("pal")).map((it) => [it.text, it.document.id]);
  assert.deepEqual(found, [["Sublime Palace Hotel", "4"]]);
  const tags = { highlightPreTag: "<b>", highlightPostTag: "</b>", select: ["id", "rating"] };
  const [marked] = await suggest("gast", tags);
  assert.ok(marked.text.includes("<b>Gast") && marked.document.rating === 4.8);
  assert.deepEqual(await suggest("palce"), []);
  assert.equal((await suggest("palce", { useFuzzyMatching: true }))[0].document.id, "4");
  assert.equal((await suggest("hotel", { top: 2 })).length, 2);
  assert.deepEqual((await suggest("hotel", { filter: "rating lt 3" })).map((it) => it.document.id), ["5"]);
  assert.equal(await status(() => shared.suggest("pal", "other")), 400);
});

test("test_completions_in_three_modes", async () => {
  const texts = async (text, how = {}) =>
    (await shared.autocomplete(text, "sg", how)).results.map((it) => [it.text, it.queryPlusText]);
  assert.deepEqual(await texts("cent"), [["century", "century"]]);
  const two = await texts("cent", { autocompleteMode: "twoTerms" });
  assert.ok(two.some(([text, whole]) => text === "century hotel" && whole === "century hotel"));
  assert.deepEqual(await texts("old cent", { autocompleteMode: "oneTermWithContext" }), [["old century", "old century"]]);
  assert.deepEqual(await texts("zzz"), []);
  assert.equal(await status(() => shared.autocomplete("cent", "other")), 400);
});
