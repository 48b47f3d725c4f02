//! Keys, shared access signatures, stored policies and tokens on the wire.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use lazuli_azure::auth::Key;
use lazuli_azure::auth::bearer::Tokens;
use lazuli_queues::Limits;

use crate::raw::{NOW_MS, Server, elements, shared_access, signed_with};
use crate::{check, put, with_queue};

const VERSION: &str = "2026-10-06";
/// A time after that of all requests.
const LATER: &str = "2030-01-01T00:00:00Z";
const FORBIDDEN: &str = "403 AuthorizationPermissionMismatch";

fn account(permissions: &str, types: &str) -> String {
    let parameters = format!("sv={VERSION}&ss=q&srt={types}&sp={permissions}&se={LATER}");
    let text = format!("dev\n{permissions}\nq\n{types}\n\n{LATER}\n\n\n{VERSION}\n\n");
    shared_access(&parameters, &text)
}

/// A signature for the queue orders.
fn queue(permissions: &str, policy: &str) -> String {
    let expiry = if policy.is_empty() { LATER } else { "" };
    let mut parameters = format!("sv={VERSION}");
    for (name, value) in [("sp", permissions), ("se", expiry), ("si", policy)] {
        if !value.is_empty() {
            parameters += &format!("&{name}={value}");
        }
    }
    let text = format!("{permissions}\n\n{expiry}\n/queue/dev/orders\n{policy}\n\n\n{VERSION}");
    shared_access(&parameters, &text)
}

/// Status and code of a request that is signed by its address alone.
fn answer(server: &Server, request: &str, signature: &str) -> String {
    server.refusal(&signed(request, signature))
}

fn signed(request: &str, signature: &str) -> String {
    let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
    let mark = if line.contains('?') { '&' } else { '?' };
    format!("{line}{mark}{signature}\nauthorization: none\n{rest}")
}

#[test]
fn both_keys_and_both_schemes_let_the_owner_in() {
    let server = with_queue();
    let get = "GET /dev/orders?comp=metadata";
    for how in ["sign", "sign lite", "sign second", "sign lite second"] {
        let answer = server.refusal(&format!("{get}\nauthorization: {how}"));
        assert_eq!(answer, "200 without a code", "{how}");
    }
    let refused = |how: &str| server.refusal(&format!("{get}\nauthorization: {how}"));
    assert_eq!(refused("sign as other"), "403 AuthenticationFailed");
    assert_eq!(refused("SharedKey dev:AAEC"), "403 AuthenticationFailed");
    assert_eq!(refused("Digest a"), "400 InvalidAuthenticationInfo");
    assert_eq!(refused("none"), "401 NoAuthenticationInformation");
    let by_host = "GET /orders?comp=metadata\nhost: dev.queue.test";
    assert_eq!(server.refusal(by_host), "200 without a code");
}

#[test]
fn an_account_signature_grants_what_it_says() {
    let server = with_queue();
    let cases = [
        ("GET /dev?comp=list", "l", "s"),
        ("GET /dev?restype=service&comp=properties", "r", "s"),
        ("PUT /dev/others", "c", "c"),
        ("PUT /dev/others", "w", "c"),
        ("GET /dev/orders?comp=metadata", "r", "c"),
        ("PUT /dev/orders?comp=metadata", "w", "c"),
        (&*put("a"), "a", "o"),
        ("GET /dev/orders/messages", "p", "o"),
        ("GET /dev/orders/messages?peekonly=true", "r", "o"),
        ("DELETE /dev/orders/messages", "d", "o"),
        ("DELETE /dev/others", "d", "c"),
    ];
    for (request, letters, types) in cases {
        let granted = answer(&server, request, &account(letters, types));
        assert!(granted.starts_with('2'), "{request}: {granted}");
        assert_eq!(answer(&server, request, &account("t", types)), FORBIDDEN, "{request}");
        let elsewhere = answer(&server, request, &account(letters, "x"));
        assert_eq!(elsewhere, "403 AuthorizationResourceTypeMismatch", "{request}");
    }
    let acl = "GET /dev/orders?comp=acl";
    assert_eq!(answer(&server, acl, &account("rwdlacup", "sco")), "403 AuthorizationFailure");
}

#[test]
fn a_queue_signature_is_for_its_messages() {
    let server = with_queue();
    server.send("PUT /dev/others");
    let all = queue("raup", "");
    for good in [&*put("a"), "GET /dev/orders/messages", "GET /dev/orders?comp=metadata"] {
        assert!(answer(&server, good, &all).starts_with('2'), "{good}");
    }
    assert_eq!(answer(&server, &put("a"), &queue("rup", "")), FORBIDDEN);
    assert_eq!(answer(&server, "GET /dev/orders/messages", &queue("r", "")), FORBIDDEN);
    let other = put("a").replace("orders", "others");
    assert_eq!(answer(&server, &other, &all), "403 AuthenticationFailed");
    for more in
        ["DELETE /dev/orders", "PUT /dev/orders?comp=metadata", "DELETE /dev/orders/messages"]
    {
        let refused = answer(&server, more, &queue("rwdlacup", ""));
        assert_eq!(refused, "403 AuthorizationFailure", "{more}");
    }
    assert_eq!(answer(&server, "GET /dev?comp=list", &all), "403 AuthenticationFailed");
}

