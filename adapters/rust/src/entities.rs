//! The entities of a test.

use crate::arguments::read;
use crate::failures::Failure;
use crate::log::{Current, Log, CURRENT};
use bson::{doc, Bson, Document};
use mongodb::change_stream::{session::SessionChangeStream, ChangeStream};
use mongodb::gridfs::GridFsBucket;
use mongodb::options::{ClientOptions, GridFsBucketOptions, SessionOptions};
use mongodb::{Client, ClientSession, Collection, Cursor, Database, SessionCursor};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Mutex as Cell;

/// A session. It is None once it has ended.
pub type Session = Arc<Cell<Option<ClientSession>>>;

pub enum Found {
    Documents(Cursor<Document>),
    SessionDocuments(SessionCursor<Document>, Session),
    Changes(ChangeStream<Document>),
    SessionChanges(SessionChangeStream<Document>, Session),
}

#[derive(Clone)]
pub enum Object {
    Client(Client),
    Database(Database),
    Collection(Collection<Document>),
    Session(Session, Document), // and its id
    Bucket(GridFsBucket),
    Cursor(Arc<Cell<Option<Found>>>),
}

impl Object {
    pub fn kind(&self) -> &'static str {
        match self {
            Object::Client(_) => "client",
            Object::Database(_) => "database",
            Object::Collection(_) => "collection",
            Object::Session(..) => "session",
            Object::Bucket(_) => "bucket",
            Object::Cursor(_) => "cursor",
        }
    }
}

#[derive(Clone)]
pub struct Entity {
    pub object: Object,
    pub log: Arc<Log>, // of its client
}

/// The fields of entities, beginning with the parent, and including those that only utr interprets.
const FIELDS: [(&str, &str); 5] = [
    ("client", "uriOptions serverApi id useMultipleMongoses observeEvents ignoreCommandMonitoringEvents \
        observeSensitiveCommands observeTracingMessages storeEventsAsEntities awaitMinPoolSizeMS"),
    ("database", "client databaseName databaseOptions id"),
    ("collection", "database collectionName collectionOptions id"),
    ("session", "client sessionOptions id"),
    ("bucket", "database bucketOptions id"),
];

/// Options of connection strings that the driver accepts and ignores.
const IGNORED: [&str; 2] = ["waitqueuetimeoutms", "uuidrepresentation"];

#[derive(Default)]
pub struct Test {
    entities: Mutex<HashMap<String, Entity>>,
    pub raised: Mutex<HashMap<i64, Failure>>, // by request
}

impl Test {
    pub fn get(&self, id: &str) -> Result<Entity, Failure> {
        let found = self.entities.lock().unwrap().get(id).cloned();
        found.ok_or_else(|| Failure::invalid(format!("unknown entity {id}")))
    }

    pub fn session(&self, id: &str) -> Result<Session, Failure> {
        match self.get(id)?.object {
            Object::Session(session, _) => Ok(session),
            other => Err(Failure::invalid(format!("entity {id} is a {}", other.kind()))),
        }
    }

    pub fn add(&self, id: Option<&str>, object: Object, log: Arc<Log>) -> Result<(), Failure> {
        let mut entities = self.entities.lock().unwrap();
        let id = id.map(String::from).unwrap_or_else(|| format!("{} {}", object.kind(), entities.len()));
        match entities.insert(id.clone(), Entity { object, log }) {
            Some(_) => Err(Failure::invalid(format!("entity {id} exists already"))),
            None => Ok(()),
        }
    }

    pub async fn open(&self, params: &Value, mut options: Document) -> Result<(), Failure> {
        let text = |name: &str| params[name].as_str().unwrap_or_default();
        let (kind, id) = (text("kind"), text("id"));
        let Some((_, fields)) = FIELDS.iter().find(|(name, _)| *name == kind) else {
            return Err(Failure::lacks(format!("entity {kind}")));
        };
        let mut fields = fields.split(' ');
        if let Some(other) = options.keys().find(|name| fields.clone().all(|field| field != *name)) {
            return Err(Failure::lacks(format!("option {other} of a {kind}")));
        }
        if self.get(id).is_ok() {
            return Err(Failure::invalid(format!("entity {id} exists already")));
        }
        let mut take = |name: &str| options.remove(name).unwrap_or(Bson::Null);
        let given = match take(&format!("{kind}Options")) {
            Bson::Null => doc! {}.into(),
            given => given,
        };
        let name = take(&format!("{kind}Name")).as_str().unwrap_or_default().to_string();
        let (parent, log) = match kind {
            "client" => (None, Arc::default()),
            _ => self.get(take(fields.next().unwrap_or_default()).as_str().unwrap_or_default())
                .map(|entity| (Some(entity.object), entity.log))?,
        };
        let object = match (kind, parent) {
            ("client", _) => Object::Client(client(text("uri"), options, &log).await?),
            ("database", Some(Object::Client(client))) =>
                Object::Database(client.database_with_options(&name, read(given)?)),
            ("session", Some(Object::Client(client))) => session(&client, given, &params["clusterTime"]).await?,
            ("collection", Some(Object::Database(database))) =>
                Object::Collection(database.collection_with_options(&name, read(given)?)),
            ("bucket", Some(Object::Database(database))) =>
                Object::Bucket(database.gridfs_bucket(read::<GridFsBucketOptions>(given)?)),
            _ => return Err(Failure::invalid(format!("the parent of the {kind} is of another kind"))),
        };
        self.add(Some(id), object, log)
    }

