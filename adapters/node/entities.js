// The entities of a test, and the operations that the Node driver performs on them.
'use strict';

const mongodb = require('mongodb');
const { version } = require('mongodb/package.json');
const { Log, calls, state } = require('./events.js');
const { lacks, written } = require('./failures.js');

const { EJSON, Double, Int32, Long } = mongodb.BSON;

// Options that many operations take.
const EACH = 'session timeoutMS comment rawData maxTimeMS ';
const READ = EACH + 'readConcern readPreference ';
const WRITE = EACH + 'writeConcern bypassDocumentValidation let ';
const CURSOR = READ + 'batchSize maxAwaitTimeMS timeoutMode ';
const AGGREGATE = CURSOR + 'writeConcern bypassDocumentValidation allowDiskUse collation hint let';
const FIND = CURSOR + 'allowDiskUse allowPartialResults collation cursorType hint let limit max min noCursorTimeout oplogReplay ' +
  'projection returnKey showRecordId skip sort';
const WATCH = CURSOR + 'collation fullDocument fullDocumentBeforeChange resumeAfter showExpandedEvents startAfter startAtOperationTime';
const MODIFY = WRITE + 'collation hint projection sort ';
const TRANSACTION = 'maxCommitTimeMS readConcern readPreference writeConcern';
const COMMAND = 'session timeoutMS timeoutMode readPreference cursorType batchSize maxTimeMS comment';
const CREATE = EACH + 'writeConcern capped changeStreamPreAndPostImages clusteredIndex collation expireAfterSeconds ' +
  'indexOptionDefaults max pipeline size storageEngine timeseries validationAction validationLevel validator viewOn';
const INDEX = EACH + '2dsphereIndexVersion background bits bucketSize collation commitQuorum default_language expireAfterSeconds ' +
  'hidden language_override max min name partialFilterExpression sparse storageEngine textIndexVersion unique version weights ' +
  'wildcardProjection';
const UPLOAD = 'source chunkSizeBytes metadata timeoutMS';
const COLLMOD = EACH + 'changeStreamPreAndPostImages expireAfterSeconds index pipeline timeseries validationAction ' +
  'validationLevel validator viewOn';

// Each operation: the arguments that the driver takes by position, its options, and how it is called.
const row = (positional, options, call) => ({ positional: positional.split(' ').filter(Boolean), options: options.split(' '), call });
const method = name => (entity, ...rest) => entity[name](...rest);
const all = name => async (entity, ...rest) => (await entity[name](...rest)).toArray();
const wrote = name => async (entity, ...rest) => written(await entity[name](...rest));
const nothing = call => async (...all) => void (await call(...all));

