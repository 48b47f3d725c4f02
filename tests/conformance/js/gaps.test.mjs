// The rules about known gaps can fail: each is broken here once.

import assert from "node:assert/strict";
import test from "node:test";

import { held } from "./gaps.mjs";

const passes = async () => {};
const fails = async () => assert.fail("as listed");
const gap = (name, sdk = "") => [{ test: name, sdk }];

test("an unlisted failure fails", async () => {
  await assert.rejects(held("test_a", fails, gap("test_b")));
  await assert.rejects(held("test_a", fails, gap("test_a", "python")));
});

test("a listed failure passes, with or without its parameters", async () => {
  await held("test_a", fails, gap("test_a"))();
  await held("test_a[1]", fails, gap("test_a", "js"))();
  await held("test_a[1]", fails, gap("test_a[1]"))();
  await assert.rejects(held("test_a[2]", fails, gap("test_a[1]")));
});

test("a listed test that passes fails", async () => {
  await assert.rejects(held("test_a", passes, gap("test_a")), /is a lie/);
});
