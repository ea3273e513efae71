//! The operations that the driver performs.

use crate::arguments::read;
use crate::entities::{hidden, Entity, Found, Object, Session, Test};
use crate::failures::Failure;
use crate::results::{indexed, json, same, summary, updated, verbose};
use bson::{doc, spec::BinarySubtype, Binary, Bson, Document};
use futures_util::future::BoxFuture;
use futures_util::{AsyncReadExt, AsyncWriteExt, StreamExt, TryStreamExt};
use mongodb::{action::Action, gridfs::GridFsBucket, options::*};
use mongodb::{Client, ClientSession, Collection, Database, IndexModel, Namespace, SearchIndexModel};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{OwnedMappedMutexGuard, OwnedMutexGuard};

/// Performs the operations of the callback of withTransaction.
pub type Callback = Arc<dyn Fn() -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;
type Outcome = Result<Option<Bson>, Failure>;
const NOTHING: Outcome = Ok(None);

/// An operation. Arguments are removed as they are used.
struct Call {
    test: Arc<Test>,
    on: Entity,
    arguments: Document,
    cell: Option<Session>,
    session: Option<OwnedMappedMutexGuard<Option<ClientSession>, ClientSession>>,
    save_as: Option<String>,
    callback: Callback,
}

macro_rules! objects {
    ($($method:ident $kind:ident $type:ty),*) => {
        $(fn $method(&self) -> $type {
            if let Object::$kind(object) = &self.on.object { object.clone() } else { unreachable!("see dispatch") }
        })*
    };
}

impl Call {
    objects! { client Client Client, database Database Database, collection Collection Collection<Document>,
        bucket Bucket GridFsBucket }

    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Failure> {
        take(&mut self.arguments, name)
    }

    /// Reads all other arguments as options.
    fn options<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        read(std::mem::take(&mut self.arguments))
    }

    /// Rejects other arguments, because the method of the driver has no more options.
    fn no_more(&self, method: &str) -> Result<(), Failure> {
        self.arguments.keys().next().map_or(Ok(()), |name| Err(Failure::lacks(format!("{method}.{name}"))))
    }

    /// Rejects other arguments and a session.
    fn only(&self, method: &str) -> Result<(), Failure> {
        self.cell.as_ref().map_or(Ok(()), |_| Err(Failure::lacks(format!("{method}.session"))))?;
        self.no_more(method)
    }

    fn session(&mut self) -> Result<&mut ClientSession, Failure> {
        self.session.as_deref_mut().ok_or_else(|| Failure::client("the session is in use", "client"))
    }

    fn save(&self, found: Found) -> Outcome {
        let cursor = Object::Cursor(Arc::new(tokio::sync::Mutex::new(Some(found))));
        self.test.add(self.save_as.as_deref(), cursor, self.on.log.clone()).map(|()| None)
    }
}

fn take<T: DeserializeOwned>(arguments: &mut Document, name: &str) -> Result<T, Failure> {
    read(arguments.remove(name).unwrap_or(Bson::Null))
}

/// Calls a method of the driver with arguments of the operation, and with its other arguments as options.
macro_rules! action {
    ($c:ident, $on:ident.$method:ident($($name:ident: $type:ty),*), $options:ty) => {
        $on.$method($($c.take::<$type>(stringify!($name))?),*).with_options($c.options::<$options>()?)
    };
}

/// Runs an action, in the session if there is one, and converts its result.
macro_rules! run {
    ($c:ident, $on:ident.$method:ident($($name:ident: $type:ty),*), $options:ty, $convert:expr) => {{
        let $on = $c.$on();
        Ok(Some($convert(run!($c, action!($c, $on.$method($($name: $type),*), $options)))))
    }};
    ($c:ident, $action:expr) => {{
        let action = $action;
        match $c.session.as_deref_mut() {
            Some(session) => action.session(session).await?,
            None => action.await?,
        }
    }};
}