const TABLE = {
  client: {
    appendMetadata: row('driverInfoOptions', '', nothing(method('appendMetadata'))),
    clientBulkWrite: row('models', WRITE + 'ordered verboseResults', wrote('bulkWrite')),
    close: row('', '', closeClient),
    createChangeStream: row('pipeline', WATCH, watch),
    dropDatabase: row('database', 'session timeoutMS writeConcern', nothing((client, name, o) => client.db(name).dropDatabase(o))),
    listDatabaseNames: row('', READ + 'authorizedDatabases filter', async (client, o) =>
      (await client.db('admin').admin().listDatabases({ ...o, nameOnly: true })).databases.map(d => d.name)),
    listDatabases: row('', READ + 'authorizedDatabases filter nameOnly', async (client, o) =>
      (await client.db('admin').admin().listDatabases(o)).databases),
    $topology: row('', '', client => state(client.topology.description)),
    $configureFailPoint: row('command', '', (client, command) => client.db('admin').command(command, { readPreference: 'primary' }))
  },
  database: {
    aggregate: row('pipeline', AGGREGATE, all('aggregate')),
    createChangeStream: row('pipeline', WATCH, watch),
    createCollection: row('collection', CREATE, method('createCollection')),
    createCommandCursor: row('command', COMMAND, (...all) => begun(commandCursor(...all))),
    dropCollection: row('collection', EACH + 'writeConcern', nothing(method('dropCollection'))),
    listCollectionNames: row('filter', CURSOR + 'authorizedCollections', async (database, filter, o) =>
      (await database.listCollections(filter, { ...o, nameOnly: true }).toArray()).map(c => c.name)),
    listCollections: row('filter', CURSOR + 'authorizedCollections nameOnly', all('listCollections')),
    modifyCollection: row('collection', COLLMOD, (database, name, { session, ...o }) => database.command({ collMod: name, ...o }, { session })),
    runCommand: row('command', 'session timeoutMS readConcern readPreference', method('command')),
    runCursorCommand: row('command', COMMAND, (database, command, o) => commandCursor(database, command, o).toArray())
  },
  collection: {
    aggregate: row('pipeline', AGGREGATE, all('aggregate')),
    bulkWrite: row('requests', WRITE + 'ordered', wrote('bulkWrite')),
    count: row('filter', READ + 'collation hint limit skip', method('count')),
    countDocuments: row('filter', READ + 'collation hint limit skip', method('countDocuments')),
    createChangeStream: row('pipeline', WATCH, watch),
    createFindCursor: row('filter', FIND, (...all) => begun(find(...all))),
    createIndex: row('keys', INDEX, method('createIndex')),
    createSearchIndex: row('model', '', method('createSearchIndex')),
    createSearchIndexes: row('models', '', method('createSearchIndexes')),
    deleteMany: row('filter', WRITE + 'collation hint', wrote('deleteMany')),
    deleteOne: row('filter', WRITE + 'collation hint', wrote('deleteOne')),
    distinct: row('fieldName filter', READ + 'collation hint', method('distinct')),
    dropIndex: row('name', EACH + 'writeConcern', nothing(method('dropIndex'))),
    dropIndexes: row('', EACH + 'writeConcern', nothing(method('dropIndexes'))),
    dropSearchIndex: row('name', '', nothing(method('dropSearchIndex'))),
    estimatedDocumentCount: row('', READ, method('estimatedDocumentCount')),
    find: row('filter', FIND, (collection, filter, o) => find(collection, filter, o).toArray()),
    findOne: row('filter', FIND, method('findOne')),
    findOneAndDelete: row('filter', MODIFY, method('findOneAndDelete')),
    findOneAndReplace: row('filter replacement', MODIFY + 'returnDocument upsert', method('findOneAndReplace')),
    findOneAndUpdate: row('filter update', MODIFY + 'arrayFilters returnDocument upsert', method('findOneAndUpdate')),
    insertMany: row('documents', WRITE + 'ordered', wrote('insertMany')),
    insertOne: row('document', WRITE, wrote('insertOne')),
    listIndexNames: row('', CURSOR, async (collection, o) => (await collection.listIndexes(o).toArray()).map(i => i.name)),
    listIndexes: row('', CURSOR, all('listIndexes')),
    listSearchIndexes: row('name', 'aggregationOptions', (collection, name, { aggregationOptions }) =>
      collection.listSearchIndexes(...[name, aggregationOptions].filter(Boolean)).toArray()),
    rename: row('to', EACH + 'dropTarget writeConcern', nothing(method('rename'))),
    replaceOne: row('filter replacement', WRITE + 'collation hint sort upsert', wrote('replaceOne')),
    updateMany: row('filter update', WRITE + 'arrayFilters collation hint upsert', wrote('updateMany')),
    updateOne: row('filter update', WRITE + 'arrayFilters collation hint sort upsert', wrote('updateOne')),
    updateSearchIndex: row('name definition', '', nothing(method('updateSearchIndex')))
  },
  session: {
    abortTransaction: row('', 'timeoutMS', nothing(method('abortTransaction'))),
    commitTransaction: row('', 'timeoutMS', nothing(method('commitTransaction'))),
    endSession: row('', '', nothing(method('endSession'))),
    startTransaction: row('', TRANSACTION, nothing(method('startTransaction'))),
    withTransaction: row('callback', TRANSACTION + ' timeoutMS', nothing(method('withTransaction'))),
    $transactionState: row('', '', session => STATES[session.transaction.state]),
    $pinnedServer: row('', '', session =>
      session.pinnedConnection?.address ?? session.transaction.server?.description.address ?? null),
    $lsid: row('', '', session => serverSessions.get(session).id),
    $dirty: row('', '', session => serverSessions.get(session).isDirty)
  },
  bucket: {
    delete: row('id', 'timeoutMS', nothing(method('delete'))),
    download: row('id', 'timeoutMS', (bucket, id, o) => read(bucket.openDownloadStream(id, o))),
    downloadByName: row('filename', 'revision timeoutMS', (bucket, name, o) => read(bucket.openDownloadStreamByName(name, o))),
    drop: row('', 'timeoutMS', nothing(method('drop'))),
    find: row('filter', 'batchSize limit maxTimeMS skip sort timeoutMS', all('find')),
    rename: row('id newFilename', 'timeoutMS', nothing(method('rename'))),
    upload: row('filename', UPLOAD, (bucket, name, { source, ...o }) => upload(bucket.openUploadStream(name, o), source)),
    uploadWithId: row('id filename', UPLOAD, nothing((bucket, id, name, { source, ...o }) =>
      upload(bucket.openUploadStreamWithId(id, name, o), source)))
  },
  cursor: {
    close: row('', '', nothing(cursor => cursor.close())),
    iterateOnce: row('', '', cursor => cursor.tryNext()),
    iterateUntilDocumentOrError: row('', '', cursor => cursor.next())
  }
};

