// The entities of a test, and the operations that the Node driver performs on them.
'use strict';

const { pipeline } = require('node:stream/promises');
const mongodb = require('mongodb');
const { OPTIONS: driverOptions } = require('mongodb/lib/connection_string.js');
const { version } = require('mongodb/package.json');
const { Log, calls, logOptions, state } = require('./events.js');
const { ejson, lacks, written } = require('./failures.js');

const READ = ' session comment rawData maxTimeMS readConcern readPreference';
const COUNT = READ + ' collation hint limit skip';
const CURSOR = READ + ' batchSize maxAwaitTimeMS';
const AGGREGATE = CURSOR + ' writeConcern bypassDocumentValidation allowDiskUse collation hint let';
const FIND = CURSOR + ' allowDiskUse allowPartialResults collation cursorType hint let limit max min noCursorTimeout' +
  ' oplogReplay projection returnKey showRecordId skip sort';
const WATCH = CURSOR + ' collation fullDocument fullDocumentBeforeChange resumeAfter showExpandedEvents startAfter' +
  ' startAtOperationTime';
const WRITE = ' session comment rawData writeConcern';
const INSERT = WRITE + ' bypassDocumentValidation';
const VALIDATED = INSERT + ' let';
const MODIFY = VALIDATED + ' maxTimeMS collation hint projection sort';
const DROP = WRITE + ' maxTimeMS';
const INDEX = DROP + ' 2dsphereIndexVersion background bits bucketSize collation commitQuorum default_language' +
  ' expireAfterSeconds hidden language_override max min name partialFilterExpression sparse storageEngine' +
  ' textIndexVersion unique version weights wildcardProjection';
const COMMAND = 'commandName session readPreference';
const COMMAND_CURSOR = COMMAND + ' cursorType batchSize maxTimeMS comment';
const COLLMOD = ' session comment maxTimeMS changeStreamPreAndPostImages expireAfterSeconds pipeline timeseries' +
  ' validationAction validationLevel validator viewOn';
const CREATE = COLLMOD + ' writeConcern capped clusteredIndex collation indexOptionDefaults max size storageEngine';
const TRANSACTION = 'maxCommitTimeMS readConcern readPreference writeConcern';

// The fields of write models.
const WRITES = {
  insertOne: 'document', deleteOne: 'filter collation hint', deleteMany: 'filter collation hint',
  replaceOne: 'filter replacement collation hint sort upsert',
  updateOne: 'filter update arrayFilters collation hint sort upsert',
  updateMany: 'filter update arrayFilters collation hint upsert'
};

