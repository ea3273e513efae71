//! Errors, of the driver and of the adapter, in the form of the protocol.

use crate::results::{json, partial};
use bson::Document;
use mongodb::error::{Error, ErrorKind, WriteFailure};
use serde_json::{json, Map, Value};
use std::fmt::{Display, Formatter};

/// The driver's message about a write concern that it refuses.
const UNACKNOWLEDGED: &str = "Unacknowledged write concerns are not supported";

/// The error of a call.
#[derive(Clone, Debug)]
pub enum Failure {
    Driver(Error),
    Given(Value),    // in the form of the protocol
    Invalid(String), // the call is not valid: the test is broken
}

impl Failure {
    /// The driver has no public API for something.
    pub fn lacks(what: impl Display) -> Self {
        let message = format!("the Rust driver has no public {what}");
        Failure::Given(json!({"message": message, "client": true, "unsupported": format!("{what} of the Rust driver")}))
    }

    pub fn invalid(message: impl Display) -> Self {
        Failure::Invalid(message.to_string())
    }

    pub fn client(message: impl Display, kind: &str) -> Self {
        Failure::Given(json!({"message": message.to_string(), "client": true, "kind": kind}))
    }

    pub fn describe(&self) -> Value {
        match self {
            Failure::Driver(error) => describe(error),
            Failure::Given(value) => value.clone(),
            Failure::Invalid(message) => json!({"message": message, "client": true, "kind": "argument"}),
        }
    }

    /// The error as one that a callback of withTransaction can raise.
    pub fn into_driver(self) -> Error {
        if let Failure::Driver(error) = self { error } else { Error::custom(self.describe()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match (error.get_custom::<Value>(), &*error.kind) {
            (Some(given), _) => Failure::Given(given.clone()),
            (None, ErrorKind::InvalidArgument { message, .. }) if message.contains(UNACKNOWLEDGED) => {
                Failure::lacks("unacknowledged write concern")
            }
            _ => Failure::Driver(error),
        }
    }
}

/// Streams of GridFS wrap errors of the driver.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let message = error.to_string();
        match error.into_inner().map(|inner| inner.downcast::<Error>()) {
            Some(Ok(error)) => (*error).into(),
            _ => Failure::client(message, "gridfs"),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "{}", self.describe()["message"].as_str().unwrap_or_default())
    }
}

impl std::error::Error for Failure {}

impl serde::de::Error for Failure {
    fn custom<T: Display>(message: T) -> Self {
        Failure::invalid(message)
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Failure::lacks(format!("option {field}"))
    }
}

/// The error that caused another one: of a handshake, or of a command of a bulk write.
fn cause(error: &Error) -> Option<&Error> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<Error>().or_else(|| source.downcast_ref::<Box<Error>>().map(|boxed| &**boxed))
}

/// The fields of a write error or a write concern error. These have no common type.
macro_rules! written {
    ($e:expr) => {
        json!({"code": $e.code, "message": $e.message, "details": $e.details.clone().map(json)})
    };
}

pub fn describe(error: &Error) -> Value {
    let below = cause(error).map(describe).unwrap_or(json!({}));
    let mut labels: Vec<String> = error.labels().iter().cloned().collect();
    labels.extend(below["labels"].as_array().into_iter().flatten().filter_map(|label| label.as_str().map(String::from)));
    labels.sort();
    labels.dedup();
    let (kind, fields) = match &*error.kind {
        ErrorKind::Command(e) => ("server", json!({"code": e.code, "codeName": e.code_name})),
        ErrorKind::Write(WriteFailure::WriteError(e)) =>
            ("write", json!({"code": e.code, "codeName": e.code_name, "writeErrors": {"0": written!(e)}})),
        ErrorKind::Write(WriteFailure::WriteConcernError(e)) =>
            ("write", json!({"code": e.code, "codeName": e.code_name, "writeConcernErrors": [written!(e)]})),
        ErrorKind::InsertMany(e) => {
            let (writes, concern) = (e.write_errors.iter().flatten(), e.write_concern_error.as_ref());
            let code = writes.clone().map(|write| write.code).next().or(concern.map(|concern| concern.code));
            let writes: Map<_, _> = writes.map(|write| (write.index.to_string(), written!(write))).collect();
            let concerns: Vec<_> = concern.iter().map(|concern| written!(concern)).collect();
            ("bulk write", json!({"code": code, "writeErrors": writes, "writeConcernErrors": concerns}))
        }
        ErrorKind::BulkWrite(e) => {
            let writes: Map<_, _> = e.write_errors.iter().map(|(i, write)| (i.to_string(), written!(write))).collect();
            let concerns: Vec<_> = e.write_concern_errors.iter().map(|concern| written!(concern)).collect();
            let partial = e.partial_result.as_ref().map(|result| json(partial(result)));
            ("client bulk write", json!({"writeErrors": writes, "writeConcernErrors": concerns, "partial": partial}))
        }
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => ("network", Value::Null),
        ErrorKind::ServerSelection { .. } => ("server selection", Value::Null),
        ErrorKind::Authentication { .. } => ("authentication", Value::Null),
        ErrorKind::GridFs(_) => ("gridfs", Value::Null),
        ErrorKind::InvalidArgument { .. } => ("argument", Value::Null),
        _ => ("client", Value::Null),
    };
    let replied = fields.is_object() && (kind != "client bulk write" || cause(error).is_none());
    let mut out = below.as_object().cloned().unwrap_or_default();
    out.extend(fields.as_object().cloned().unwrap_or_default());
    let client = if replied { json!(false) } else { out.remove("client").unwrap_or(json!(true)) };
    let more = json!({"kind": kind, "message": error.to_string(), "labels": labels, "client": client});
    out.extend(more.as_object().cloned().unwrap_or_default());
    if let (Some(response), "server") = (error.server_response(), kind) {
        out.extend(Document::try_from(response.as_ref()).ok().map(|reply| ("response".to_string(), json(reply))));
    }
    Value::Object(out.into_iter().filter(|(_, value)| !value.is_null()).collect())
}
