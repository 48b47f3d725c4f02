"""Indexes of Search: created, read, changed, listed, deleted, and what their analyzers make of texts."""

from azure.core import MatchConditions
from azure.search.documents.indexes.models import (
    AnalyzeTextOptions,
    CustomAnalyzer,
    SearchableField,
    SearchField,
    SearchFieldDataType,
    SearchIndex,
    SimpleField,
)

from search_target import fresh, hotel_index, refusal, service, status


def plain(name=None, fields=()):
    key = SimpleField(name="id", type=SearchFieldDataType.String, key=True)
    return SearchIndex(name=name or fresh(), fields=[key, *fields])


def test_an_index_is_created_read_listed_and_deleted(service):
    made = service.indexes.create_index(hotel_index())
    read = service.indexes.get_index(made.name)
    fields = {field.name: field for field in read.fields}
    assert fields["id"].key and fields["name"].searchable and not fields["rating"].searchable
    assert fields["description"].analyzer_name == "en.lucene"
    assert [field.name for field in fields["address"].fields] == ["city", "country"]
    assert fields["vector"].vector_search_dimensions == 3
    assert read.suggesters[0].source_fields == ["name", "category"]
    assert read.e_tag == made.e_tag
    assert made.name in list(service.indexes.list_index_names())
    assert made.name in [index.name for index in service.indexes.list_indexes()]
    service.indexes.delete_index(made.name)
    assert status(lambda: service.indexes.get_index(made.name)) == 404
    assert status(lambda: service.documents(made.name).get_document_count()) == 404


def test_an_index_that_exists_is_not_created_again(service):
    index = service.indexes.create_index(plain())
    assert status(lambda: service.indexes.create_index(plain(index.name))) == 409


def test_fields_can_be_added_and_not_changed(service):
    index = service.indexes.create_index(plain(fields=[SearchableField(name="text")]))
    documents = service.documents(index.name)
    documents.upload_documents([{"id": "1", "text": "one"}])
    index.fields.append(SearchableField(name="more"))
    service.indexes.create_or_update_index(index)
    documents.upload_documents([{"id": "2", "more": "two"}])
    names = [field.name for field in service.indexes.get_index(index.name).fields]
    assert names == ["id", "text", "more"]
    assert documents.get_document("1")["more"] is None
    index.fields[1] = SimpleField(name="text", type=SearchFieldDataType.Int32)
    assert status(lambda: service.indexes.create_or_update_index(index)) == 400


def test_an_etag_guards_an_index(service):
    first = service.indexes.create_index(plain(fields=[SearchableField(name="text")]))
    second = service.indexes.get_index(first.name)
    second.fields.append(SearchableField(name="more"))
    unchanged = MatchConditions.IfNotModified
    changed = service.indexes.create_or_update_index(second, match_condition=unchanged)
    assert changed.e_tag != first.e_tag
    first.fields.append(SearchableField(name="other"))
    stale = lambda: service.indexes.create_or_update_index(first, match_condition=unchanged)
    assert status(stale) == 412
    assert status(lambda: service.indexes.delete_index(first, match_condition=unchanged)) == 412
    service.indexes.delete_index(changed, match_condition=unchanged)


def test_what_is_wrong_with_a_definition_is_said(service):
    text = SearchField(name="text", type=SearchFieldDataType.String)
    without_key = SearchIndex(name=fresh(), fields=[text])
    error = refusal(lambda: service.indexes.create_index(without_key))
    assert error.status_code == 400 and "key" in error.message
    bad_name = lambda: service.indexes.create_index(plain("Bad_Name!"))
    assert status(bad_name) == 400
    unknown = plain(fields=[SearchableField(name="text", analyzer_name="no.such")])
    error = refusal(lambda: service.indexes.create_index(unknown))
    assert error.status_code == 400 and "no.such" in error.message


def test_an_analyzer_says_its_tokens(service):
    analyzer = CustomAnalyzer(
        name="mine", tokenizer_name="whitespace", token_filters=["lowercase", "asciifolding"]
    )
    index = plain(fields=[SearchableField(name="text", analyzer_name="mine")])
    index.analyzers = [analyzer]
    service.indexes.create_index(index)
    say = lambda **how: [
        token.token for token in service.indexes.analyze_text(index.name, AnalyzeTextOptions(**how)).tokens
    ]
    assert say(text="The Quick-Fox", analyzer_name="standard.lucene") == ["the", "quick", "fox"]
    assert say(text="The Quick-Fox", analyzer_name="mine") == ["the", "quick-fox"]
    assert say(text="running dogs", analyzer_name="en.lucene") == ["run", "dog"]
    tokens = service.indexes.analyze_text(
        index.name, AnalyzeTextOptions(text="one two", analyzer_name="whitespace")
    ).tokens
    assert [(token.start_offset, token.end_offset, token.position) for token in tokens] == [(0, 3, 0), (4, 7, 1)]


def test_statistics_count_documents(service):
    documents = service.hotels()
    statistics = service.indexes.get_index_statistics(documents.index)
    assert statistics.document_count == 5
    assert statistics.storage_size > 0