// Each operation: its positional arguments, its options, and its method if that has another name or is a function here.
const TABLE = {
  client: {
    appendMetadata: ['driverInfoOptions', ''], close: ['', ''], createChangeStream: ['pipeline', WATCH, 'watch'],
    clientBulkWrite: ['models', VALIDATED + ' ordered verboseResults', 'bulkWrite'],
    dropDatabase: ['database', 'session writeConcern', (client, name, rest) => client.db(name).dropDatabase(rest)],
    listDatabaseNames: ['', READ + ' authorizedDatabases filter', async (client, options) =>
      (await client.db().admin().listDatabases({ ...options, nameOnly: true })).databases.map(({ name }) => name)],
    listDatabases: ['', READ + ' authorizedDatabases filter nameOnly', async (client, options) =>
      (await client.db().admin().listDatabases(options)).databases],
    $topology: ['', '', client => state(client.topology.description)],
    $configureFailPoint: ['command', '', (client, command) => client.db('admin').command(command)]
  },
  database: {
    aggregate: ['pipeline', AGGREGATE], createChangeStream: ['pipeline', WATCH, 'watch'],
    createCollection: ['collection', CREATE], dropCollection: ['collection', DROP],
    createCommandCursor: ['command', COMMAND_CURSOR, commandCursor], runCommand: ['command', COMMAND, 'command'],
    runCursorCommand: ['command', COMMAND_CURSOR, commandCursor],
    listCollectionNames: ['filter', CURSOR + ' authorizedCollections', (database, filter, options) =>
      database.listCollections(filter, { ...options, nameOnly: true }).map(collection => collection.name)],
    listCollections: ['filter', CURSOR + ' authorizedCollections nameOnly'],
    listCollectionObjects: ['', CURSOR + ' authorizedCollections', async (database, options) =>
      (await database.collections(options)).map(({ collectionName: name }) => ({ name }))],
    modifyCollection: ['collection', COLLMOD + ' index', (database, collMod, { session, ...options }) =>
      database.command({ collMod, ...options }, { session })]
  },
  collection: {
    aggregate: ['pipeline', AGGREGATE], createChangeStream: ['pipeline', WATCH, 'watch'],
    bulkWrite: ['requests', VALIDATED + ' ordered'], rename: ['to', DROP + ' dropTarget'],
    insertMany: ['documents', INSERT + ' ordered'], insertOne: ['document', INSERT],
    deleteMany: ['filter', WRITE + ' let collation hint'], deleteOne: ['filter', WRITE + ' let collation hint'],
    replaceOne: ['filter replacement', VALIDATED + ' collation hint sort upsert'],
    updateMany: ['filter update', VALIDATED + ' arrayFilters collation hint upsert'],
    updateOne: ['filter update', VALIDATED + ' arrayFilters collation hint sort upsert'],
    findOneAndDelete: ['filter', MODIFY],
    findOneAndReplace: ['filter replacement', MODIFY + ' returnDocument upsert'],
    findOneAndUpdate: ['filter update', MODIFY + ' arrayFilters returnDocument upsert'],
    find: ['filter', FIND], findOne: ['filter', FIND], createFindCursor: ['filter', FIND, 'find'],
    count: ['filter', COUNT], countDocuments: ['filter', COUNT], estimatedDocumentCount: ['', READ],
    distinct: ['fieldName filter', READ + ' collation hint'],
    createIndex: ['keys', INDEX], dropIndex: ['name', DROP], dropIndexes: ['', DROP], listIndexes: ['', CURSOR],
    listIndexNames: ['', CURSOR, (collection, options) => collection.listIndexes(options).map(index => index.name)],
    createSearchIndex: ['model', ''], createSearchIndexes: ['models', ''],
    dropSearchIndex: ['name', ''], updateSearchIndex: ['name definition', ''],
    listSearchIndexes: ['name', 'aggregationOptions', (collection, name, { aggregationOptions }) =>
      collection.listSearchIndexes(...[name, aggregationOptions].filter(Boolean))]
  },
  session: {
    abortTransaction: ['', ''], commitTransaction: ['', ''], endSession: ['', ''],
    startTransaction: ['', TRANSACTION], withTransaction: ['callback', TRANSACTION],
    getSnapshotTime: ['', '', session => session.snapshotTime],
    $lsid: ['', '', session => session.serverSession.id], $dirty: ['', '', session => session.serverSession.isDirty],
    $transactionState: ['', '', session => session.transaction.state.toLowerCase()
      .replace('no_transaction', 'none').replace(/^transaction_|_transaction$|_empty$/g, '')],
    $pinnedServer: ['', '', session =>
      session.pinnedConnection?.address ?? session.transaction.server?.description.address ?? null]
  },
  bucket: {
    delete: ['id', ''], drop: ['', ''], rename: ['id newFilename', ''], download: ['id', '', 'openDownloadStream'],
    downloadByName: ['filename', 'revision', 'openDownloadStreamByName'],
    find: ['filter', 'batchSize limit maxTimeMS skip sort'],
    upload: ['filename source', 'chunkSizeBytes metadata', (bucket, name, source, options) =>
      write(bucket.openUploadStream(name, options), source)],
    uploadWithId: ['id filename source', 'chunkSizeBytes metadata', (bucket, id, name, source, options) =>
      write(bucket.openUploadStreamWithId(id, name, options), source)]
  },
  cursor: { close: ['', ''], iterateOnce: ['', '', 'tryNext'], iterateUntilDocumentOrError: ['', '', 'next'] }
};
const NOTHING = /^(append|drop|rename|updateSearch|delete$|uploadWith|(abort|commit|start|with)Trans|end)/;
const WRITING = /^(insert|update(One|Many)|replaceOne|delete(One|Many)|bulkWrite|clientBulkWrite)/;

function commandCursor(database, command, { batchSize, maxTimeMS, comment, ...options }) {
  const cursor = database.runCursorCommand(command, options);
  return cursor.setBatchSize(batchSize).setMaxTimeMS(maxTimeMS).setComment(comment);
}

