"""What tests share: reading keys and codes out of answers."""

import json


def keys(entities):
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def code(raised):
    """The service's code, from the answer itself: the SDK does not hand it on for every operation."""
    return json.loads(raised.value.response.text())["odata.error"]["code"]


def storage_code(raised):
    """The service's code, as Blobs and Queues say it in a header."""
    return raised.value.response.headers["x-ms-error-code"]