const STATES = {
  NO_TRANSACTION: 'none', STARTING_TRANSACTION: 'starting', TRANSACTION_IN_PROGRESS: 'in_progress',
  TRANSACTION_COMMITTED: 'committed', TRANSACTION_COMMITTED_EMPTY: 'committed', TRANSACTION_ABORTED: 'aborted'
};

// Server sessions by session: a session has the one that it is opened with.
const serverSessions = new WeakMap();

// Logs by client.
const logs = new WeakMap();

// begun sends the command of a cursor or change stream at once, as the format asks.
async function begun(cursor) {
  await (cursor.cursor ?? cursor).cursorInit();
  return cursor;
}

function watch(entity, pipeline, options) {
  return begun(entity.watch(pipeline, options));
}

function find(collection, filter, { cursorType, ...options }) {
  return collection.find(filter, { ...options, ...CURSOR_TYPES[cursorType] });
}

const CURSOR_TYPES = { tailable: { tailable: true }, tailableAwait: { tailable: true, awaitData: true } };

function commandCursor(database, command, { batchSize, maxTimeMS, comment, cursorType, ...options }) {
  const cursor = database.runCursorCommand(command, { ...options, ...CURSOR_TYPES[cursorType] });
  if (batchSize !== undefined) cursor.setBatchSize(batchSize);
  if (maxTimeMS !== undefined) cursor.setMaxTimeMS(maxTimeMS);
  if (comment !== undefined) cursor.setComment(comment);
  return cursor;
}

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return new mongodb.Binary(Buffer.concat(chunks));
}

async function upload(stream, source) {
  await new Promise((resolve, reject) => stream.once('error', reject).end(Buffer.from(source.$$hexBytes, 'hex'), resolve));
  return stream.id;
}

async function closeClient(client) {
  const log = logs.get(client);
  if (log.unacknowledged) { // the last connection answers when the server has carried out its writes
    log.unacknowledged = false;
    await calls.run({ hidden: true }, () => client.db('admin').command({ ping: 1 })).catch(() => {});
  }
  await client.close();
}