async function write(stream, source) {
  await pipeline([source], stream);
  return stream.id;
}

function check(names, known, what) {
  const unknown = Object.keys(names).find(name => !known.split(' ').includes(name));
  if (unknown) throw lacks(`${what} ${unknown}`);
  return names;
}

// plain converts numbers in a document of options to JavaScript numbers.
const plain = document => mongodb.BSON.EJSON.deserialize(ejson(document), { relaxed: true });
const only = known => document => plain(check(document, known, 'option'));

function checkWrite(document, more = '') {
  const [[name, fields]] = Object.entries(document);
  return { name, ...check(fields, WRITES[name] + more, `argument of ${name}:`) };
}

const CONVERT = {
  defaultTransactionOptions: document => converted(check(document, TRANSACTION, 'option')),
  driverInfoOptions: only('name version platform'),
  keys: plain, sort: plain,
  models: models => models.map(one => (one.definition ? one : checkWrite(one, ' namespace'))),
  readConcern: only('level'), writeConcern: only('w journal wtimeoutMS'),
  readPreference: ({ mode, tagSets, ...more }) =>
    new mongodb.ReadPreference(mode[0].toLowerCase() + mode.slice(1), tagSets, only('maxStalenessSeconds')(more)),
  requests: requests => requests.filter(request => checkWrite(request)),
  returnDocument: value => value.toLowerCase(),
  source: ({ $$hexBytes }) => Buffer.from($$hexBytes, 'hex')
};
const CURSOR_TYPES = { tailable: { tailable: true }, tailableAwait: { tailable: true, awaitData: true } };

function converted({ cursorType, commandName, ...options }) {
  const values = { ...CURSOR_TYPES[cursorType] };
  for (const [name, value] of Object.entries(options)) {
    const convert = CONVERT[name] ?? (/^(Int32|Double|Long)$/.test(value?._bsontype) ? Number : same => same);
    values[name] = convert(value);
  }
  if (commandName) values.command = { [commandName]: values.command[commandName], ...values.command };
  return values;
}

// The options of entities (the first names the parent), and of their options.
const CONCERNS = 'readConcern readPreference writeConcern';
const OPTIONS = {
  client: 'uriOptions serverApi useMultipleMongoses observeEvents ignoreCommandMonitoringEvents' +
    ' observeSensitiveCommands storeEventsAsEntities awaitMinPoolSizeMS observeLogMessages',
  database: 'client databaseName databaseOptions', collection: 'database collectionName collectionOptions',
  session: 'client sessionOptions', bucket: 'database bucketOptions'
};
const NESTED = {
  databaseOptions: CONCERNS, collectionOptions: CONCERNS, bucketOptions: 'bucketName chunkSizeBytes ' + CONCERNS,
  sessionOptions: 'causalConsistency snapshot defaultTransactionOptions', serverApi: 'version strict deprecationErrors'
};
const DEFAULTS = { // README.md explains them
  monitorCommands: true, __skipPingOnConnect: true, heartbeatFrequencyMS: 500, minHeartbeatFrequencyMS: 50
};
const OPEN = {
  async client({ uri, options: { uriOptions = {}, serverApi, observeLogMessages } }, call) {
    if ('timeoutMS' in uriOptions && driverOptions.timeoutMS.ignored) {
      throw lacks('timeoutMS of a client, which the Node driver ignores since 7.8');
    }
    const given = { ...plain(uriOptions), ...(serverApi && { serverApi }) };
    const messages = [];
    const logging = observeLogMessages && logOptions(observeLogMessages, messages);
    const client = new mongodb.MongoClient(uri, { ...DEFAULTS, ...logging, ...given });
    call.log = new Log(client, messages);
    return client.connect();
  },
  database: ({ options }, client, given) => client.db(options.databaseName, given),
  collection: ({ options }, database, given) => database.collection(options.collectionName, given),
  bucket: (_, database, given) => new mongodb.GridFSBucket(database, given),
  session({ clusterTime }, client, given) {
    const session = client.startSession(given);
    if (clusterTime) session.advanceClusterTime(clusterTime.$clusterTime ?? clusterTime);
    return session;
  }
};

