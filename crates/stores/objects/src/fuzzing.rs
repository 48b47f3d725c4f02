//! What outside bytes reach here: addresses in settings.

use crate::settings::Settings;

/// An address is read or refused, and a refusal does not repeat it.
pub fn address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(settings) = Settings::parse(text) {
        assert!(!settings.bucket.is_empty() && settings.place().contains(&settings.bucket));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_that_were_cut_and_changed_are_read_or_refused() {
        let whole = "az://bucket/a/b?account=me&endpoint=http://h:1/me&key_env=KEY&ca_file=/x%20y";
        for at in 0..whole.len() {
            super::address(&whole.as_bytes()[..at]);
            for byte in *b"/?&=%:@\0\xff" {
                let mut changed = whole.as_bytes().to_vec();
                changed[at] = byte;
                super::address(&changed);
            }
        }
    }
}