/// Runs an action of the driver that has neither a session nor options.
macro_rules! alone {
    ($c:ident, $on:ident.$method:ident($($name:ident: $type:ty),*), $convert:expr) => {{
        let $on = $c.$on();
        let action = $on.$method($($c.take::<$type>(stringify!($name))?),*);
        $c.only(stringify!($method))?;
        Ok($convert(action.await?))
    }};
}

/// Runs an action that returns a cursor, and reads all of it.
macro_rules! all {
    ($c:ident, $on:ident.$method:ident($($name:ident: $type:ty),*), $options:ty, $convert:expr) => {{
        let $on = $c.$on();
        all!($c, action!($c, $on.$method($($name: $type),*), $options), $convert)
    }};
    ($c:ident, $action:expr, $convert:expr) => {{
        let action = $action;
        let found: Vec<Bson> = match $c.session.as_deref_mut() {
            Some(session) => {
                let mut cursor = action.session(&mut *session).await?;
                let documents = cursor.stream(session);
                documents.map_ok($convert).try_collect().await?
            }
            None => action.await?.map_ok($convert).try_collect().await?,
        };
        Ok(Some(Bson::Array(found)))
    }};
}

/// Runs an action that returns a cursor or a change stream, and saves it as an entity.
macro_rules! save {
    ($c:ident, $action:expr, $plain:expr, $in_session:expr) => {{
        let action = $action;
        let found = match ($c.session.as_deref_mut(), $c.cell.clone()) {
            (Some(session), Some(cell)) => $in_session(action.session(session).await?, cell),
            _ => $plain(action.await?),
        };
        $c.save(found)
    }};
}

macro_rules! watch {
    ($c:ident, $on:ident) => {{
        let ($on, pipeline) = ($c.$on(), $c.take::<Vec<Document>>("pipeline")?);
        save!($c, $on.watch().pipeline(pipeline).with_options($c.options::<ChangeStreamOptions>()?),
            |stream: mongodb::change_stream::ChangeStream<_>| Found::Changes(stream.with_type()),
            |stream: mongodb::change_stream::session::SessionChangeStream<_>, cell|
                Found::SessionChanges(stream.with_type(), cell))
    }};
}

/// Defines the operations.
macro_rules! table {
    ($c:ident; $($name:literal => $body:expr,)*) => {
        pub fn names() -> Vec<&'static str> {
            let mut names = vec!["client.close", "cursor.close", "session.endSession", $($name),*];
            names.sort_unstable();
            names
        }

        async fn dispatch(name: &str, $c: &mut Call) -> Outcome {
            match name {
                $($name => $body,)*
                _ => Err(Failure::lacks(format!("operation {name}"))),
            }
        }
    };
}

