//! The signature of a request to the document service by an account's key, as its clients make it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::uri::percent_encode;

use super::Key;

/// The header `authorization` of a request. `kind` is the resource type, such as `docs`; `link` is the decoded path of what
/// is addressed, without slashes at its ends; `date` is the value of the header `x-ms-date`.
pub fn authorization(key: &Key, method: &str, kind: &str, link: &str, date: &str) -> String {
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let signature = STANDARD.encode(key.sign(&text));
    percent_encode(&format!("type=master&ver=1.0&sig={signature}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_one_of_the_documentation() {
        // The worked example of the service's reference, "Access control on resources".
        let key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
        let key = Key::from_base64(key).unwrap();
        let header =
            authorization(&key, "GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT");
        let expected = "type%3Dmaster%26ver%3D1.0%26sig%3D\
                        c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D";
        assert_eq!(header, expected);
    }
}