    pub async fn close(&self, id: &str) -> Result<(), Failure> {
        let Entity { object, log } = self.get(id)?;
        match object {
            Object::Session(session, _) => drop(session.lock().await.take()),
            Object::Cursor(cursor) => drop(cursor.lock().await.take()),
            Object::Client(client) => {
                let shutdown = async { client.shutdown().immediate(true).await };
                let _ = tokio::time::timeout(Duration::from_secs(3), shutdown).await;
                log.close().await;
            }
            _ => (),
        }
        log.settle().await;
        Ok(())
    }

    pub async fn end(&self) {
        for kind in ["cursor", "session", "client"] {
            let all = self.entities.lock().unwrap().clone();
            for (id, _) in all.iter().filter(|(_, entity)| entity.object.kind() == kind) {
                let _ = self.close(id).await;
            }
        }
        self.entities.lock().unwrap().clear();
    }
}

/// Runs a command of the runner, without events.
pub async fn hidden(client: &Client, command: Document) -> Result<Document, Failure> {
    let call = Arc::new(Current { hidden: true, ..Current::default() });
    let database = client.database("admin");
    let result = CURRENT.scope(call.clone(), async { database.run_command(command).await }).await;
    let _ = CURRENT.try_with(|outer| *outer.server.lock().unwrap() = call.server.lock().unwrap().take());
    Ok(result?)
}

async fn client(uri: &str, mut options: Document, log: &Arc<Log>) -> Result<Client, Failure> {
    let mut uri = uri.to_string();
    if !uri.contains('?') {
        uri += if uri.matches('/').count() > 2 { "?" } else { "/?" };
    }
    let given: Document = options.remove("uriOptions").and_then(|given| given.as_document().cloned()).unwrap_or_default();
    let names: Vec<String> = given.keys().cloned().collect();
    if let Some((hosts, query)) = uri.clone().split_once('?') {
        // The driver rejects options that occur twice.
        let name = |option: &str| option.split('=').next().unwrap_or_default().to_lowercase();
        let kept = query.split('&').filter(|option| names.iter().all(|given| given.to_lowercase() != name(option)));
        uri = format!("{hosts}?{}", kept.collect::<Vec<_>>().join("&"));
    }
    for (name, value) in given {
        if IGNORED.contains(&name.to_lowercase().as_str()) {
            return Err(Failure::lacks(format!("ClientOptions.{name}")));
        }
        let values = if let Bson::Array(values) = value { values } else { vec![value] };
        let texts: Vec<String> = values.into_iter().map(plain).collect();
        for text in if name == "compressors" { vec![texts.join(",")] } else { texts } {
            uri += &format!("&{name}={text}");
        }
    }
    let mut parsed = ClientOptions::parse(uri.replace("?&", "?")).await.map_err(|error| {
        let message = error.to_string();
        let option = message.split_once(" is an invalid option").map(|(text, _)| text.rsplit(' ').next());
        let name = |lower: &str| names.iter().find(|name| name.to_lowercase() == lower).cloned();
        match option.flatten().and_then(name).or(message.contains("does not support").then(|| "socketTimeoutMS".into())) {
            Some(name) => Failure::lacks(format!("ClientOptions.{name}")),
            None => error.into(),
        }
    })?;
    parsed.heartbeat_freq.get_or_insert(Duration::from_millis(500));
    parsed.server_api = options.remove("serverApi").map(read).transpose()?;
    if let Some(Bson::Document(observed)) = options.remove("observeTracingMessages") {
        parsed.tracing = Some(log.spans.options(observed.get_bool("enableCommandPayload").unwrap_or(false)));
    }
    log.listen(&mut parsed);
    Ok(Client::with_options(parsed)?)
}

/// Converts a value for a connection string.
fn plain(value: Bson) -> String {
    match value {
        Bson::Document(pairs) => {
            pairs.into_iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect::<Vec<_>>().join(",")
        }
        Bson::String(text) => text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        Bson::Double(number) => (number as i64).to_string(),
        other => other.to_string(),
    }
}

async fn session(client: &Client, options: Bson, time: &Value) -> Result<Object, Failure> {
    let mut session = client.start_session().with_options(read::<SessionOptions>(options)?).await?;
    if let Ok(Bson::Document(time)) = Bson::try_from(time.clone()) {
        let time = time.get_document("$clusterTime").unwrap_or(&time).clone();
        session.advance_cluster_time(&bson::deserialize_from_document(time).map_err(Failure::invalid)?);
    }
    let lsid = session.id().clone();
    Ok(Object::Session(Arc::new(Cell::new(Some(session))), lsid))
}
