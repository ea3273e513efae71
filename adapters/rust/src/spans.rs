//! The spans of a client, in the order in which they began.

use crate::log::CURRENT;
use crate::results::json;
use bson::{Bson, Document};
use mongodb::otel::OpentelemetryOptions;
use opentelemetry::trace::{Span as _, SpanId};
use opentelemetry::{Array, Context, KeyValue, Value as Attribute};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Spans(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    begun: Vec<SpanId>,
    ended: HashMap<SpanId, SpanData>,
}

impl Spans {
    pub fn options(&self, payload: bool) -> OpentelemetryOptions {
        let provider = SdkTracerProvider::builder().with_span_processor(self.clone()).build();
        let length = payload.then_some(usize::MAX).unwrap_or(0);
        OpentelemetryOptions::builder().enabled(true).query_text_max_length(length).tracer_provider(provider).build()
    }

    pub fn list(&self) -> Vec<Value> {
        let state = self.0.lock().unwrap();
        state.begun.iter().filter_map(|id| state.ended.get(id)).map(span).collect()
    }
}

impl SpanProcessor for Spans {
    fn on_start(&self, span: &mut Span, _: &Context) {
        if !CURRENT.try_with(|call| call.hidden).unwrap_or(false) {
            self.0.lock().unwrap().begun.push(span.span_context().span_id());
        }
    }

    fn on_end(&self, span: SpanData) {
        self.0.lock().unwrap().ended.insert(span.span_context.span_id(), span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Converts a span. The attributes of its events, such as an exception, are among its own.
fn span(span: &SpanData) -> Value {
    let own = span.attributes.iter().chain(span.events.iter().flat_map(|event| &event.attributes));
    let attributes: Document = own.map(|KeyValue { key, value, .. }| (key.to_string(), attribute(value))).collect();
    let parent = Some(span.parent_span_id).filter(|id| *id != SpanId::INVALID);
    json!({"id": span.span_context.span_id().to_string(), "parent": parent.map(|id| id.to_string()).unwrap_or_default(),
        "name": span.name, "attributes": json(attributes)})
}

fn attribute(value: &Attribute) -> Bson {
    match value {
        Attribute::Bool(value) => (*value).into(),
        Attribute::I64(value) => (*value).into(),
        Attribute::F64(value) => (*value).into(),
        Attribute::Array(Array::String(values)) => values.iter().map(|text| Bson::from(text.as_str())).collect::<Vec<_>>().into(),
        other => other.to_string().into(),
    }
}
