//! The properties of a storage service, as XML: logging and metrics, which are kept and given back, and CORS rules.
//!
//! A document that sets properties may leave sections out; those stay as they were.

use lazuli_http::cors::{CorsRule, RULES_MAX};
use lazuli_http::xml::{self, Element};

use crate::DocumentError;
use crate::service::ServiceProperties;

/// The longest list of origins, methods or headers in a rule.
pub const RULE_LIST_BYTES_MAX: usize = 2_048;
/// The longest that logs or metrics may be kept.
pub const RETENTION_DAYS_MAX: u32 = 365;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    pub logging: Logging,
    pub hour_metrics: Metrics,
    pub minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    pub delete: bool,
    pub read: bool,
    pub write: bool,
    pub retention_days: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    pub enabled: bool,
    /// Whether calls are counted one by one; said only where metrics are on.
    pub include_apis: Option<bool>,
    pub retention_days: Option<u32>,
}

impl ServiceProperties for Properties {
    fn changed_by(&self, document: &[u8]) -> Result<Self, DocumentError> {
        self.changed_by_some(document, |_| Ok(false))
    }

    fn write(&self) -> String {
        self.write_with("")
    }

    fn cors(&self) -> &[CorsRule] {
        &self.cors
    }
}

impl Properties {
    /// These properties, with the sections of the document in place of theirs. A service may have sections of its own:
    /// `own` says whether a section is one.
    pub fn changed_by_some(
        &self,
        body: &[u8],
        mut own: impl FnMut(&Element) -> Result<bool, DocumentError>,
    ) -> Result<Self, DocumentError> {
        let root = xml::parse(body)?;
        if root.name != "StorageServiceProperties" {
            return Err(DocumentError::NotXml);
        }
        let mut properties = self.clone();
        for section in &root.children {
            match section.name.as_str() {
                "Logging" => properties.logging = logging(section)?,
                // Older clients call the hourly ones just that.
                "HourMetrics" | "Metrics" => properties.hour_metrics = metrics(section)?,
                "MinuteMetrics" => properties.minute_metrics = metrics(section)?,
                "Cors" => properties.cors = cors(section)?,
                _ if own(section)? => {}
                _ => return Err(DocumentError::NotXml),
            }
        }
        Ok(properties)
    }

    /// The document, with the sections of the service's own at its end.
    pub fn write_with(&self, own: &str) -> String {
        let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>";
        let mut out = String::from(head);
        out.push_str("<Logging><Version>1.0</Version>");
        write_flag(&mut out, "Delete", self.logging.delete);
        write_flag(&mut out, "Read", self.logging.read);
        write_flag(&mut out, "Write", self.logging.write);
        write_retention(&mut out, self.logging.retention_days);
        out.push_str("</Logging>");
        for (name, metrics) in
            [("HourMetrics", &self.hour_metrics), ("MinuteMetrics", &self.minute_metrics)]
        {
            out.push_str(&format!("<{name}><Version>1.0</Version>"));
            write_flag(&mut out, "Enabled", metrics.enabled);
            if let Some(include) = metrics.include_apis {
                write_flag(&mut out, "IncludeAPIs", include);
            }
            write_retention(&mut out, metrics.retention_days);
            out.push_str(&format!("</{name}>"));
        }
        out.push_str("<Cors>");
        for rule in &self.cors {
            write_rule(&mut out, rule);
        }
        out.push_str("</Cors>");
        out.push_str(own);
        out.push_str("</StorageServiceProperties>");
        out
    }
}

pub fn write_flag(out: &mut String, name: &str, value: bool) {
    xml::write(out, name, if value { "true" } else { "false" });
}

pub fn write_retention(out: &mut String, days: Option<u32>) {
    out.push_str("<RetentionPolicy>");
    write_flag(out, "Enabled", days.is_some());
    if let Some(days) = days {
        xml::write(out, "Days", &days.to_string());
    }
    out.push_str("</RetentionPolicy>");
}

fn write_rule(out: &mut String, rule: &CorsRule) {
    out.push_str("<CorsRule>");
    xml::write(out, "AllowedMethods", &rule.methods);
    xml::write(out, "AllowedOrigins", &rule.origins);
    xml::write(out, "AllowedHeaders", &rule.allowed_headers);
    xml::write(out, "ExposedHeaders", &rule.exposed_headers);
    xml::write(out, "MaxAgeInSeconds", &rule.max_age_seconds.to_string());
    out.push_str("</CorsRule>");
}

fn logging(section: &Element) -> Result<Logging, DocumentError> {
    Ok(Logging {
        delete: flag(section, "Delete")?,
        read: flag(section, "Read")?,
        write: flag(section, "Write")?,
        retention_days: retention(section)?,
    })
}

