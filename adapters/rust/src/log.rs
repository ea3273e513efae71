//! The log of a client: command, CMAP and SDAM events in the order in which the driver publishes them.

use crate::failures::describe;
use crate::results::json;
use crate::spans::Spans;
use bson::Document;
use mongodb::event::{cmap::CmapEvent, command::CommandEvent, sdam::SdamEvent, sdam::TopologyDescription, EventHandler};
use mongodb::options::ClientOptions;
use serde_json::{json, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// The call that a task performs. The driver publishes command events in the task that performs the operation.
#[derive(Default)]
pub struct Current {
    pub hidden: bool,                   // whether its commands are the runner's own
    pub server: Mutex<Option<String>>, // of its last command
}

tokio::task_local! {
    pub static CURRENT: Arc<Current>;
}

#[derive(Default)]
struct State {
    events: Vec<Value>,
    topology: Value,
    servers: HashMap<String, String>, // of the last command of a session
    background: HashSet<Value>,       // open commands that the driver sends when something is dropped
    closed: bool,
}

#[derive(Default)]
pub struct Log {
    pub spans: Spans,
    state: Mutex<State>,
    added: Notify,
}

impl Log {
    pub fn listen(self: &Arc<Self>, options: &mut ClientOptions) {
        let (commands, pools, topology) = (self.clone(), self.clone(), self.clone());
        options.command_event_handler = Some(EventHandler::callback(move |event| commands.command(event)));
        options.cmap_event_handler = Some(EventHandler::callback(move |event| pools.pool(event)));
        options.sdam_event_handler = Some(EventHandler::callback(move |event| topology.topology_changed(event)));
    }

    fn add(&self, kind: &str, mut event: Value) {
        let mut state = self.state.lock().unwrap();
        if !state.closed {
            event["sequence"] = json!(state.events.len() + 1);
            event["type"] = json!(format!("{kind}Event"));
            event["time"] = json!(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64);
            event.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            state.events.push(event);
            self.added.notify_waiters();
        }
    }

    async fn wait(&self, limit: Duration, until: impl Fn(&State) -> bool) {
        let wait = async {
            loop {
                let added = self.added.notified();
                if until(&self.state.lock().unwrap()) {
                    return;
                }
                added.await;
            }
        };
        let _ = tokio::time::timeout(limit, wait).await;
    }

    /// The events after a sequence number. Without any, it waits for one.
    pub async fn after(&self, sequence: usize, wait: Duration) -> Vec<Value> {
        self.wait(wait, |state| state.events.len() > sequence).await;
        self.state.lock().unwrap().events.iter().skip(sequence).cloned().collect()
    }

    /// Waits for the commands that the driver sends in the background when a cursor or a session is dropped.
    pub async fn settle(&self) {
        for _ in 0..32 {
            tokio::task::yield_now().await;
        }
        self.wait(Duration::from_secs(2), |state| state.background.is_empty()).await;
    }

    /// Waits for the last event of a client, and ignores all later ones.
    pub async fn close(&self) {
        let last = |state: &State| state.events.iter().rev().any(|event| event["type"] == "topologyClosedEvent");
        self.wait(Duration::from_secs(2), last).await;
        self.state.lock().unwrap().closed = true;
    }

    pub fn topology(&self) -> Value {
        self.state.lock().unwrap().topology.clone()
    }

    /// The server of the last command of a session.
    pub fn server(&self, lsid: &Document) -> Option<String> {
        self.state.lock().unwrap().servers.get(&lsid.to_string()).cloned()
    }

    fn command(&self, event: CommandEvent) {
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let redacted = |body: &Document| body.is_empty().then_some(true);
        macro_rules! event {
            ($e:ident, {$($name:literal: $value:expr),*}) => {
                json!({"address": $e.connection.address.to_string(), "commandName": $e.command_name,
                    "requestId": $e.request_id, "driverConnectionId": $e.connection.id.to_string(),
                    "serverConnectionId": $e.connection.server_id, "serviceId": $e.service_id.map(json),
                    $($name: $value),*})
            };
        }
        let (kind, fields) = match &event {
            CommandEvent::Started(e) => ("commandStarted",
                event!(e, {"databaseName": e.db, "command": json(e.command.clone()), "redacted": redacted(&e.command)})),
            CommandEvent::Succeeded(e) => ("commandSucceeded",
                event!(e, {"durationMS": ms(e.duration), "reply": json(e.reply.clone()), "redacted": redacted(&e.reply)})),
            CommandEvent::Failed(e) => ("commandFailed",
                event!(e, {"durationMS": ms(e.duration), "failure": describe(&e.failure)})),
            _ => return,
        };
        let server = fields["address"].as_str().unwrap_or_default().to_string();
        let hidden = CURRENT.try_with(|call| {
            *call.server.lock().unwrap() = Some(server.clone());
            call.hidden
        });
        if hidden == Ok(true) {
            return;
        }
        let mut state = self.state.lock().unwrap();
        state.background.remove(&fields["requestId"]);
        if let CommandEvent::Started(e) = event {
            if let Ok(lsid) = e.command.get_document("lsid") {
                state.servers.insert(lsid.to_string(), server);
            }
            if hidden.is_err() {
                state.background.insert(fields["requestId"].clone());
            }
        }
        drop(state);
        self.add(kind, fields);
    }

    fn pool(&self, event: CmapEvent) {
        macro_rules! fields {
            ($($variant:ident $kind:literal,)*) => {
                match event {
                    $(CmapEvent::$variant(e) => ($kind, e.address.to_string(), json!(e)),)*
                    _ => return,
                }
            };
        }
        let (kind, address, fields) = fields! {
            PoolCreated "poolCreated", PoolReady "poolReady", PoolCleared "poolCleared", PoolClosed "poolClosed",
            ConnectionCreated "connectionCreated", ConnectionReady "connectionReady", ConnectionClosed "connectionClosed",
            ConnectionCheckoutStarted "connectionCheckOutStarted", ConnectionCheckoutFailed "connectionCheckOutFailed",
            ConnectionCheckedOut "connectionCheckedOut", ConnectionCheckedIn "connectionCheckedIn",
        };
        self.add(kind, json!({
            "address": address, "connectionId": fields["connectionId"], "reason": fields["reason"],
            "serviceId": fields["service_id"], "interruptInUseConnections": fields["interrupt_in_use_connections"],
        }));
    }

    fn topology_changed(&self, event: SdamEvent) {
        macro_rules! heartbeat {
            ($e:ident $error:expr) => {
                json!({"address": $e.server_address.to_string(), "awaited": $e.awaited, "error": $error})
            };
        }
        let (kind, fields) = match event {
            SdamEvent::ServerDescriptionChanged(e) => ("serverDescriptionChanged", json!({
                "address": e.address.to_string(),
                "previousDescription": {"type": e.previous_description.server_type().to_string()},
                "newDescription": {"type": e.new_description.server_type().to_string()},
            })),
            SdamEvent::TopologyDescriptionChanged(e) => {
                self.state.lock().unwrap().topology = topology(&e.new_description);
                let previous = topology(&e.previous_description);
                let fields = json!({"previousDescription": previous, "newDescription": topology(&e.new_description)});
                ("topologyDescriptionChanged", fields)
            }
            SdamEvent::TopologyOpening(_) => ("topologyOpening", json!({})),
            SdamEvent::TopologyClosed(_) => ("topologyClosed", json!({})),
            SdamEvent::ServerHeartbeatStarted(e) => ("serverHeartbeatStarted", heartbeat!(e Value::Null)),
            SdamEvent::ServerHeartbeatSucceeded(e) => ("serverHeartbeatSucceeded", heartbeat!(e Value::Null)),
            SdamEvent::ServerHeartbeatFailed(e) => ("serverHeartbeatFailed", heartbeat!(e e.failure.to_string())),
            _ => return,
        };
        self.add(kind, fields);
    }
}

/// A topology in the terms of the SDAM specification.
fn topology(topology: &TopologyDescription) -> Value {
    let server = |(address, server): (&mongodb::options::ServerAddress, mongodb::ServerInfo)| {
        json!({"address": address.to_string(), "type": server.server_type().to_string()})
    };
    let servers: Vec<Value> = topology.servers().into_iter().map(server).collect();
    json!({"type": format!("{:?}", topology.topology_type()), "servers": servers})
}
