// Clients of the official Documents SDK for the target, and how their refusals read.

import { CosmosClient } from "@azure/cosmos";

import { freshName, refusal, target } from "./target.mjs";

export const endpoint = target.endpoints.documents;
/** The key that all emulators of the service publish. It protects nothing, and Lazuli takes it on loopback only. */
export const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
export const cosmos = new CosmosClient({ endpoint, key });

const { database: shared } = await cosmos.databases.create({ id: freshName("d") });
export const database = shared;

/** A fresh container with a name of its own. It stays: every run starts with fresh data. */
export async function make(more = {}, options = {}, from = database) {
  const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
  const { container } = await from.containers.create({ id: freshName("c"), partitionKey, ...more }, options);
  return container;
}

/** The status of a call that must be refused. */
export async function status(call) {
  const error = await refusal(call);
  return error.code ?? error.statusCode;
}

export async function allOf(container, query, options = {}) {
  return (await container.items.query(query, options).fetchAll()).resources;
}

export const ids = (rows) => rows.map((row) => row.id);

export async function everything(container) {
  return (await container.items.readAll().fetchAll()).resources;
}

export const sorted = (rows) => [...rows].sort();

/** Waits until the ranges that a new throughput asks for are there. */
export async function settle(container) {
  const deadline = Date.now() + 60_000;
  while ((await container.readOffer()).resource.content.isOfferReplacePending) {
    if (Date.now() > deadline) {
      throw new Error("the ranges of a new throughput are not made");
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