table! { c;
    "client.appendMetadata" => done(c.client().append_metadata(c.take("driverInfoOptions")?)),
    "client.clientBulkWrite" => client_bulk_write(c).await,
    "client.createChangeStream" => watch!(c, client),
    "client.dropDatabase" => {
        let database = c.client().database(&c.take::<String>("database")?);
        let concern: Option<WriteConcern> = c.take("writeConcern")?;
        c.no_more("Database::drop")?;
        done(Ok(run!(c, database.drop().optional(concern, |drop, concern| drop.write_concern(concern)))))
    },
    "client.listDatabaseNames" => run!(c, client.list_database_names(), ListDatabasesOptions, same),
    "client.listDatabases" => run!(c, client.list_databases(), ListDatabasesOptions, same),
    "client.$configureFailPoint" => hidden(&c.client(), c.take("command")?).await.map(|reply| Some(Bson::Document(reply))),
    "client.$topology" => Bson::try_from(c.on.log.topology()).map(Some).map_err(Failure::invalid),

    "database.aggregate" => all!(c, database.aggregate(pipeline: Vec<Document>), AggregateOptions, Bson::Document),
    "database.createChangeStream" => watch!(c, database),
    "database.createCollection" => {
        let (database, name) = (c.database(), c.take::<String>("collection")?);
        run!(c, database.create_collection(&name).with_options(c.options::<CreateCollectionOptions>()?));
        let collection = Object::Collection(database.collection(&name));
        c.save_as.as_deref().map(|id| c.test.add(Some(id), collection, c.on.log.clone())).transpose().map(|_| None)
    },
    "database.createCommandCursor" => {
        let (database, command) = (c.database(), command(c)?);
        let options: RunCursorCommandOptions = c.options()?;
        save!(c, database.run_cursor_command(command).with_options(options), Found::Documents, Found::SessionDocuments)
    },
    "database.dropCollection" => {
        let collection = c.database().collection::<Document>(&c.take::<String>("collection")?);
        done(Ok(run!(c, collection.drop().with_options(c.options::<DropCollectionOptions>()?))))
    },
    "database.listCollectionNames" => run!(c, database.list_collection_names(), ListCollectionsOptions, same),
    "database.listCollections" => all!(c, database.list_collections(), ListCollectionsOptions, same),
    "database.modifyCollection" => {
        let (database, mut command) = (c.database(), doc! {"collMod": c.take::<String>("collection")?});
        command.extend(std::mem::take(&mut c.arguments));
        run!(c, database.run_command(command));
        NOTHING
    },
    "database.runCommand" => {
        let (database, command) = (c.database(), command(c)?);
        let criteria: Option<SelectionCriteria> = c.take("readPreference")?;
        c.no_more("run_command")?;
        Ok(Some(run!(c, database.run_command(command).optional(criteria, |run, on| run.selection_criteria(on))).into()))
    },
    "database.runCursorCommand" => {
        let command = command(c)?;
        c.arguments.insert("command", command);
        all!(c, database.run_cursor_command(command: Document), RunCursorCommandOptions, Bson::Document)
    },

    "collection.aggregate" => all!(c, collection.aggregate(pipeline: Vec<Document>), AggregateOptions, Bson::Document),
    "collection.countDocuments" => run!(c, collection.count_documents(filter: Document), CountOptions, count),
    "collection.createChangeStream" => watch!(c, collection),
    "collection.createFindCursor" => {
        let (collection, filter) = (c.collection(), c.take::<Document>("filter")?);
        let options = find_options(c)?;
        save!(c, collection.find(filter).with_options(options), Found::Documents, Found::SessionDocuments)
    },
    "collection.createIndex" => create_index(c).await,
    "collection.createSearchIndex" => alone!(c, collection.create_search_index(model: SearchIndexModel), value),
    "collection.createSearchIndexes" => alone!(c, collection.create_search_indexes(models: Vec<SearchIndexModel>), value),
    "collection.deleteMany" => run!(c, collection.delete_many(filter: Document), DeleteOptions, same),
    "collection.deleteOne" => run!(c, collection.delete_one(filter: Document), DeleteOptions, same),
    "collection.distinct" => run!(c, collection.distinct(fieldName: String, filter: Document), DistinctOptions, Bson::from),
    "collection.dropIndex" => run!(c, collection.drop_index(name: String), DropIndexOptions, same),
    "collection.dropIndexes" => run!(c, collection.drop_indexes(), DropIndexOptions, same),
    "collection.dropSearchIndex" => alone!(c, collection.drop_search_index(name: String), |()| None),
    "collection.estimatedDocumentCount" => {
        let (collection, options) = (c.collection(), c.options::<EstimatedDocumentCountOptions>()?);
        c.only("EstimatedDocumentCount")?;
        Ok(Some(count(collection.estimated_document_count().with_options(options).await?)))
    },
    "collection.find" => {
        let (collection, filter) = (c.collection(), c.take::<Document>("filter")?);
        let options = find_options(c)?;
        all!(c, collection.find(filter).with_options(options), Bson::Document)
    },
    "collection.findOne" => run!(c, collection.find_one(filter: Document), FindOneOptions, Bson::from),
    "collection.findOneAndDelete" => run!(c, collection.find_one_and_delete(filter: Document), FindOneAndDeleteOptions, Bson::from),
    "collection.findOneAndReplace" => run!(c, collection.find_one_and_replace(filter: Document, replacement: Document),
        FindOneAndReplaceOptions, Bson::from),
    "collection.findOneAndUpdate" => run!(c, collection.find_one_and_update(filter: Document,
        update: UpdateModifications), FindOneAndUpdateOptions, Bson::from),
    "collection.insertMany" => {
        let (collection, documents) = (c.collection(), c.take::<Vec<Document>>("documents")?);
        let concern: Option<WriteConcern> = c.take("writeConcern")?;
        let action = collection.insert_many(&documents).with_options(c.options::<InsertManyOptions>()?);
        let ids = run!(c, action.optional(concern, |insert, concern| insert.write_concern(concern))).inserted_ids;
        Ok(Some(doc! {"insertedCount": ids.len() as i32, "insertedIds": indexed(&ids, Bson::clone)}.into()))
    },
    "collection.insertOne" => run!(c, collection.insert_one(document: Document), InsertOneOptions, same),
    "collection.listIndexNames" => {
        let collection = c.collection();
        c.no_more("list_index_names")?;
        Ok(Some(same(run!(c, collection.list_index_names()))))
    },
    "collection.listIndexes" => all!(c, collection.list_indexes(), ListIndexesOptions, same),
    "collection.listSearchIndexes" => {
        let (collection, name) = (c.collection(), c.take::<Option<String>>("name")?);
        let options: Option<AggregateOptions> = c.take("aggregationOptions")?;
        c.only("list_search_indexes")?;
        let action = collection.list_search_indexes().optional(name, |list, name| list.name(name));
        let found = action.optional(options, |list, options| list.aggregate_options(options)).await?;
        Ok(Some(Bson::Array(found.map_ok(Bson::Document).try_collect().await?)))
    },
    "collection.rename" => {
        let (from, to) = (c.collection().namespace(), c.take::<String>("to")?);
        let mut command = doc! {"renameCollection": from.to_string(), "to": format!("{}.{to}", from.db)};
        command.extend(std::mem::take(&mut c.arguments));
        let admin = c.collection().client().database("admin");
        run!(c, admin.run_command(command));
        NOTHING
    },
    "collection.replaceOne" => run!(c, collection.replace_one(filter: Document, replacement: Document),
        ReplaceOptions, updated),
    "collection.updateMany" => run!(c, collection.update_many(filter: Document, update: UpdateModifications),
        UpdateOptions, updated),
    "collection.updateOne" => run!(c, collection.update_one(filter: Document, update: UpdateModifications),
        UpdateOptions, updated),
    "collection.updateSearchIndex" => alone!(c, collection.update_search_index(name: String, definition: Document), |()| None),

    "bucket.delete" => alone!(c, bucket.delete(id: Bson), |()| None),
    "bucket.deleteByName" => alone!(c, bucket.delete_by_name(filename: String), |()| None),
    "bucket.download" => {
        let stream = c.bucket().open_download_stream(c.take("id")?).await?;
        download(c, stream).await
    },
    "bucket.downloadByName" => {
        let (bucket, name) = (c.bucket(), c.take::<String>("filename")?);
        let options: GridFsDownloadByNameOptions = c.options()?;
        let stream = bucket.open_download_stream_by_name(name).with_options(options).await?;
        download(c, stream).await
    },
    "bucket.drop" => alone!(c, bucket.drop(), |()| None),
    "bucket.find" => {
        let bucket = c.bucket();
        let found = action!(c, bucket.find(filter: Document), GridFsFindOptions).await?;
        Ok(Some(Bson::Array(found.map_ok(same).try_collect().await?)))
    },
    "bucket.rename" => alone!(c, bucket.rename(id: Bson, newFilename: String), |()| None),
    "bucket.renameByName" => alone!(c, bucket.rename_by_name(filename: String, newFilename: String), |()| None),
    "bucket.upload" => upload(c).await,
    "bucket.uploadWithId" => upload(c).await.map(|_| None),

    "cursor.iterateOnce" => iterate(c, true).await,
    "cursor.iterateUntilDocumentOrError" => iterate(c, false).await,

    "session.abortTransaction" => done(c.session()?.abort_transaction().await),
    "session.commitTransaction" => done(c.session()?.commit_transaction().await),
    "session.getSnapshotTime" => Ok(Some(c.session()?.snapshot_time().map(Bson::Timestamp).into())),
    "session.startTransaction" => {
        let options: TransactionOptions = c.options()?;
        done(c.session()?.start_transaction().with_options(options).await)
    },
    "session.withTransaction" => with_transaction(c).await,
    "session.$dirty" => {
        let text = format!("{:?}", c.session()?);
        Ok(Some(text.split("dirty: ").nth(1).is_some_and(|rest| rest.starts_with("true")).into()))
    },
    "session.$lsid" => Ok(Some(if let Object::Session(_, lsid) = &c.on.object { lsid.clone() } else { doc! {} }.into())),
    "session.$pinnedServer" => {
        let pinned = transaction(c.session()?, "pinned: ").starts_with("Some");
        let server = c.on.log.server(c.session.as_deref().map(ClientSession::id).unwrap_or(&doc! {}));
        Ok(Some(server.filter(|_| pinned).into()))
    },
    "session.$transactionState" => {
        let state = transaction(c.session()?, "state: ");
        let words = [("No", "none"), ("St", "starting"), ("In", "in_progress"), ("Co", "committed"), ("Ab", "aborted")];
        Ok(Some(words.iter().find(|(name, _)| state.starts_with(name)).map(|(_, word)| *word).into()))
    },
}

