"""The service of Search: statistics, aliases, synonym maps, keys, and what it does not have."""

import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureKeyCredential
from azure.search.documents.indexes import SearchIndexClient, SearchIndexerClient
from azure.search.documents.indexes.models import SearchAlias, SynonymMap

from search_target import fresh, hotel_index, ids, refusal, service, shown, status


def test_service_statistics_count_what_there_is(service):
    before = service.indexes.get_service_statistics()
    service.hotels()
    after = service.indexes.get_service_statistics()
    assert after.counters.index_counter.usage == before.counters.index_counter.usage + 1
    assert after.counters.document_counter.usage == before.counters.document_counter.usage + 5
    assert after.limits.max_fields_per_index == 1000


def test_aliases_stand_for_indexes(service):
    hotels = service.hotels()
    name = fresh("a")
    service.indexes.create_alias(SearchAlias(name=name, indexes=[hotels.index]))
    assert service.indexes.get_alias(name).indexes == [hotels.index]
    assert name in list(service.indexes.list_alias_names())
    through = service.documents(name)
    assert through.get_document_count() == 5
    assert ids(through.search("luxury")) == ["2"]
    other = service.indexes.create_index(hotel_index())
    service.indexes.create_or_update_alias(SearchAlias(name=name, indexes=[other.name]))
    assert through.get_document_count() == 0
    service.indexes.delete_alias(name)
    assert status(lambda: through.get_document_count()) == 404
    dangling = SearchAlias(name=fresh("a"), indexes=["no-such-index"])
    assert status(lambda: service.indexes.create_alias(dangling)) == 404


def test_synonym_maps_are_kept(service):
    made = service.indexes.create_synonym_map(SynonymMap(name=fresh("s"), synonyms=["a, b", "c => d"]))
    assert service.indexes.get_synonym_map(made.name).synonyms == ["a, b", "c => d"]
    assert made.name in service.indexes.get_synonym_map_names()
    made.synonyms = ["e, f"]
    changed = service.indexes.create_or_update_synonym_map(made)
    assert changed.synonyms == ["e, f"] and changed.e_tag != made.e_tag
    unchanged = MatchConditions.IfNotModified
    assert status(lambda: service.indexes.delete_synonym_map(made, match_condition=unchanged)) == 412
    assert status(lambda: service.indexes.create_synonym_map(made)) == 409
    service.indexes.delete_synonym_map(made.name)
    assert status(lambda: service.indexes.get_synonym_map(made.name)) == 404


def test_a_query_key_reads_and_does_not_write(service):
    hotels = service.hotels()
    url, headers = f"{service.endpoint}/lazuli.querykeys?api-version=2024-07-01", {"api-key": service.key}
    made = requests.post(url, headers=headers, json={"name": fresh("k")})
    assert made.status_code == 201
    reader = service.documents(hotels.index, made.json()["key"])
    assert reader.get_document_count() == 5 and ids(reader.search("luxury")) == ["2"]
    assert status(lambda: reader.upload_documents([{"id": "1"}])) == 403
    credential = AzureKeyCredential(made.json()["key"])
    admin = SearchIndexClient(service.endpoint, credential, retry_total=0)
    assert status(lambda: admin.get_index(hotels.index)) == 403


def test_a_wrong_key_is_refused(service):
    for key in ["wrong", service.key[:-4] + "AA=="]:
        client = SearchIndexClient(service.endpoint, AzureKeyCredential(key), retry_total=0)
        assert status(lambda: client.get_service_statistics()) == 403


def test_skillsets_and_indexers_are_refused_by_name(service):
    client = SearchIndexerClient(service.endpoint, AzureKeyCredential(service.key), retry_total=0)
    for call, what in [
        (client.get_indexer_names, "Indexers"),
        (client.get_skillset_names, "Skillsets"),
        (client.get_data_source_connection_names, "Data sources"),
    ]:
        error = refusal(call)
        assert error.status_code == 501 and what in error.message
