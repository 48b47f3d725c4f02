//! Offers: the throughput of a container, or of a database whose containers share it, and what a change of it does to the
//! ranges of containers.

use lazuli_engine::Lsn;
use lazuli_shapes::document::{Resource, ResourceKind};
use lazuli_value::{Object, Value};

use crate::error::{Fault, Result};
use crate::headers::Throughput;
use crate::limits::{AUTOSCALE_STEP, Limits, THROUGHPUT_MAX, THROUGHPUT_MIN, THROUGHPUT_STEP};
use crate::request::Kind;
use crate::resources::{all, link};
use crate::{Call, Front};

/// The throughput that the headers of a request ask for.
pub(crate) fn wanted(call: &Call) -> Result<Option<Throughput>> {
    call.headers.throughput.map(checked).transpose()
}

fn checked(throughput: Throughput) -> Result<Throughput> {
    let bad = |what: String| {
        Err(Fault::bad_request(format!("The offer should have valid throughput values: {what}.")))
    };
    match throughput {
        Throughput::Manual(units) if !(THROUGHPUT_MIN..=THROUGHPUT_MAX).contains(&units) => {
            bad(format!("between {THROUGHPUT_MIN} and {THROUGHPUT_MAX} inclusive"))
        }
        Throughput::Manual(units) if units % THROUGHPUT_STEP != 0 => {
            bad(format!("in increments of {THROUGHPUT_STEP}"))
        }
        Throughput::Autoscale(units)
            if units % AUTOSCALE_STEP != 0
                || !(AUTOSCALE_STEP..=THROUGHPUT_MAX).contains(&units) =>
        {
            bad(format!("autoscale in increments of {AUTOSCALE_STEP}, from {AUTOSCALE_STEP} on"))
        }
        good => Ok(good),
    }
}

impl Throughput {
    /// The most units per second.
    pub(crate) fn units(self) -> u32 {
        match self {
            Self::Manual(units) | Self::Autoscale(units) => units,
        }
    }

    /// How many ranges a container begins with.
    pub(crate) fn ranges(self, limits: &Limits) -> u16 {
        let each = match self {
            Self::Manual(_) => limits.initial_partition_units,
            Self::Autoscale(_) => limits.physical_partition_units_max,
        };
        u16::try_from(self.units().div_ceil(each.max(1))).unwrap_or(u16::MAX).max(1)
    }

    /// How many ranges a container of so many is split into for this throughput; none if they can give it.
    pub(crate) fn more_ranges(self, ranges: usize, limits: &Limits) -> Option<u32> {
        let most = limits.physical_partition_units_max as usize * ranges;
        let pieces = self.units().div_ceil(limits.initial_partition_units.max(1));
        (self.units() as usize > most).then_some(pieces)
    }

    fn content(self, minimum: u32) -> Object {
        let mut content = Object::new();
        match self {
            Self::Manual(units) => {
                content.insert("offerThroughput", i64::from(units).into());
            }
            Self::Autoscale(units) => {
                // What is provisioned at the moment: the least, since nothing is known of the load.
                content.insert("offerThroughput", i64::from(units / 10).into());
                let mut autoscale = Object::new();
                autoscale.insert("maxThroughput", i64::from(units).into());
                content.insert("offerAutopilotSettings", Value::Object(autoscale));
            }
        }
        content.insert("offerIsRUPerMinuteThroughputEnabled", false.into());
        let mut least = Object::new();
        least.insert("maxThroughputEverProvisioned", i64::from(minimum).into());
        least.insert("maxConsumedStorageEverInKB", 0.into());
        content.insert("offerMinimumThroughputParameters", Value::Object(least));
        content
    }
}

/// Creates the offer of a database or container.
pub(crate) async fn create(
    front: &Front,
    call: &Call,
    of: &Resource,
    throughput: Throughput,
) -> Result<Resource> {
    let kind = match of.kind {
        ResourceKind::Database => Kind::Database,
        _ => Kind::Container,
    };
    let mut body = Object::new();
    body.insert("offerVersion", "V2".into());
    body.insert("offerType", "Invalid".into());
    body.insert("content", Value::Object(throughput.content(throughput.units())));
    body.insert("resource", link(kind, &of.rid).into());
    body.insert("offerResourceId", of.rid.to_string().into());
    let account = &call.sender.account;
    let body = Value::Object(body);
    let documents = &front.documents;
    Ok(documents.create_resource(account, ResourceKind::Offer, None, None, body).await?)
}

/// The throughput that an offer says.
pub(crate) fn throughput(offer: &Value) -> Option<Throughput> {
    let number = |object: &Object, name: &str| match object.get(name) {
        Some(Value::Int64(units)) => u32::try_from(*units).ok(),
        _ => None,
    };
    let Value::Object(offer) = offer else { return None };
    let Some(Value::Object(content)) = offer.get("content") else { return None };
    match content.get("offerAutopilotSettings") {
        Some(Value::Object(settings)) => {
            number(settings, "maxThroughput").map(Throughput::Autoscale)
        }
        _ => number(content, "offerThroughput").map(Throughput::Manual),
    }
}

/// The offer of a resource by its id.
pub(crate) async fn find(front: &Front, call: &Call, rid: &str) -> Result<Option<Resource>> {
    let offers = all(front, call, ResourceKind::Offer, None).await?;
    Ok(offers.into_iter().find(|offer| resource_id(offer) == Some(rid)))
}