/// Reasons why the driver cannot perform operations that are not in the table.
pub const LACKS: [(&str, &str); 5] = [
    ("client.listDatabaseObjects", "the Rust driver has no method that returns the databases as Database"),
    ("collection.bulkWrite", "the Rust driver has no Collection::bulk_write"),
    ("collection.count", "the Rust driver has no Collection::count, and estimated_document_count has no filter"),
    ("collection.mapReduce", "the Rust driver has no Collection::map_reduce"),
    ("database.listCollectionObjects", "the Rust driver has no method that returns the collections as Collection"),
];

pub async fn perform(
    test: Arc<Test>, operation: &Value, mut arguments: Document, callback: Callback,
) -> Result<Option<Value>, Failure> {
    let text = |name: &str| operation[name].as_str().unwrap_or_default();
    let on = test.get(text("object"))?;
    let name = format!("{}.{}", on.object.kind(), text("name"));
    if ["client.close", "cursor.close", "session.endSession"].contains(&name.as_str()) {
        return test.close(text("object")).await.map(|()| None);
    }
    let cell = match (arguments.remove("session"), &on.object) {
        (Some(id), _) => Some(test.session(id.as_str().unwrap_or_default())?),
        (None, Object::Session(session, _)) => Some(session.clone()),
        _ => None,
    };
    let session = match &cell {
        Some(cell) if !["session.withTransaction", "session.$lsid"].contains(&name.as_str()) => Some(lock(cell).await?),
        _ => None,
    };
    let alone = match (on.object.kind(), text("name")) {
        ("session", "startTransaction" | "withTransaction") => None,
        ("session" | "cursor", _) => arguments.keys().next().map(String::as_str),
        ("bucket", _) => cell.as_ref().map(|_| "session"),
        _ => None,
    };
    if let Some(argument) = alone {
        return Err(Failure::lacks(format!("argument {argument} of {name}")));
    }
    let save_as = operation["saveAs"].as_str().map(String::from);
    let mut call = Call { test, on, arguments, cell, session, save_as, callback };
    let result = Box::pin(dispatch(&name, &mut call)).await;
    if result.is_err() {
        call.on.log.settle().await; // the driver has dropped its cursor
    }
    Ok(result?.map(json))
}

