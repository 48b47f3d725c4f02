//! ACL, as far as access keys of accounts go: who the client is, who there is, which categories there are.

use crate::call::Call;
use crate::command::{Categories, Run, TABLE};
use crate::failure::Failure;

pub(super) const RUNS: &[(&str, Run)] =
    &[("acl|cat", cat), ("acl|list", list), ("acl|users", users), ("acl|whoami", whoami)];

fn whoami(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let name = call.session.user.as_ref().map_or("default", |it| &it.name);
    call.out.text(name);
    Ok(())
}

fn users(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    call.out.array(1);
    call.out.text("default");
    Ok(())
}

fn list(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let password = if call.server.needs_no_password() { "nopass " } else { "" };
    call.out.array(1);
    call.out.text(&format!("user default on {password}~* &* +@all"));
    Ok(())
}

fn cat(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let Some(name) = call.args.get(2) else {
        call.out.array(Categories::NAMES.len());
        Categories::NAMES.iter().for_each(|(name, _)| call.out.text(name));
        return Ok(());
    };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let category = Categories::named(&name)
        .ok_or_else(|| Failure::new(format!("ERR Unknown category '{name}'")))?;
    let all: Vec<_> = TABLE.commands.iter().filter(|it| it.categories.has(category)).collect();
    call.out.array(all.len());
    all.iter().for_each(|it| call.out.text(it.name));
    Ok(())
}