/// Adds to offers as clients see them whether the ranges for their throughput are still being made.
pub(crate) async fn add_pending(front: &Front, call: &Call, rows: &mut [Value]) -> Result<()> {
    let pending = front.documents.pending_ranges(&call.sender.account).await?;
    for row in rows {
        let Value::Object(offer) = row else { continue };
        let is_pending = match offer.get("offerResourceId") {
            Some(Value::String(rid)) => pending.iter().any(|one| one == rid),
            _ => false,
        };
        if let Some(Value::Object(content)) = offer.get_mut("content") {
            content.insert("isOfferReplacePending", is_pending.into());
        }
    }
    Ok(())
}

fn resource_id(offer: &Resource) -> Option<&str> {
    match &offer.body {
        Value::Object(body) => match body.get("offerResourceId") {
            Some(Value::String(rid)) => Some(rid),
            _ => None,
        },
        _ => None,
    }
}

/// Deletes the offers of resources that are gone.
pub(crate) async fn forget(front: &Front, call: &Call, gone: &[Resource]) -> Result<()> {
    let has_offer =
        |one: &&Resource| matches!(one.kind, ResourceKind::Database | ResourceKind::Collection);
    let gone: Vec<String> = gone.iter().filter(has_offer).map(|one| one.rid.to_string()).collect();
    if gone.is_empty() {
        return Ok(());
    }
    for offer in all(front, call, ResourceKind::Offer, None).await? {
        if resource_id(&offer).is_some_and(|rid| gone.iter().any(|one| one == rid)) {
            front.documents.delete_resource(&call.sender.account, &offer.rid, None).await?;
        }
    }
    Ok(())
}

/// Changes the throughput of an offer.
pub(crate) async fn replace(
    front: &Front,
    call: &Call,
    found: &Resource,
    body: &Object,
    version: Option<Lsn>,
) -> Result<Resource> {
    let wanted = throughput(&Value::Object(body.clone()));
    let wanted = checked(wanted.ok_or_else(|| Fault::bad_input("the offer has no throughput"))?)?;
    let Value::Object(mut kept) = found.body.clone() else { return Err(Fault::not_found()) };
    let highest = highest(&kept).max(wanted.units());
    let least = least(highest, wanted);
    if wanted.units() < least {
        return Err(Fault::bad_request(format!(
            "The offer should have valid throughput values between {least} and {THROUGHPUT_MAX} inclusive."
        )));
    }
    kept.insert("content", Value::Object(wanted.content(highest)));
    let account = &call.sender.account;
    if call.headers.is_preview {
        let ranges = front.ranges_with(account, resource_id(found).unwrap_or_default(), wanted);
        let (now, then) = ranges.await?;
        kept.insert("rangesNow", now.into());
        kept.insert("rangesThen", then.into());
        return Ok(Resource { body: Value::Object(kept), ..found.clone() });
    }
    let kept = Value::Object(kept);
    let replaced = front.documents.replace_resource(account, &found.rid, kept, version).await?;
    front.throughput_changed(account, resource_id(found).unwrap_or_default(), wanted).await?;
    Ok(replaced)
}

/// The highest throughput that the offer ever had.
fn highest(offer: &Object) -> u32 {
    let found = match offer.get("content") {
        Some(Value::Object(content)) => match content.get("offerMinimumThroughputParameters") {
            Some(Value::Object(least)) => match least.get("maxThroughputEverProvisioned") {
                Some(Value::Int64(units)) => u32::try_from(*units).ok(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    found.unwrap_or(THROUGHPUT_MIN)
}

/// The least throughput that an offer can be set to.
fn least(highest: u32, wanted: Throughput) -> u32 {
    match wanted {
        Throughput::Manual(_) => (highest / 100).max(THROUGHPUT_MIN),
        Throughput::Autoscale(_) => (highest / 10).max(AUTOSCALE_STEP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_from_throughput() {
        let limits = Limits::default();
        let ranges = |throughput: Throughput| throughput.ranges(&limits);
        assert_eq!(ranges(Throughput::Manual(400)), 1);
        assert_eq!(ranges(Throughput::Manual(12_000)), 2);
        assert_eq!(ranges(Throughput::Manual(30_000)), 5);
        assert_eq!(ranges(Throughput::Autoscale(10_000)), 1);
        assert_eq!(ranges(Throughput::Autoscale(11_000)), 2);
    }

    #[test]
    fn more_than_its_ranges_can_give_splits_a_container() {
        let limits = Limits::default();
        let more = |units, ranges| Throughput::Manual(units).more_ranges(ranges, &limits);
        assert_eq!(more(10_000, 1), None);
        assert_eq!(more(10_100, 1), Some(2));
        assert_eq!(more(30_000, 1), Some(5));
        assert_eq!(more(30_000, 3), None);
    }

    #[test]
    fn throughput_comes_in_steps() {
        for good in
            [Throughput::Manual(400), Throughput::Manual(1_100), Throughput::Autoscale(1_000)]
        {
            assert_eq!(checked(good), Ok(good));
        }
        for bad in [
            Throughput::Manual(300),
            Throughput::Manual(450),
            Throughput::Manual(2_000_000),
            Throughput::Autoscale(1_500),
            Throughput::Autoscale(0),
        ] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_offer_tells_its_throughput_again() {
        for one in [Throughput::Manual(700), Throughput::Autoscale(4_000)] {
            let mut offer = Object::new();
            offer.insert("content", Value::Object(one.content(700)));
            assert_eq!(highest(&offer), 700);
            assert_eq!(throughput(&Value::Object(offer)), Some(one));
        }
        assert_eq!(least(50_000, Throughput::Manual(400)), 500);
    }
}