class Test {
  #entities = new Map(); // { kind, value, log of the client } by id
  raised = new Map(); // errors of the driver, by request

  get(id, kind) {
    const entity = this.#entities.get(id);
    if (!entity || (kind && entity.kind !== kind)) throw new Error(`unknown ${kind ?? 'entity'} ${id}`);
    return entity;
  }

  async open({ kind, id, options = {}, ...params }, call) {
    if (!OPTIONS[kind]) throw lacks(`entity ${kind}`);
    check(options, 'id ' + OPTIONS[kind], `option of a ${kind}:`);
    for (const name in options) if (NESTED[name]) check(options[name], NESTED[name], `option of ${name}:`);
    if (this.#entities.has(id)) throw new Error(`entity ${id} exists already`);
    const [parent] = OPTIONS[kind].split(' ');
    try {
      const { value, log } = kind === 'client' ? { value: call } : this.get(options[parent], parent);
      const entity = await OPEN[kind]({ ...params, options }, value, converted(options[kind + 'Options'] ?? {}));
      this.#entities.set(id, { kind, value: entity, log: log ?? call.log });
    } catch (error) {
      throw /options? .* (is|are) not supported/.test(error.message) ? lacks(error.message) : error;
    }
  }

  async close(id) {
    const { kind, value, log } = this.get(id);
    if (kind === 'client' && log.unacknowledged) { // the reply shows that the server has executed the writes
      log.unacknowledged = false;
      await calls.run({ operation: '$ping', result: {} }, () => value.db().command({ ping: 1 })).catch(() => {});
    }
    if (kind === 'session') await value.endSession();
    if (kind === 'client' || kind === 'cursor') await value.close();
  }

  async end() {
    for (const kind of ['cursor', 'session', 'client']) {
      for (const [id, entity] of this.#entities) if (entity.kind === kind) await this.close(id).catch(() => {});
    }
    this.#entities.clear();
  }

  async do({ object, name, arguments: given = {}, saveAs }, call, callback) {
    const { kind, value: entity, log } = this.get(object);
    if (!TABLE[kind]?.[name]) throw lacks(`operation ${kind}.${name}`);
    const [positional, known, method = name] = TABLE[kind][name];
    const options = converted(check(given, `${positional} ${known}`, `argument of ${kind}.${name}:`));
    if (given.session) options.session = this.get(given.session, 'session').value;
    if (name === 'close' || name === 'endSession') return void await this.close(object);
    const names = positional.split(' ').filter(Boolean);
    const first = names.map(argument => (argument === 'callback' ? callback : options[argument]));
    for (const argument of names) delete options[argument];
    // The methods excluded here would send the signal to the server.
    if (!/(Collection|ChangeStream)$/.test(name)) options.signal = call.controller.signal;
    Object.assign(call, { log, operation: name });
    log.unacknowledged ||= (options.writeConcern ?? entity.writeConcern)?.w === 0;
    const all = [...first, options];
    const value = await (typeof method === 'string' ? entity[method](...all) : method(entity, ...all));
    const [, created] = /^create.*(Cursor|ChangeStream|Collection)$/.exec(name) ?? [];
    if (created) {
      const kind = created === 'Collection' ? 'collection' : 'cursor';
      if (kind === 'cursor') await (value.cursor ?? value).cursorInit(); // the format requires the command now
      this.#entities.set(saveAs ?? `${name} ${this.#entities.size}`, { kind, value, log });
    }
    if (created || NOTHING.test(name)) return undefined;
    if (WRITING.test(name)) return written(value);
    const whole = value?.toArray ? await value.toArray() : value;
    return value instanceof mongodb.GridFSBucketReadStream ? new mongodb.Binary(Buffer.concat(whole)) : whole;
  }
}

const operations = Object.keys(TABLE).flatMap(kind => Object.keys(TABLE[kind]).map(name => `${kind}.${name}`)).sort();
const lacking = {
  'client.listDatabaseObjects': 'the Node driver has no method that returns the databases as Db objects',
  'collection.mapReduce': 'the Node driver 5.0 removed Collection.mapReduce'
};
const description = {
  protocol: 1, name: 'node', version, schemaVersion: '1.28', operations, lacks: lacking, features: ['logging'],
  concurrentTests: 8
};

module.exports = { Test, description };