async fn lock(cell: &Session) -> Result<OwnedMappedMutexGuard<Option<ClientSession>, ClientSession>, Failure> {
    OwnedMutexGuard::try_map(cell.clone().lock_owned().await, Option::as_mut)
        .map_err(|_| Failure::client("the session has ended", "client"))
}

fn done(result: mongodb::error::Result<()>) -> Outcome {
    result.map(|()| None).map_err(Failure::from)
}

fn count(number: u64) -> Bson {
    Bson::Int64(number as i64)
}

fn value<T: serde::Serialize>(result: T) -> Option<Bson> {
    Some(same(result))
}

/// A field of the transaction in the Debug output of a session. It is not public in another form.
fn transaction(session: &ClientSession, field: &str) -> String {
    let text = format!("{session:?}");
    let transaction = text.rsplit("transaction: Transaction {").next().unwrap_or_default();
    transaction.split_once(field).map(|(_, value)| value.to_string()).unwrap_or_default()
}

/// Reads the options of find. serde skips three of them in the driver's type.
fn find_options(c: &mut Call) -> Result<FindOptions, Failure> {
    let (cursor, wait, on) = (c.take("cursorType")?, c.take("maxAwaitTimeMS")?, c.take("readPreference")?);
    let mut options: FindOptions = c.options()?;
    (options.cursor_type, options.max_await_time, options.selection_criteria) = (cursor, wait, on);
    Ok(options)
}

