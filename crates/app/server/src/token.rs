//! The token of the admin API: from a setting, or generated once and stored in the data folder.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::folder::{read_small, write_atomically};
use crate::secret::Secret;

const TOKEN_BYTES: usize = 32;

/// Where the token is kept.
pub fn path(data: &Path) -> PathBuf {
    data.join("admin-token")
}

/// The kept token, if there is one.
pub fn read(data: &Path) -> Result<Option<Secret>> {
    let text = read_small(&path(data))?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).map(Secret::new))
}

/// The kept token, or a new one that is kept from now on.
pub fn read_or_make(data: &Path) -> Result<Secret> {
    if let Some(token) = read(data)? {
        return Ok(token);
    }
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::new("no-random", format!("the system gives no random bytes: {error}"))
    })?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_atomically(&path(data), &format!("{text}\n"), 0o600)?;
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let token = read_or_make(folder.path()).unwrap();
        assert_eq!(token.reveal().len(), 64);
        assert_eq!(read_or_make(folder.path()).unwrap(), token);
        assert_eq!(read(folder.path()).unwrap(), Some(token));
        let mode = std::fs::metadata(path(folder.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
