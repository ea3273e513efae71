//! An adapter of utr for the Rust driver: JSON-RPC 2.0 messages, one per line, on standard input and output.
//! docs/driver/engine-protocol.md describes the messages. Every request is a task, and all tasks share one thread.

mod arguments;
mod entities;
mod failures;
mod log;
mod operations;
mod results;
mod spans;

use bson::Document;
use entities::Test;
use failures::Failure;
use log::{Current, CURRENT};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

#[derive(Default)]
struct Adapter {
    tests: Mutex<HashMap<i64, Arc<Test>>>, // open ones, by number
    calls: Mutex<HashMap<i64, oneshot::Sender<()>>>, // the senders cancel them
    callbacks: Mutex<HashMap<usize, oneshot::Sender<Value>>>, // the senders pass the replies on
}

fn main() {
    let (lines, mut received) = mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let adapter = Arc::new(Adapter::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        while let Some(line) = received.recv().await {
            adapter.clone().receive(line);
        }
    });
    std::process::exit(0); // without waiting for the driver's tasks
}

impl Adapter {
    fn receive(self: Arc<Self>, line: String) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let id = message["id"].as_i64().unwrap_or_default();
        match message["method"].as_str().map(String::from) {
            None => drop(self.callbacks.lock().unwrap().remove(&(id as usize)).map(|reply| reply.send(message))),
            Some(method) if method == "cancel" => {
                let call = message["params"]["id"].as_i64().and_then(|id| self.calls.lock().unwrap().remove(&id));
                let _ = call.map(|cancel| cancel.send(()));
            }
            Some(method) => drop(tokio::spawn(async move {
                send(match self.answer(id, &method, &message["params"]).await {
                    Ok(result) => json!({"id": id, "result": result}),
                    Err(failure) => json!({"id": id, "error": {"code": -32603, "message": failure.to_string()}}),
                });
            })),
        }
    }

    async fn answer(self: &Arc<Self>, id: i64, method: &str, params: &Value) -> Result<Value, Failure> {
        let number = params["test"].as_i64().unwrap_or_default();
        let test = self.tests.lock().unwrap().get(&number).cloned().unwrap_or_default();
        let document = |name: &str| match params.get(name) {
            Some(given) => Document::deserialize(given).map_err(Failure::invalid),
            None => Ok(Document::new()),
        };
        let text = |name: &str| params[name].as_str().unwrap_or_default();
        match method {
            "hello" => {
                let driver = include_str!("../Cargo.lock").split("name = \"mongodb\"\nversion = \"").nth(1);
                Ok(json!({"protocol": 1, "name": "rust", "version": driver.and_then(|rest| rest.split('"').next()),
                    "schemaVersion": "1.28", "operations": operations::names(),
                    "lacks": HashMap::from(operations::LACKS), "features": ["tracing"],
                    "concurrentTests": 8}))
            }
            "begin" => {
                self.tests.lock().unwrap().insert(number, Arc::default());
                Ok(json!({}))
            }
            "open" => {
                let options = document("options")?;
                self.outcome(id, false, &test, async { test.open(params, options).await.map(|()| None) }).await
            }
            "do" => {
                let (adapter, raised) = (self.clone(), test.clone());
                let callback: operations::Callback = Arc::new(move || {
                    let (adapter, raised) = (adapter.clone(), raised.clone());
                    Box::pin(async move { adapter.callback(id, &raised).await })
                });
                let arguments = document("arguments")?;
                self.outcome(id, true, &test, operations::perform(test.clone(), params, arguments, callback)).await
            }
            "events" => {
                let (after, wait) = (params["after"].as_u64().unwrap_or(0), params["waitMS"].as_u64().unwrap_or(0));
                let log = test.get(text("client"))?.log;
                Ok(json!({"events": log.after(after as usize, Duration::from_millis(wait)).await}))
            }
            "spans" => Ok(json!({"spans": test.get(text("client"))?.log.spans.list()})),
            "close" => self.outcome(id, false, &test, async { test.close(text("id")).await.map(|()| None) }).await,
            "end" => {
                self.tests.lock().unwrap().remove(&number);
                test.end().await;
                Ok(json!({}))
            }
            _ => Err(Failure::invalid(format!("unknown call {method}"))),
        }
    }

    /// Performs a call. Canceling it drops it. An error of the driver is part of the result.
    async fn outcome<F>(&self, id: i64, is_do: bool, test: &Test, work: F) -> Result<Value, Failure>
    where
        F: std::future::Future<Output = Result<Option<Value>, Failure>>,
    {
        let (cancel, canceled) = oneshot::channel();
        self.calls.lock().unwrap().insert(id, cancel);
        let call = Arc::new(Current::default());
        let done = tokio::select! {
            done = CURRENT.scope(call.clone(), work) => done,
            Ok(()) = canceled => Err(Failure::client("the operation was canceled", "canceled")),
        };
        self.calls.lock().unwrap().remove(&id);
        let mut result = json!({});
        if let (true, Some(server)) = (is_do, call.server.lock().unwrap().take()) {
            result["server"] = json!(server);
        }
        match done {
            Ok(None) => (),
            Ok(Some(value)) => result["value"] = value,
            Err(failure @ Failure::Invalid(_)) => return Err(failure),
            Err(failure) => {
                result["error"] = failure.describe();
                test.raised.lock().unwrap().insert(id, failure);
            }
        }
        Ok(result)
    }

    /// Makes utr perform the operations of withTransaction, and returns their error.
    async fn callback(&self, request: i64, test: &Test) -> Result<(), Failure> {
        static IDS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);
        let (reply, replied) = oneshot::channel();
        let id = IDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.callbacks.lock().unwrap().insert(id, reply);
        send(json!({"id": id, "method": "callback", "params": {"do": request}}));
        let result = replied.await.map_err(Failure::invalid)?["result"].take();
        let raised = result["raisedBy"].as_i64().and_then(|by| test.raised.lock().unwrap().get(&by).cloned());
        match (raised, &result["error"]) {
            (Some(failure), _) => Err(failure),
            (None, Value::Null) => Ok(()),
            (None, error) => Err(Failure::Given(error.clone())),
        }
    }
}

fn send(mut message: Value) {
    message["jsonrpc"] = json!("2.0");
    let mut out = std::io::stdout().lock();
    if out.write_all((message.to_string() + "\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1); // utr has ended
    }
}
