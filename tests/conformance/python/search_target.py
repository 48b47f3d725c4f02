"""What the tests of Search share: clients for the target, an index of hotels, and waiting until searches show what was written."""

import json
import pathlib
import time
import uuid

import pytest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.search.documents import SearchClient
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.indexes.models import (
    ComplexField,
    HnswAlgorithmConfiguration,
    SearchableField,
    SearchField,
    SearchFieldDataType,
    SearchIndex,
    SearchSuggester,
    SimpleField,
    VectorSearch,
    VectorSearchProfile,
)

HOTELS = json.loads((pathlib.Path(__file__).parent.parent / "hotels.json").read_text())
WAIT_SECONDS = 20


def fresh(prefix="i"):
    return prefix + uuid.uuid4().hex


def refusal(call):
    """The error of a call that must be refused."""
    with pytest.raises(HttpResponseError) as raised:
        call()
    return raised.value


def status(call):
    return refusal(call).status_code


def hotel_fields():
    kind = SearchFieldDataType
    return [
        SimpleField(name="id", type=kind.String, key=True, filterable=True, sortable=True),
        SearchableField(name="name", sortable=True, filterable=True),
        SearchableField(name="description", analyzer_name="en.lucene"),
        SearchableField(name="category", filterable=True, sortable=True, facetable=True),
        SearchableField(name="tags", collection=True, filterable=True, facetable=True),
        SimpleField(name="parking", type=kind.Boolean, filterable=True, facetable=True),
        SimpleField(name="rating", type=kind.Double, filterable=True, sortable=True, facetable=True),
        SimpleField(name="stories", type=kind.Int32, filterable=True, sortable=True, facetable=True),
        SimpleField(name="renovated", type=kind.DateTimeOffset, filterable=True, sortable=True, facetable=True),
        SimpleField(name="place", type=kind.GeographyPoint, filterable=True, sortable=True),
        ComplexField(
            name="address",
            fields=[
                SearchableField(name="city", filterable=True, facetable=True),
                SearchableField(name="country", filterable=True, facetable=True),
            ],
        ),
        ComplexField(
            name="rooms",
            collection=True,
            fields=[
                SearchableField(name="kind", filterable=True),
                SimpleField(name="price", type=kind.Double, filterable=True),
            ],
        ),
        SearchField(
            name="vector",
            type=kind.Collection(kind.Single),
            searchable=True,
            vector_search_dimensions=3,
            vector_search_profile_name="near",
        ),
    ]


def hotel_index(name=None, **more):
    return SearchIndex(
        name=name or fresh(),
        fields=hotel_fields(),
        suggesters=[SearchSuggester(name="sg", source_fields=["name", "category"])],
        vector_search=VectorSearch(
            profiles=[VectorSearchProfile(name="near", algorithm_configuration_name="graph")],
            algorithms=[HnswAlgorithmConfiguration(name="graph")],
        ),
        **more,
    )


class Search:
    """Clients for the target."""

    def __init__(self, target):
        self.endpoint = target["endpoints"]["search"]
        self.key = target["key"]
        self.indexes = SearchIndexClient(self.endpoint, AzureKeyCredential(self.key), retry_total=0)

    def documents(self, index, key=None):
        client = SearchClient(self.endpoint, index, AzureKeyCredential(key or self.key), retry_total=0)
        client.index = index
        return client

    def hotels(self, **more):
        """A fresh index with all hotels, which searches show."""
        index = self.indexes.create_index(hotel_index(**more))
        client = self.documents(index.name)
        client.upload_documents(HOTELS)
        shown(client, len(HOTELS))
        return client


def shown(client, count):
    """Waits until searches show so many documents."""
    deadline = time.monotonic() + WAIT_SECONDS
    while client.search("*", include_total_count=True, top=0).get_count() != count:
        assert time.monotonic() < deadline, "searches do not show what was written"
        time.sleep(0.02)


def ids(results):
    return [result["id"] for result in results]


@pytest.fixture(scope="session")
def service(target):
    return Search(target)