fn metrics(section: &Element) -> Result<Metrics, DocumentError> {
    let include = section.child("IncludeAPIs").map(|_| flag(section, "IncludeAPIs")).transpose()?;
    Ok(Metrics {
        enabled: flag(section, "Enabled")?,
        include_apis: include,
        retention_days: retention(section)?,
    })
}

/// Nothing is "no", because clients leave out what is off. Python's older SDKs write `True` and `False`.
pub fn flag(section: &Element, name: &str) -> Result<bool, DocumentError> {
    match section.child_text(name) {
        None | Some("false" | "False") => Ok(false),
        Some("true" | "True") => Ok(true),
        Some(_) => Err(DocumentError::BadValue),
    }
}

fn retention(section: &Element) -> Result<Option<u32>, DocumentError> {
    section.child("RetentionPolicy").map_or(Ok(None), retention_days)
}

/// The days that a policy keeps something; none if it is off.
pub fn retention_days(policy: &Element) -> Result<Option<u32>, DocumentError> {
    if !flag(policy, "Enabled")? {
        return Ok(None);
    }
    let days = policy.child_text("Days").and_then(|days| days.parse().ok());
    let days = days.filter(|days| (1..=RETENTION_DAYS_MAX).contains(days));
    days.map(Some).ok_or(DocumentError::BadValue)
}

fn cors(section: &Element) -> Result<Vec<CorsRule>, DocumentError> {
    if section.children.len() > RULES_MAX {
        return Err(DocumentError::BadValue);
    }
    section.children.iter().map(rule).collect()
}

fn rule(element: &Element) -> Result<CorsRule, DocumentError> {
    let list = |name: &str| match element.child_text(name).unwrap_or_default() {
        text if text.len() <= RULE_LIST_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(DocumentError::BadValue),
    };
    let rule = CorsRule {
        origins: list("AllowedOrigins")?,
        methods: list("AllowedMethods")?,
        allowed_headers: list("AllowedHeaders")?,
        exposed_headers: list("ExposedHeaders")?,
        max_age_seconds: match element.child_text("MaxAgeInSeconds").map(str::parse) {
            None => 0,
            Some(Ok(seconds)) => seconds,
            Some(Err(_)) => return Err(DocumentError::BadValue),
        },
    };
    if element.name != "CorsRule" || rule.origins.is_empty() || rule.methods.is_empty() {
        return Err(DocumentError::BadValue);
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Properties {
        Properties {
            logging: Logging { delete: true, retention_days: Some(7), ..Logging::default() },
            hour_metrics: Metrics {
                enabled: true,
                include_apis: Some(false),
                retention_days: None,
            },
            minute_metrics: Metrics::default(),
            cors: vec![CorsRule {
                origins: "http://a,*".into(),
                methods: "GET".into(),
                max_age_seconds: 5,
                ..CorsRule::default()
            }],
        }
    }

    #[test]
    fn what_was_written_reads_the_same() {
        let properties = some();
        let read = Properties::default().changed_by(properties.write().as_bytes());
        assert_eq!(read, Ok(properties));
    }

    #[test]
    fn sections_that_are_left_out_stay() {
        let change = b"<StorageServiceProperties><Cors/></StorageServiceProperties>";
        assert_eq!(some().changed_by(change), Ok(Properties { cors: vec![], ..some() }));
    }

    #[test]
    fn flags_may_be_written_as_python_does() {
        let change = b"<StorageServiceProperties><Logging><Version>1.0</Version><Read>True</Read>\
            <Write>False</Write></Logging></StorageServiceProperties>";
        let changed = Properties::default().changed_by(change).unwrap();
        assert_eq!((changed.logging.read, changed.logging.write), (true, false));
    }

    #[test]
    fn bad_values_are_refused() {
        let check = |inner: &str| {
            let text = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
            Properties::default().changed_by(text.as_bytes()).unwrap_err()
        };
        assert_eq!(check("<Other/>"), DocumentError::NotXml);
        assert_eq!(check("<Logging><Read>maybe</Read></Logging>"), DocumentError::BadValue);
        assert_eq!(check("<Cors><CorsRule/></Cors>"), DocumentError::BadValue);
        let rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                    </CorsRule>";
        assert_eq!(check(&format!("<Cors>{}</Cors>", rule.repeat(6))), DocumentError::BadValue);
        let days = "<RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy>";
        assert_eq!(check(&format!("<Logging>{days}</Logging>")), DocumentError::BadValue);
        assert_eq!(Properties::default().changed_by(b"<a/>"), Err(DocumentError::NotXml));
    }
}