const POLICY: &str = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>\
    2030-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>\
    </SignedIdentifiers>";

#[test]
fn stored_policies_are_kept_and_can_be_taken_back() {
    let server = with_queue();
    let get = "GET /dev/orders?comp=acl";
    check(
        &server,
        get,
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><SignedIdentifiers></SignedIdentifiers>
    "#]],
    );
    check(
        &server,
        &format!("PUT /dev/orders?comp=acl\n\n{POLICY}"),
        expect![[r#"
        204 No Content
    "#]],
    );
    check(
        &server,
        get,
        expect![[r#"
        200 OK
        cache-control: no-cache

        <?xml version="1.0" encoding="utf-8"?><SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2030-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>
    "#]],
    );
    let peek = "GET /dev/orders/messages?peekonly=true";
    assert_eq!(answer(&server, peek, &queue("", "readers")), "200 without a code");
    assert_eq!(answer(&server, &put("a"), &queue("", "readers")), FORBIDDEN);
    assert_eq!(answer(&server, peek, &queue("", "others")), "403 AuthenticationFailed");
    server.send("PUT /dev/orders?comp=acl");
    assert_eq!(answer(&server, peek, &queue("", "readers")), "403 AuthenticationFailed");
    let bad = |policy: &str| server.refusal(&format!("PUT /dev/orders?comp=acl\n\n{policy}"));
    assert_eq!(bad("{}"), "400 InvalidXmlDocument");
    assert_eq!(bad(&POLICY.replace(">r<", ">w<")), "400 InvalidXmlNodeValue");
    assert_eq!(server.refusal("GET /dev/others?comp=acl"), "404 QueueNotFound");
}

/// The header of a request with a good token.
fn token() -> String {
    let now = NOW_MS / 1000;
    let claims = format!(
        "{{\"aud\":\"https://storage.azure.com\",\"iss\":\"https://sts.windows.net/t/\",\"nbf\":{now},\
         \"exp\":{now},\"iat\":{now},\"oid\":\"me\",\"tid\":\"mine\"}}"
    );
    format!("authorization: Bearer e30.{}.AAEC", URL_SAFE_NO_PAD.encode(claims))
}

#[test]
fn tokens_are_taken_over_tls_where_they_are_on() {
    let server = with_queue();
    let get = format!("GET /dev/orders?comp=metadata\n{}", token());
    check(
        &server,
        &get,
        expect![[r#"
        403 Forbidden
        x-ms-error-code: AuthenticationFailed

        <?xml version="1.0" encoding="utf-8"?><Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.</Message><AuthenticationErrorDetail>Authentication scheme Bearer is not allowed with HTTP.</AuthenticationErrorDetail></Error>
    "#]],
    );
    server.secure.set(true);
    assert_eq!(server.refusal(&get), "200 without a code");
    let off = Server::with(Limits::default(), Tokens::Off);
    off.secure.set(true);
    assert_eq!(off.refusal(&get), "403 AuthenticationFailed");
}

#[test]
fn a_user_gets_a_key_and_signs_with_it() {
    let server = with_queue();
    server.secure.set(true);
    let wish = "<KeyInfo><Start>2024-10-29T00:00:00Z</Start><Expiry>2024-10-30T00:00:00Z</Expiry></KeyInfo>";
    let ask = |header: &str| {
        format!("POST /dev?restype=service&comp=userdelegationkey\n{header}\n\n{wish}")
    };
    assert_eq!(server.refusal(&ask("authorization: sign")), "403 AuthenticationFailed");
    let answer = server.whole(&ask(&token()));
    let one = |name| elements(&answer, name).pop().unwrap();
    assert_eq!((one("SignedOid"), one("SignedTid")), ("me".into(), "mine".into()));
    assert_eq!((one("SignedService"), one("SignedVersion")), ("q".into(), VERSION.into()));
    let (start, expiry) = (one("SignedStart"), one("SignedExpiry"));
    let parameters = format!(
        "sv={VERSION}&sp=r&se={LATER}&skoid=me&sktid=mine&skt={start}&ske={expiry}&sks=q&skv={VERSION}"
    );
    let text = format!(
        "r\n\n{LATER}\n/queue/dev/orders\nme\nmine\n{start}\n{expiry}\nq\n{VERSION}\n\n\n\n\n{VERSION}"
    );
    let key = Key::from_base64(&one("Value")).unwrap();
    let signature = signed_with(&key, &parameters, &text);
    let peek = signed("GET /dev/orders/messages?peekonly=true", &signature);
    assert_eq!(server.refusal(&peek), "200 without a code");
    let longer = peek.replace("ske=2024-10-30", "ske=2025-10-30");
    assert_eq!(server.refusal(&longer), "403 AuthenticationFailed");
}
