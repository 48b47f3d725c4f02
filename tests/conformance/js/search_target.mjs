// Clients of the official Search SDK for the target, an index of hotels, and waiting until searches show what was written.

import { readFileSync } from "node:fs";

import { AzureKeyCredential, SearchClient, SearchIndexClient } from "@azure/search-documents";

import { freshName, refusal, target } from "./target.mjs";

export const endpoint = target.endpoints.search;
export const key = target.key;
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
export const indexes = new SearchIndexClient(endpoint, new AzureKeyCredential(key), options);
export const HOTELS = JSON.parse(readFileSync(process.env.LAZULI_HOTELS_FILE, "utf8"));

const WAIT_MS = 20_000;

export const documents = (index, own = key) =>
  new SearchClient(endpoint, index, new AzureKeyCredential(own), options);

export const fresh = (prefix = "i") => freshName(prefix);

export async function status(call) {
  return (await refusal(call)).statusCode;
}

export function hotelIndex(more = {}) {
  const text = (name, rest = {}) => ({ name, type: "Edm.String", searchable: true, filterable: false, ...rest });
  const value = (name, type) => ({ name, type, filterable: true, sortable: true, facetable: type !== "Edm.GeographyPoint" });
  return {
    name: fresh(),
    fields: [
      { name: "id", type: "Edm.String", key: true, filterable: true, sortable: true },
      text("name", { sortable: true, filterable: true }),
      text("description", { analyzerName: "en.lucene" }),
      text("category", { filterable: true, sortable: true, facetable: true }),
      { name: "tags", type: "Collection(Edm.String)", searchable: true, filterable: true, facetable: true },
      { name: "parking", type: "Edm.Boolean", filterable: true, facetable: true },
      value("rating", "Edm.Double"),
      value("stories", "Edm.Int32"),
      value("renovated", "Edm.DateTimeOffset"),
      value("place", "Edm.GeographyPoint"),
      {
        name: "address",
        type: "Edm.ComplexType",
        fields: [text("city", { filterable: true, facetable: true }), text("country", { filterable: true, facetable: true })],
      },
      {
        name: "rooms",
        type: "Collection(Edm.ComplexType)",
        fields: [text("kind", { filterable: true }), { name: "price", type: "Edm.Double", filterable: true }],
      },
      {
        name: "vector",
        type: "Collection(Edm.Single)",
        searchable: true,
        vectorSearchDimensions: 3,
        vectorSearchProfileName: "near",
      },
    ],
    suggesters: [{ name: "sg", searchMode: "analyzingInfixMatching", sourceFields: ["name", "category"] }],
    vectorSearch: {
      profiles: [{ name: "near", algorithmConfigurationName: "graph" }],
      algorithms: [{ name: "graph", kind: "hnsw" }],
    },
    ...more,
  };
}

/** Waits until searches show so many documents. */
export async function shown(client, count) {
  const deadline = Date.now() + WAIT_MS;
  while ((await client.search("*", { includeTotalCount: true, top: 0 })).count !== count) {
    if (Date.now() > deadline) {
      throw new Error("searches do not show what was written");
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A fresh index with all hotels, which searches show. */
export async function hotels(more = {}) {
  const index = await indexes.createIndex(hotelIndex(more));
  const client = documents(index.name);
  await client.uploadDocuments(HOTELS);
  await shown(client, HOTELS.length);
  return client;
}

export async function all(results) {
  const found = [];
  for await (const result of results.results ?? results) {
    found.push(result);
  }
  return found;
}

export const ids = async (results) => (await all(await results)).map((result) => result.document.id);

export const found = async (client, text, how = {}) => (await ids(client.search(text, how))).sort();
