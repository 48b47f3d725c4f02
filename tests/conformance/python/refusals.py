"""What the tests of Blobs share: the code and the status of a call that must be refused."""

import pytest
from azure.core.exceptions import HttpResponseError


def refusal(call):
    """The error of a call that must be refused."""
    with pytest.raises(HttpResponseError) as raised:
        call()
    return raised.value


def code(call):
    """The service's code."""
    error = refusal(call)
    return error.response.headers.get("x-ms-error-code")


def status(call):
    return refusal(call).status_code
