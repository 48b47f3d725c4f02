// What every conformance test starts from: the target it runs against, and clients of the official SDK for it. The names
// of tests are those of the Python files of the same groups.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import nodeTest from "node:test";

import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";

import { held } from "./gaps.mjs";

export const target = JSON.parse(readFileSync(process.env.LAZULI_TARGET_FILE, "utf8"));
export const url = `${target.endpoints.tables}/${target.account}`;
export const credential = new AzureNamedKeyCredential(target.account, target.key);
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
export const tables = new TableServiceClient(url, credential, options);

export function test(name, body) {
  nodeTest(name, held(name, body, target.gaps));
}

export function freshName(prefix = "t") {
  return prefix + randomUUID().replaceAll("-", "");
}

/** A fresh table with a name of its own. It stays: every run starts with fresh data. */
export async function freshTable() {
  const client = new TableClient(url, freshName(), credential, options);
  await client.createTable();
  return client;
}

export async function all(pages) {
  const items = [];
  for await (const item of pages) {
    items.push(item);
  }
  return items;
}

export async function keys(pages) {
  return (await all(pages)).map((entity) => `${entity.partitionKey}${entity.rowKey}`);
}

/** The error of a call that must fail. */
export async function refusal(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error("the call was to be refused, and was not");
}

/** The service's code of a call that must be refused. */
export async function code(call) {
  const error = await refusal(call);
  return error.details?.odataError?.code ?? error.code;
}
