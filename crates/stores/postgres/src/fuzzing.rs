//! Entry points of the fuzzer: any bytes go in, and a panic is a finding.

use crate::settings::Settings;

/// An address of a database: what is read has a place, and no password that is written into it is repeated.
pub fn database_address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Settings::parse(&text) {
        Ok(settings) => {
            assert!(!settings.hosts.is_empty() && !settings.schema.is_empty());
            assert!(settings.hosts.iter().all(|host| host.port > 0));
        }
        Err(error) => assert_eq!(error.code(), "bad-database-address"),
    }
    let secret = format!("postgres://me:hunter2-{text}@host/database");
    if let Err(error) = Settings::parse(&secret) {
        assert!(!error.message().contains("hunter2"));
    }
}

#[cfg(test)]
mod tests {
    use lazuli_env::SplitMix64;

    #[test]
    fn addresses_that_were_cut_and_changed_are_read_or_refused() {
        let whole = "postgres://me@db1:5433,[::1]/fleet?sslmode=require&schema=a_1&password_env=X";
        let mut noise = SplitMix64::new(1);
        for _ in 0..20_000 {
            let mut bytes = whole.as_bytes().to_vec();
            bytes.truncate((noise.next_u64() % 80) as usize);
            for _ in 0..noise.next_u64() % 4 {
                let at = (noise.next_u64() % 80) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = noise.next_u64() as u8;
                }
            }
            super::database_address(&bytes);
        }
    }
}