// relaxed gives a document of options with numbers of JavaScript, as the driver takes them.
const relaxed = document => EJSON.deserialize(EJSON.serialize(document, { relaxed: false }), { relaxed: true });

// number gives an option that is a number as JavaScript has it.
function number(value) {
  if (value instanceof Int32 || value instanceof Double) return value.valueOf();
  return value instanceof Long ? value.toNumber() : value;
}

// only gives a document of options, and refuses those that the driver does not have.
function only(known, document) {
  const unknown = Object.keys(document).find(option => !known.split(' ').includes(option));
  if (unknown) throw lacks(`option ${unknown}`);
  return relaxed(document);
}

function readPreference(document) {
  const { mode, tagSets, ...options } = only('mode tagSets maxStalenessSeconds', document);
  return new mongodb.ReadPreference(mode, tagSets, options);
}

// What the driver takes in another form than the format writes.
const CONVERT = {
  defaultTransactionOptions: options => converted(options, TRANSACTION),
  keys: relaxed,
  models: models => models.map(model => (model.name || model.definition ? model : clientModel(model))),
  readConcern: document => only('level', document),
  readPreference,
  returnDocument: value => value.toLowerCase(),
  sort: relaxed,
  writeConcern: document => only('w journal wtimeoutMS', document)
};

function clientModel(model) {
  const [[name, fields]] = Object.entries(model);
  return { name, ...fields };
}

function converted(options, known) {
  if (known) only(known, options);
  return Object.fromEntries(Object.entries(options).map(([name, v]) => [name, CONVERT[name] ? CONVERT[name](v) : number(v)]));
}

// The options of entities. Those of the runner are ignored.
const RUNNER = 'id client database databaseName collectionName useMultipleMongoses observeEvents ignoreCommandMonitoringEvents ' +
  'observeSensitiveCommands storeEventsAsEntities awaitMinPoolSizeMS';
const CONCERNS = 'readConcern readPreference writeConcern timeoutMS';
const NESTED = {
  serverApi: 'version strict deprecationErrors',
  observeLogMessages: 'command topology serverSelection connection client',
  databaseOptions: CONCERNS, collectionOptions: CONCERNS,
  sessionOptions: 'causalConsistency snapshot defaultTransactionOptions defaultTimeoutMS',
  bucketOptions: 'bucketName chunkSizeBytes readConcern readPreference writeConcern timeoutMS'
};
const PARENTS = { client: null, database: 'client', collection: 'database', session: 'client', bucket: 'database' };

function check(kind, options) {
  for (const [name, value] of Object.entries(options)) {
    if (name === 'uriOptions' || RUNNER.split(' ').includes(name)) continue;
    const known = NESTED[name]?.split(' ');
    const unknown = known ? Object.keys(value).find(option => !known.includes(option)) : name;
    if (unknown) throw lacks(`option ${unknown} of a ${kind}`);
  }
}

const OPEN = {
  client: async (_, log, { uri, options }) => {
    const client = new mongodb.MongoClient(uri, {
      minHeartbeatFrequencyMS: 50, monitorCommands: true, ...relaxed(options.uriOptions ?? {}),
      ...(options.serverApi && { serverApi: options.serverApi }),
      ...(options.observeLogMessages && {
        mongodbLogComponentSeverities: options.observeLogMessages, mongodbLogMaxDocumentLength: 10000,
        mongodbLogPath: { write: message => log.message(message) }
      })
    });
    log.listen(client);
    logs.set(client, log);
    await client.connect();
    return client;
  },
  database: (client, _, { options }) => client.db(options.databaseName, converted(options.databaseOptions ?? {})),
  collection: (database, _, { options }) => database.collection(options.collectionName, converted(options.collectionOptions ?? {})),
  session: (client, _, { options, clusterTime }) => {
    const session = client.startSession(converted(options.sessionOptions ?? {}));
    serverSessions.set(session, session.serverSession); // chosen now: a later question must not choose it
    if (clusterTime) session.advanceClusterTime(clusterTime.$clusterTime ?? clusterTime);
    return session;
  },
  bucket: (database, _, { options }) => new mongodb.GridFSBucket(database, converted(options.bucketOptions ?? {}))
};

