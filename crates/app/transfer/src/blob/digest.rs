//! MD5 sums as the service has them in `Content-MD5`: base64 of sixteen bytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};

const BUFFER_BYTES: usize = 256 * 1024;

/// The sum of what is given piece by piece.
#[derive(Default)]
pub struct Sum(Md5);

impl Sum {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn text(self) -> String {
        STANDARD.encode(self.0.finalize())
    }
}

pub(super) fn of_bytes(bytes: &[u8]) -> String {
    let mut sum = Sum::default();
    sum.add(bytes);
    sum.text()
}

/// The sum of a whole file, which may be of any size.
pub(super) fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut sum = Sum::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(sum.text()),
            Ok(count) => sum.add(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_bytes_have_the_sums_of_the_standard() {
        assert_eq!(of_bytes(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
        assert_eq!(of_bytes(b"abc"), "kAFQmDzST7DWlj99KOF/cg==");
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes = vec![7; BUFFER_BYTES + 1];
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(of_file(file.path()).unwrap(), of_bytes(&bytes));
    }
}
