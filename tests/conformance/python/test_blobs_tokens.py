"""Bearer tokens over HTTPS, the keys that their bearers get, and what is signed with those."""

import base64
import datetime
import json
import time
import uuid

import pytest
from azure.core.credentials import AccessToken
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    generate_blob_sas,
    generate_container_sas,
)

from refusals import refusal, status

HOUR = datetime.timedelta(hours=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def token(**changes):
    """A token of a user, as an identity provider would issue it but for its signature, which nobody checks."""
    seconds = int(time.time())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "iat": seconds - 60,
        "nbf": seconds - 60,
        "exp": seconds + 3600,
        "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
        "tid": "dd0d0df1-06c3-436c-8034-4b9a153097ce",
        **changes,
    }
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return f"{part({'alg': 'RS256', 'typ': 'JWT'})}.{part(claims)}.c2lnbmF0dXJl"


class Bearer:
    """Who has a token."""

    def __init__(self, **changes):
        self.token = token(**changes)

    def get_token(self, *scopes, **options):
        return AccessToken(self.token, int(time.time()) + 3600)


@pytest.fixture(scope="module")
def secure_url(target):
    others = target["other_endpoints"]
    return f"{others.get('blobs-https', others['blobs'])}/{target['account']}"


@pytest.fixture(scope="module")
def terms(target):
    return {"retry_total": 0, "connection_verify": target["certificate"]}


@pytest.fixture
def service(secure_url, terms):
    return BlobServiceClient(secure_url, credential=Bearer(), **terms)


@pytest.fixture
def filled(service):
    """A container with the blobs `b` and `other`, made by the bearer of a token."""
    container = service.create_container(f"c{uuid.uuid4().hex}")
    container.upload_blob("b", b"x")
    container.upload_blob("other", b"y")
    return container


def test_a_token_lets_its_bearer_in(filled):
    assert filled.download_blob("b").readall() == b"x"
    assert [item.name for item in filled.list_blobs()] == ["b", "other"]


@pytest.mark.parametrize(
    "claim",
    [{"exp": 1_000_000_000}, {"aud": "https://example.com"}, {"iss": "https://example.com/"}],
    ids=["late", "audience", "issuer"],
)
def test_a_bad_token_is_refused(secure_url, terms, claim):
    """Azurite answers 403, the original a challenge."""
    service = BlobServiceClient(secure_url, credential=Bearer(**claim), **terms)
    error = refusal(lambda: list(service.list_containers()))
    assert error.status_code == 401
    challenge = error.response.headers["www-authenticate"]
    assert challenge.startswith("Bearer authorization_uri=https://")
    assert challenge.endswith(" resource_id=https://storage.azure.com")


def test_a_users_key_signs_for_a_blob(target, service, filled, secure_url, terms):
    key = service.get_user_delegation_key(now() - HOUR, now() + HOUR)
    assert key.signed_oid == "23657296-5cd5-45b0-a809-d972a7f4dfe1"
    assert key.signed_tid == "dd0d0df1-06c3-436c-8034-4b9a153097ce"
    name = filled.container_name
    signature = generate_blob_sas(
        target["account"],
        name,
        "b",
        user_delegation_key=key,
        permission="r",
        expiry=now() + HOUR,
    )
    client = lambda blob: BlobClient(secure_url, name, blob, credential=signature, **terms)
    assert client("b").download_blob().readall() == b"x"
    assert status(client("b").delete_blob) == 403
    assert status(client("other").download_blob) == 403


def test_a_users_key_signs_for_a_container(target, service, filled, secure_url, terms):
    key = service.get_user_delegation_key(now() - HOUR, now() + HOUR)
    signature = generate_container_sas(
        target["account"],
        filled.container_name,
        user_delegation_key=key,
        permission="rl",
        expiry=now() + HOUR,
    )
    name = filled.container_name
    container = ContainerClient(secure_url, name, credential=signature, **terms)
    assert [item.name for item in container.list_blobs()] == ["b", "other"]
    assert container.download_blob("other").readall() == b"y"
    assert status(lambda: container.upload_blob("new", b"z")) == 403


def test_a_signature_ends_with_the_users_key(target, service, filled, secure_url, terms):
    key = service.get_user_delegation_key(now() - HOUR, now() + datetime.timedelta(seconds=3))
    name = filled.container_name
    signature = generate_blob_sas(
        target["account"],
        name,
        "b",
        user_delegation_key=key,
        permission="r",
        expiry=now() + HOUR,
    )
    blob = BlobClient(secure_url, name, "b", credential=signature, **terms)
    assert blob.download_blob().readall() == b"x"
    time.sleep(4)
    assert status(blob.download_blob) == 403


def test_a_users_key_is_for_bearers_of_tokens(blobs):
    assert status(lambda: blobs.get_user_delegation_key(now() - HOUR, now() + HOUR)) == 403