const CLOSE = {
  client: closeClient,
  session: session => session.endSession(),
  cursor: cursor => cursor.close()
};

// Test has the entities of a test: { kind, value, log } by id, where log is that of the client.
class Test {
  #entities = new Map();

  get(id, kind) {
    const entity = this.#entities.get(id);
    if (!entity || (kind && entity.kind !== kind)) throw new Error(`there is no ${kind ?? 'entity'} ${id}`);
    return entity;
  }

  async open(params) {
    const { kind, id, options = {} } = params;
    if (!(kind in PARENTS)) throw lacks(`entity ${kind}`);
    check(kind, options);
    if (this.#entities.has(id)) throw new Error(`entity ${id} exists already`);
    const parent = PARENTS[kind] && this.get(options[PARENTS[kind]], PARENTS[kind]);
    const log = parent ? parent.log : new Log();
    try {
      this.#entities.set(id, { kind, log, value: await OPEN[kind](parent?.value, log, { ...params, options }) });
    } catch (error) {
      if (error instanceof mongodb.MongoParseError && /not supported/.test(error.message)) throw lacks(error.message);
      throw error;
    }
  }

  async close(id) {
    const { kind, value } = this.get(id);
    await CLOSE[kind]?.(value);
  }

  async end() {
    for (const kind of Object.keys(CLOSE).reverse()) {
      for (const entity of this.#entities.values()) {
        if (entity.kind === kind) await CLOSE[kind](entity.value).catch(() => {});
      }
    }
    this.#entities.clear();
  }

  async do({ object, name, arguments: given = {}, saveAs }, call, callback) {
    const { kind, value: entity, log } = this.get(object);
    const row = TABLE[kind]?.[name];
    if (!row) throw lacks(`operation ${kind}.${name}`);
    call.log = log;
    call.hidden = name === '$configureFailPoint';
    const { positional, options } = this.#arguments(kind, name, row, given);
    if (row.positional[0] === 'callback') positional[0] = callback;
    const concern = options.writeConcern ?? entity.writeConcern;
    log.unacknowledged ||= concern?.w === 0;
    const value = await row.call(entity, ...positional, options);
    if (/^create.*(Cursor|Stream)$/.test(name)) {
      this.#entities.set(saveAs ?? `cursor ${this.#entities.size}`, { kind: 'cursor', value, log });
      return undefined;
    }
    if (name === 'createCollection') {
      if (saveAs) this.#entities.set(saveAs, { kind: 'collection', value, log });
      return undefined;
    }
    return value ?? (value === undefined && /^(find|iterate)/.test(name) ? null : value);
  }

  // arguments divides the arguments of an operation into those that have a position and options.
  #arguments(kind, name, row, given) {
    const { session, callback, commandName, ...rest } = given;
    const values = converted(rest);
    if (session) values.session = this.get(session, 'session').value;
    if (commandName) values.command = { [commandName]: values.command[commandName], ...values.command };
    const unknown = Object.keys(values).find(option => !row.positional.includes(option) && !row.options.includes(option));
    if (unknown) throw lacks(`argument ${unknown} of ${kind}.${name}`);
    const positional = row.positional.map(argument => values[argument]);
    for (const argument of row.positional) delete values[argument];
    return { positional, options: values };
  }
}

function describe() {
  const operations = Object.entries(TABLE).flatMap(([kind, rows]) => Object.keys(rows).map(name => `${kind}.${name}`));
  return { name: 'node', version, schemaVersion: '1.28', operations: operations.sort(), features: ['logging'] };
}

module.exports = { Test, describe };
