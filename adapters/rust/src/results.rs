//! Results of the driver in the form of the format.

use bson::{doc, Bson, Document};
use mongodb::error::PartialBulkWriteResult;
use mongodb::results::{SummaryBulkWriteResult, UpdateResult, VerboseBulkWriteResult};
use serde::Serialize;
use std::collections::HashMap;

/// Converts a value to canonical Extended JSON.
pub fn json(value: impl Into<Bson>) -> serde_json::Value {
    value.into().into_canonical_extjson()
}

/// Converts a result whose fields have the names of the format.
pub fn same<T: Serialize>(result: T) -> Bson {
    bson::serialize_to_bson(&result).unwrap_or_else(|error| Bson::String(error.to_string()))
}

pub fn updated(result: UpdateResult) -> Bson {
    let upserted = doc! {"upsertedCount": i32::from(result.upserted_id.is_some())};
    same(result).as_document().into_iter().cloned().flatten().chain(upserted).collect::<Document>().into()
}

/// Converts values by index.
pub fn indexed<T>(items: &HashMap<usize, T>, convert: impl Fn(&T) -> Bson) -> Document {
    items.iter().map(|(index, item)| (index.to_string(), convert(item))).collect()
}

pub fn summary(result: &SummaryBulkWriteResult) -> Document {
    doc! {
        "insertedCount": result.inserted_count, "matchedCount": result.matched_count,
        "modifiedCount": result.modified_count, "upsertedCount": result.upserted_count,
        "deletedCount": result.deleted_count,
    }
}

pub fn verbose(result: &VerboseBulkWriteResult) -> Document {
    let mut out = summary(&result.summary);
    out.insert("insertResults", indexed(&result.insert_results, |r| same(r)));
    out.insert("updateResults", indexed(&result.update_results, |r| same(r)));
    out.insert("deleteResults", indexed(&result.delete_results, |r| same(r)));
    out
}

pub fn partial(result: &PartialBulkWriteResult) -> Document {
    match result {
        PartialBulkWriteResult::Summary(result) => summary(result),
        PartialBulkWriteResult::Verbose(result) => verbose(result),
    }
}