/// Reads a command. Its name must be its first field.
fn command(c: &mut Call) -> Result<Document, Failure> {
    let (mut given, name): (Document, Option<String>) = (c.take("command")?, c.take("commandName")?);
    let first = name.and_then(|name| given.remove(&name).map(|value| (name, value)));
    Ok(first.into_iter().chain(given).collect())
}

async fn create_index(c: &mut Call) -> Outcome {
    let (collection, keys) = (c.collection(), c.take::<Document>("keys")?);
    let mut options = CreateIndexOptions::default();
    (options.commit_quorum, options.max_time) = (c.take("commitQuorum")?, c.take("maxTimeMS")?);
    (options.write_concern, options.comment) = (c.take("writeConcern")?, c.take("comment")?);
    let model = IndexModel::builder().keys(keys).options(c.options::<IndexOptions>()?).build();
    Ok(Some(run!(c, collection.create_index(model).with_options(options)).index_name.into()))
}

async fn client_bulk_write(c: &mut Call) -> Outcome {
    let client = c.client();
    let models = c.take::<Vec<Document>>("models")?.into_iter().flatten();
    let models: Vec<WriteModel> = models.map(|(name, fields)| model(&name, read(fields)?)).collect::<Result<_, _>>()?;
    let wordy: Option<bool> = c.take("verboseResults")?;
    let action = client.bulk_write(models).with_options(c.options::<BulkWriteOptions>()?);
    Ok(Some(match wordy {
        Some(true) => verbose(&run!(c, action.verbose_results())).into(),
        _ => summary(&run!(c, action)).into(),
    }))
}

/// Creates a write model. Their types cannot be deserialized.
fn model(name: &str, mut fields: Document) -> Result<WriteModel, Failure> {
    macro_rules! build {
        ($type:ident $($method:ident $name:literal $field:ty),*) => {
            $type::builder().namespace(take::<Namespace>(&mut fields, "namespace")?)
                $(.$method(take::<$field>(&mut fields, $name)?))*.build().into()
        };
    }
    let model = match name {
        "insertOne" => build!(InsertOneModel document "document" Document),
        "updateOne" => build!(UpdateOneModel filter "filter" Document, update "update" UpdateModifications,
            array_filters "arrayFilters" Option<Vec<Bson>>, collation "collation" Option<Document>,
            hint "hint" Option<Bson>, upsert "upsert" Option<bool>, sort "sort" Option<Document>),
        "updateMany" => build!(UpdateManyModel filter "filter" Document, update "update" UpdateModifications,
            array_filters "arrayFilters" Option<Vec<Bson>>, collation "collation" Option<Document>,
            hint "hint" Option<Bson>, upsert "upsert" Option<bool>),
        "replaceOne" => build!(ReplaceOneModel filter "filter" Document, replacement "replacement" Document,
            collation "collation" Option<Document>, hint "hint" Option<Bson>, upsert "upsert" Option<bool>,
            sort "sort" Option<Document>),
        "deleteOne" => build!(DeleteOneModel filter "filter" Document, collation "collation" Option<Document>,
            hint "hint" Option<Bson>),
        "deleteMany" => build!(DeleteManyModel filter "filter" Document, collation "collation" Option<Document>,
            hint "hint" Option<Bson>),
        other => return Err(Failure::lacks(format!("WriteModel.{other}"))),
    };
    let other = fields.keys().next().map(|field| Failure::lacks(format!("WriteModel.{name}.{field}")));
    other.map_or(Ok(model), Err)
}

