"""Documents of Search: actions and their results, lookups, counts."""

from azure.search.documents import IndexDocumentsBatch, SearchIndexingBufferedSender
from azure.core.credentials import AzureKeyCredential

from search_target import HOTELS, hotel_index, refusal, service, shown, status


def empty(service):
    return service.documents(service.indexes.create_index(hotel_index()).name)


def test_documents_are_uploaded_merged_and_deleted(service):
    documents = empty(service)
    results = documents.upload_documents(HOTELS)
    assert [(it.key, it.succeeded, it.status_code) for it in results] == [
        (hotel["id"], True, 201) for hotel in HOTELS
    ]
    assert documents.upload_documents([HOTELS[0]])[0].status_code == 200
    merged = documents.merge_documents([{"id": "1", "rating": 4.0, "address": {"city": "Boston"}}])
    assert merged[0].status_code == 200
    one = documents.get_document("1")
    assert one["rating"] == 4.0 and one["name"] == HOTELS[0]["name"]
    assert one["address"] == {"city": "Boston", "country": "USA"}
    new = documents.merge_or_upload_documents([{"id": "9", "name": "New"}])
    assert new[0].status_code == 201
    deleted = documents.delete_documents([{"id": "1"}, {"id": "unknown"}])
    assert [it.status_code for it in deleted] == [200, 200]
    assert status(lambda: documents.get_document("1")) == 404
    assert documents.get_document_count() == 5


def test_a_batch_answers_for_each_document(service):
    documents = empty(service)
    batch = IndexDocumentsBatch()
    batch.add_upload_actions([{"id": "1", "name": "One"}])
    batch.add_merge_actions([{"id": "2", "name": "Two"}])
    batch.add_upload_actions([{"id": "no good key", "name": "Three"}])
    batch.add_delete_actions([{"id": "4"}])
    results = documents.index_documents(batch)
    assert [it.status_code for it in results] == [201, 404, 400, 200]
    assert [it.succeeded for it in results] == [True, False, False, True]
    assert "key" in results[2].error_message
    assert documents.get_document_count() == 1


def test_a_document_is_read_by_its_key_with_selected_fields(service):
    documents = empty(service)
    documents.upload_documents(HOTELS)
    whole = documents.get_document("2")
    for name, value in HOTELS[1].items():
        assert whole[name] == value, name
    assert documents.get_document("2", selected_fields=["id", "rating"]) == {"id": "2", "rating": 4.8}
    inner = documents.get_document("2", selected_fields=["address/city"])
    assert inner == {"address": {"city": "Sarasota"}}
    assert status(lambda: documents.get_document("2", selected_fields=["nothing"])) == 400


def test_counts_and_lookups_see_every_answered_write(service):
    documents = empty(service)
    for number in range(30):
        documents.upload_documents([{"id": str(number), "stories": number}])
        assert documents.get_document_count() == number + 1
        assert documents.get_document(str(number))["stories"] == number


def test_a_buffered_sender_writes_all(service):
    documents = empty(service)
    with SearchIndexingBufferedSender(
        service.endpoint, documents.index, AzureKeyCredential(service.key), auto_flush=False
    ) as sender:
        sender.upload_documents([{"id": str(number), "stories": number} for number in range(2000)])
        sender.flush()
    assert documents.get_document_count() == 2000
    shown(documents, 2000)


def test_a_document_that_does_not_fit_is_refused(service):
    documents = empty(service)
    for wrong, what in [
        ({"id": "1", "rating": "high"}, "rating"),
        ({"id": "1", "nothing": 1}, "nothing"),
        ({"id": "1", "tags": "one"}, "tags"),
        ({"name": "no key"}, "key"),
        ({"id": "1", "vector": [1.0]}, "vector"),
    ]:
        error = refusal(lambda: documents.upload_documents([{"id": "0"}, wrong]))
        assert error.status_code == 400 and what in error.message, wrong
    assert documents.get_document_count() == 0