async fn download(c: &Call, mut stream: mongodb::gridfs::GridFsDownloadStream) -> Outcome {
    c.only("open_download_stream")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    Ok(Some(Binary { subtype: BinarySubtype::Generic, bytes }.into()))
}

async fn upload(c: &mut Call) -> Outcome {
    let (bucket, name, id) = (c.bucket(), c.take::<String>("filename")?, c.take::<Option<Bson>>("id")?);
    let source: Document = c.take("source")?;
    let hex = source.get_str("$$hexBytes").map_err(Failure::invalid)?;
    let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16));
    let bytes = bytes.collect::<Result<Vec<u8>, _>>().map_err(Failure::invalid)?;
    let action = bucket.open_upload_stream(name).with_options(c.options::<GridFsUploadOptions>()?);
    c.only("open_upload_stream")?;
    let mut stream = action.optional(id, |open, id| open.id(id)).await?;
    stream.write_all(&bytes).await?;
    stream.close().await?;
    Ok(Some(stream.id().clone()))
}

/// Moves the session into the driver, and back into its entity while the operations of the callback use it.
async fn with_transaction(c: &mut Call) -> Outcome {
    c.arguments.remove("callback");
    let (options, callback): (TransactionOptions, _) = (c.options()?, c.callback.clone());
    let Some(cell) = c.cell.clone() else { return NOTHING };
    let spare = lock(&cell).await?.client().start_session().await?;
    let mut own = std::mem::replace(&mut *lock(&cell).await?, spare);
    let action = own.start_transaction().with_options(options);
    let result = action.and_run((cell.clone(), callback), |session, (cell, callback)| {
        Box::pin(async move {
            std::mem::swap(session, &mut *lock(cell).await.map_err(Failure::into_driver)?);
            let result = callback().await;
            std::mem::swap(session, &mut *lock(cell).await.map_err(Failure::into_driver)?);
            result.map_err(Failure::into_driver)
        })
    }).await;
    *lock(&cell).await? = own;
    done(result)
}

async fn iterate(c: &mut Call, once: bool) -> Outcome {
    let Object::Cursor(cursor) = &c.on.object else { return NOTHING };
    let next: Option<Document> = match cursor.lock().await.as_mut() {
        None => return Err(Failure::client("the cursor is closed", "client")),
        Some(Found::Documents(cursor)) if once && !cursor.has_next() => None,
        Some(Found::Documents(_) | Found::SessionDocuments(..)) if once => {
            return Err(Failure::lacks("method of Cursor that sends at most one getMore"))
        }
        Some(Found::Documents(cursor)) => cursor.try_next().await?,
        Some(Found::SessionDocuments(cursor, session)) => cursor.next(&mut *lock(session).await?).await.transpose()?,
        Some(Found::Changes(stream)) if once => stream.next_if_any().await?,
        Some(Found::Changes(stream)) => stream.next().await.transpose()?,
        Some(Found::SessionChanges(stream, session)) if once => stream.next_if_any(&mut *lock(session).await?).await?,
        Some(Found::SessionChanges(stream, session)) => stream.next(&mut *lock(session).await?).await?,
    };
    Ok(Some(next.into()))
}
