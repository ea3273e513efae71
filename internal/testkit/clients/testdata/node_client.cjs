// Uses a deployment with the Node driver, in steps.
//
// Each step prints one line: "ok STEP", "skip STEP: why" or "FAILED STEP: why".
// After a failure the stack is on standard error and the exit code is 1.
//
// UTR_URI         the deployment; UTR_SINGLE_URI: one of its servers, for fail points
// UTR_TOPOLOGY    single, replicaset, sharded or load-balanced
// UTR_VERSION     the server version
// UTR_CA_FILE     the CA certificate; empty without TLS
// UTR_STEPS       names of steps, separated by commas; empty means all
//
// NODE_PATH       the folder with the package mongodb
'use strict';

const { isDeepStrictEqual, inspect } = require('node:util');
const { setTimeout: sleep } = require('node:timers/promises');
const mongodb = require('mongodb');

const URI = process.env.UTR_URI;
const SINGLE_URI = process.env.UTR_SINGLE_URI;
const TOPOLOGY = process.env.UTR_TOPOLOGY;
const VERSION = process.env.UTR_VERSION.split('.').map(Number);
const CA_FILE = process.env.UTR_CA_FILE || '';
const STEPS = (process.env.UTR_STEPS || '').split(',').filter(Boolean);
const DATABASE = 'clients_node';
// Timeout of all operations, long enough for a busy machine.
const PATIENCE_MS = 60000;

class Skip extends Error {}

const openClients = [];

function connect(uri = URI, options = {}) {
  const client = new mongodb.MongoClient(uri, {
    monitorCommands: true,
    serverSelectionTimeoutMS: PATIENCE_MS,
    socketTimeoutMS: PATIENCE_MS,
    ...(CA_FILE ? { tlsCAFile: CA_FILE } : {}),
    ...options,
  });
  client.sent = [];
  client.on('commandStarted', (event) => client.sent.push(event));
  openClients.push(client);
  return client;
}

function named(client, name) {
  return client.sent.filter((e) => e.commandName === name).map((e) => e.command);
}

function equal(got, want, what) {
  if (!isDeepStrictEqual(got, want)) {
    throw new Error(`${what}: got ${inspect(got, { depth: 6 })}, want ${inspect(want, { depth: 6 })}`);
  }
}

async function fails(kind, code, action, what) {
  let result;
  try {
    result = await action();
  } catch (failure) {
    if (!(failure instanceof kind)) {
      throw new Error(`${what} failed with ${failure.name}: ${failure.message}, want ${kind.name}`, { cause: failure });
    }
    if (code !== null) {
      equal(failure.code, code, `code of ${what}: ${failure.message}`);
    }
    return failure;
  }
  throw new Error(`${what} did not fail, and returned ${inspect(result)}`);
}

// fresh returns a collection with only these documents.
async function fresh(name, documents = []) {
  const collection = client.db(DATABASE).collection(name);
  await collection.drop().catch((e) => {
    if (e.code !== 26) throw e; // servers before 7.0 fail if the collection does not exist
  });
  if (documents.length) await collection.insertMany(documents);
  return collection;
}

function notStandalone() {
  if (TOPOLOGY === 'single') throw new Skip('not supported by a standalone');
}

function from(...version) {
  return VERSION[0] > version[0] || (VERSION[0] === version[0] && VERSION[1] >= version[1]);
}

const range = (n) => [...Array(n).keys()];

// within fails if a promise takes longer than PATIENCE_MS.
async function within(promise, what) {
  const stop = new AbortController();
  try {
    return await Promise.race([
      promise,
      sleep(PATIENCE_MS, null, { signal: stop.signal }).then(() => {
        throw new Error(`${what}: timed out after ${PATIENCE_MS} ms`);
      }),
    ]);
  } finally {
    stop.abort();
  }
}

let client, single;

const steps = {
  async connects() {
    await client.connect();
    const hello = await client.db('admin').command({ hello: 1 });
    equal(hello.isWritablePrimary, true, 'isWritablePrimary');
    const build = await client.db('admin').command({ buildInfo: 1 });
    equal(build.versionArray.slice(0, 2), VERSION, 'version');
    const kinds = {
      single: [undefined, undefined],
      replicaset: ['rs0', undefined],
      sharded: [undefined, 'isdbgrid'],
      'load-balanced': [undefined, 'isdbgrid'],
    };
    equal([hello.setName, hello.msg], kinds[TOPOLOGY], 'setName and msg');
    if (TOPOLOGY === 'replicaset') {
      const secondary = await client.db('admin').command({ hello: 1 }, { readPreference: 'secondary' });
      equal(secondary.secondary, true, 'read from a secondary');
    }
  },

  async insertMany() {
    const collection = await fresh('inserted');
    client.sent = [];
    const { insertedCount } = await collection.insertMany(range(250).map((n) => ({ _id: n, x: n * 11 })));
    equal(insertedCount, 250, 'inserted');
    equal(await collection.countDocuments(), 250, 'documents');
    equal(named(client, 'insert').map((c) => 'txnNumber' in c), [TOPOLOGY !== 'single'], 'txnNumber for each insert sent');
    await fails(mongodb.MongoServerError, 11000, () => collection.insertOne({ _id: 3 }), 'a second _id');
  },

  // The documents exceed the maximum message size, so the driver must split them.
  async insertOverSeveralCommands() {
    const collection = await fresh('large');
    const big = 'x'.repeat(1 << 20);
    client.sent = [];
    await collection.insertMany(range(50).map((n) => ({ _id: n, big })));
    if (named(client, 'insert').length < 2) throw new Error('sent as one message');
    equal(await collection.countDocuments(), 50, 'documents');
    let bytes = 0;
    for await (const d of collection.find()) bytes += d.big.length;
    equal(bytes, 50 << 20, 'bytes read');
    await collection.drop();
  },

  async types() {
    const collection = await fresh('types');
    const values = {
      _id: new mongodb.ObjectId(),
      double: 1.5,
      long: mongodb.Long.fromString('1152921504606846976'),
      int: 7,
      text: 'grüße 🙂\x00',
      binary: new mongodb.Binary(Buffer.from([0, 255])),
      uuid: new mongodb.UUID('00000000-0000-4000-8000-000000000005'),
      date: new Date(1770091506789),
      true: true,
      null: null,
      regex: /^a/i,
      timestamp: new mongodb.Timestamp({ t: 5, i: 6 }),
      decimal: mongodb.Decimal128.fromString('1.10'),
      min: new mongodb.MinKey(),
      max: new mongodb.MaxKey(),
      code: new mongodb.Code('f'),
      nested: { list: [1, [2, { three: 3 }]], empty: {} },
    };
    await collection.insertOne(values);
    const got = await collection.findOne({}, { promoteLongs: false, promoteValues: true });
    equal(mongodb.BSON.EJSON.stringify(got, { relaxed: false }), mongodb.BSON.EJSON.stringify(values, { relaxed: false }), 'document');
    const kinds = Object.fromEntries(['long', 'decimal', 'uuid', 'regex'].map((name) => [name, { $type: '$' + name }]));
    const [types] = await collection.aggregate([{ $project: { _id: 0, ...kinds } }]).toArray();
    equal(types, { long: 'long', decimal: 'decimal', uuid: 'binData', regex: 'regex' }, '$type');
  },

  async updateOne() {
    const collection = await fresh('updated', [{ _id: 1, x: 1, tags: ['a'] }, { _id: 2, x: 1, tags: [] }]);
    let r = await collection.updateOne({ _id: 1 }, { $set: { y: 2 }, $inc: { x: 4 }, $push: { tags: 'b' } });
    equal([r.matchedCount, r.modifiedCount], [1, 1], 'updateOne');
    equal(await collection.findOne({ _id: 1 }), { _id: 1, x: 5, tags: ['a', 'b'], y: 2 }, 'updated');
    r = await collection.updateMany({}, { $mul: { x: 10 } });
    equal([r.matchedCount, r.modifiedCount], [2, 2], 'updateMany');
    r = await collection.updateOne({ _id: 9 }, { $set: { z: 1 }, $setOnInsert: { fresh: true } }, { upsert: true });
    equal([r.matchedCount, r.upsertedId], [0, 9], 'upsert');
    await collection.updateOne({ _id: 2 }, [{ $set: { double: { $multiply: ['$x', 2] } } }]);
    equal((await collection.findOne({ _id: 2 })).double, 20, 'update by pipeline');
    await collection.replaceOne({ _id: 2 }, { only: 'this' });
    equal(await collection.findOne({ _id: 2 }), { _id: 2, only: 'this' }, 'replaced');
    const after = await collection.findOneAndUpdate({ _id: 9 }, { $set: { z: 2 } }, { returnDocument: 'after' });
    equal(after.z, 2, 'after');
    equal((await collection.findOneAndDelete({ _id: 9 })).z, 2, 'deleted');
    equal((await collection.deleteMany({})).deletedCount, 2, 'deleteMany');
    await fails(mongodb.MongoServerError, 9, () => collection.updateOne({}, { $nosuch: { a: 1 } }), 'an unknown modifier');
  },

  async bulkWrite() {
    const collection = await fresh('bulk', [{ _id: 1 }, { _id: 2 }]);
    const r = await collection.bulkWrite([
      { insertOne: { document: { _id: 3 } } },
      { updateOne: { filter: { _id: 1 }, update: { $set: { x: 1 } } } },
      { updateOne: { filter: { _id: 4 }, update: { $set: { x: 1 } }, upsert: true } },
      { replaceOne: { filter: { _id: 2 }, replacement: { y: 1 } } },
      { deleteOne: { filter: { _id: 3 } } },
    ]);
    const counts = [r.insertedCount, r.matchedCount, r.modifiedCount, r.deletedCount, r.upsertedIds];
    equal(counts, [1, 2, 2, 1, { 2: 4 }], 'counts');
    const duplicates = [1, 20, 2, 21].map((n) => ({ insertOne: { document: { _id: n } } }));
    const failure = await fails(mongodb.MongoBulkWriteError, 11000, () => collection.bulkWrite(duplicates, { ordered: false }), 'duplicates');
    equal(failure.writeErrors.map((e) => [e.index, e.code]), [[0, 11000], [2, 11000]], 'writeErrors');
    equal(await collection.countDocuments(), 5, 'documents');
  },

  async clientBulkWrite() {
    if (!from(8, 0)) throw new Skip('the command bulkWrite requires 8.0');
    const collection = await fresh('bulk_of_client', [{ _id: 1 }]);
    const namespace = `${DATABASE}.bulk_of_client`;
    const r = await client.bulkWrite(
      [
        { name: 'insertOne', namespace, document: { _id: 2 } },
        { name: 'updateOne', namespace, filter: { _id: 1 }, update: { $set: { x: 1 } } },
        { name: 'insertOne', namespace: `${namespace}_too`, document: { _id: 1 } },
        { name: 'deleteOne', namespace, filter: { _id: 2 } },
      ],
      { verboseResults: true },
    );
    equal([r.insertedCount, r.modifiedCount, r.deletedCount], [2, 1, 1], 'counts');
    equal(await collection.find().toArray(), [{ _id: 1, x: 1 }], 'documents');
    await client.db(DATABASE).collection('bulk_of_client_too').drop();
  },

  async find() {
    const collection = await fresh('found', range(12).map((n) => ({ _id: n, x: n % 3, in: { y: [n, n + 1] } })));
    const got = await collection.find({ x: { $gt: 0 } }, { projection: { x: 1 }, sort: { x: -1, _id: 1 }, skip: 1, limit: 4 }).toArray();
    equal(got, [{ _id: 5, x: 2 }, { _id: 8, x: 2 }, { _id: 11, x: 2 }, { _id: 1, x: 1 }], 'documents');
    equal((await collection.find({ 'in.y': 5 }).toArray()).map((d) => d._id), [4, 5], 'by an element of a nested array');
    equal(await collection.countDocuments({ $or: [{ _id: { $in: [1, 2] } }, { x: { $exists: false } }] }), 2, '$or, $in, $exists');
    equal(await collection.findOne({ _id: /^a/ }), null, 'no match');
    equal(await collection.countDocuments({ $expr: { $eq: ['$_id', '$x'] } }), 3, '$expr');
    await fails(mongodb.MongoServerError, 2, () => collection.findOne({ x: { $nosuch: 1 } }), 'an unknown operator');
  },

  async aggregate() {
    const collection = await fresh('aggregated', range(10).map((n) => ({ _id: n, kind: n % 2 ? 'odd' : 'even', n })));
    let got = await collection
      .aggregate([
        { $match: { n: { $gte: 3 } } },
        { $group: { _id: '$kind', sum: { $sum: '$n' }, all: { $push: '$n' } } },
        { $sort: { _id: 1 } },
        { $project: { _id: 0, kind: '$_id', sum: 1, many: { $size: '$all' } } },
      ])
      .toArray();
    equal(got, [{ sum: 18, kind: 'even', many: 3 }, { sum: 24, kind: 'odd', many: 4 }], 'groups');
    got = await collection
      .aggregate([
        { $match: { _id: { $lt: 2 } } },
        { $lookup: { from: 'aggregated', localField: 'kind', foreignField: 'kind', as: 'same' } },
        { $unwind: '$same' },
        { $count: 'pairs' },
      ])
      .toArray();
    equal(got, [{ pairs: 10 }], '$lookup, $unwind, $count');
    await collection.aggregate([{ $match: { n: { $lt: 3 } } }, { $out: 'aggregated_out' }]).toArray();
    const out = client.db(DATABASE).collection('aggregated_out');
    equal(await out.countDocuments(), 3, '$out');
    await out.drop();
    await fails(mongodb.MongoServerError, 40324, () => collection.aggregate([{ $nosuch: {} }]).toArray(), 'an unknown stage');
  },

  async countAndDistinct() {
    const collection = await fresh('counted', range(7).map((n) => ({ _id: n, x: n % 3, t: ['a', 'b'] })));
    equal(await collection.countDocuments({ x: 0 }), 3, 'countDocuments');
    equal(await collection.estimatedDocumentCount(), 7, 'estimatedDocumentCount');
    equal((await collection.distinct('x')).sort(), [0, 1, 2], 'distinct');
    equal((await collection.distinct('t', { x: 1 })).sort(), ['a', 'b'], 'distinct of arrays');
  },

  async indexes() {
    const collection = await fresh('indexed', [{ _id: 1, x: 1 }]);
    equal(await collection.createIndex({ x: 1 }, { unique: true }), 'x_1', 'name');
    const names = await collection.createIndexes([{ key: { a: 1, b: -1 } }, { key: { e: 1 }, name: 'expiry', expireAfterSeconds: 60 }]);
    equal(names, ['a_1_b_-1', 'expiry'], 'names');
    const listed = Object.fromEntries((await collection.listIndexes().toArray()).map((i) => [i.name, i]));
    equal(Object.keys(listed).sort(), ['_id_', 'a_1_b_-1', 'expiry', 'x_1'], 'listed');
    equal([listed.x_1.unique, listed.expiry.expireAfterSeconds], [true, 60], 'options');
    const failure = await fails(mongodb.MongoServerError, 11000, () => collection.insertOne({ x: 1 }), 'a second x');
    // A mongos before 5.0 returns codeName instead of keyPattern.
    equal(failure.keyPattern, TOPOLOGY === 'sharded' && !from(5, 0) ? undefined : { x: 1 }, 'keyPattern');
    await collection.dropIndex('x_1');
    await collection.insertOne({ x: 1 });
    equal((await collection.indexes()).length, 3, 'after one was dropped');
  },

  async collectionsAndDatabases() {
    const database = client.db('clients_node_listed');
    await database.dropDatabase();
    await database.createCollection('capped', { capped: true, size: 4096 });
    await database.collection('plain').insertOne({});
    await database.createCollection('seen', { viewOn: 'plain', pipeline: [{ $match: {} }] });
    const listed = await database.listCollections().toArray();
    const kinds = Object.fromEntries(listed.map((c) => [c.name, [c.type, c.options.capped]]));
    delete kinds['system.views'];
    equal({ ...kinds }, { ...kinds, capped: ['collection', true], plain: ['collection', undefined], seen: ['view', undefined] }, 'collections');
    equal(Object.keys(kinds).length, 3, 'collections');
    equal(await database.collection('seen').countDocuments(), 1, 'documents of the view');
    equal((await database.listCollections({ name: 'plain' }, { nameOnly: true }).toArray()).length, 1, 'filtered');
    const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true });
    equal(databases.some((d) => d.name === 'clients_node_listed'), true, 'listed');
    await fails(mongodb.MongoServerError, 48, () => database.createCollection('plain', { capped: true, size: 4096 }), 'creating it again with other options');
    await database.dropDatabase();
    equal(await database.listCollections().toArray(), [], 'after dropDatabase');
  },

  async diagnostics() {
    await fresh('measured', [{ _id: 1 }]);
    const database = client.db(DATABASE);
    equal((await database.command({ collStats: 'measured' })).count, 1, 'collStats');
    equal((await database.stats()).ok, 1, 'dbStats');
    equal('connections' in (await client.db('admin').admin().serverStatus()), true, 'serverStatus');
    await fails(mongodb.MongoServerError, 59, () => database.command({ noSuchCommand: 1 }), 'an unknown command');
  },

  async getMore() {
    const collection = await fresh('batches', range(10).map((n) => ({ _id: n })));
    client.sent = [];
    const ids = (await collection.find({}, { batchSize: 3, sort: { _id: 1 } }).toArray()).map((d) => d._id);
    equal(ids, range(10), 'documents');
    equal(named(client, 'getMore').map((c) => c.batchSize), [3, 3, 3], 'getMore sent');
    client.sent = [];
    equal((await collection.aggregate([{ $match: {} }], { batchSize: 4 }).toArray()).length, 10, 'documents of aggregate');
    equal(named(client, 'getMore').length, 2, 'getMore sent for aggregate');
    const cursor = collection.find({}, { batchSize: 2 });
    await cursor.next();
    const number = cursor.id;
    client.sent = [];
    await cursor.close();
    equal(named(client, 'killCursors').map((c) => c.cursors.map(String)), [[String(number)]], 'killCursors sent');
    // Use one server, because the cursor does not exist on another mongos.
    const database = single.db(DATABASE);
    await single.withSession(async (session) => {
      const killed = database.collection('batches').find({}, { batchSize: 2, session });
      await killed.next();
      await database.command({ killCursors: 'batches', cursors: [killed.id] }, { session });
      await killed.next();
      await fails(mongodb.MongoServerError, 43, () => killed.next(), 'getMore of a killed cursor');
    });
  },

  async sessions() {
    const collection = await fresh('sessions');
    client.sent = [];
    await client.withSession({ causalConsistency: TOPOLOGY !== 'single' }, async (session) => {
      await collection.insertOne({ _id: 1 }, { session });
      equal(await collection.findOne({}, { session }), { _id: 1 }, 'read');
      const lsids = client.sent.map((e) => e.command.lsid.id.toString('hex'));
      equal(lsids, [session.id.id.toString('hex'), session.id.id.toString('hex')], 'lsid sent');
      if (TOPOLOGY === 'single') return;
      equal('afterClusterTime' in named(client, 'find')[0].readConcern, true, 'afterClusterTime');
      const majority = client.db(DATABASE).collection('sessions', { readConcern: { level: 'majority' }, writeConcern: { w: 'majority' } });
      await majority.insertOne({ _id: 2 }, { session });
      equal(await majority.countDocuments({}, { session }), 2, 'majority');
    });
    if (TOPOLOGY === 'single' || !from(5, 0)) return;
    await client.withSession({ snapshot: true }, async (session) => {
      equal(await collection.countDocuments({}, { session }), 2, 'snapshot');
    });
  },

  async transactions() {
    notStandalone();
    const collection = await fresh('transactions', [{ _id: 0 }]);
    await client.withSession(async (session) => {
      session.startTransaction();
      await collection.insertOne({ _id: 1 }, { session });
      equal(await collection.countDocuments({}, { session }), 2, 'seen inside');
      equal(await collection.countDocuments(), 1, 'seen outside');
      await session.commitTransaction();
      equal(await collection.countDocuments(), 2, 'after commit');
      session.startTransaction({ readConcern: { level: 'snapshot' }, writeConcern: { w: 'majority' } });
      await collection.deleteMany({}, { session });
      await session.abortTransaction();
      equal(await collection.countDocuments(), 2, 'after abort');
      await session.withTransaction(() => collection.updateOne({ _id: 0 }, { $inc: { x: 1 } }, { session }));
      equal((await collection.findOne({ _id: 0 })).x, 1, 'after withTransaction');
      session.startTransaction();
      await collection.updateOne({ _id: 0 }, { $inc: { x: 1 } }, { session });
      await client.withSession(async (other) => {
        other.startTransaction();
        const failure = await fails(
          mongodb.MongoServerError,
          112,
          () => collection.updateOne({ _id: 0 }, { $inc: { x: 1 } }, { session: other }),
          'a write conflict',
        );
        equal(failure.hasErrorLabel('TransientTransactionError'), true, 'label');
        await other.abortTransaction();
      });
      await session.commitTransaction();
    });
  },

  async gridFS() {
    const database = client.db(DATABASE);
    await fresh('fs.files');
    await fresh('fs.chunks');
    const bucket = new mongodb.GridFSBucket(database, { chunkSizeBytes: 1000 });
    const content = Buffer.from(range(4321).map((n) => n % 251));
    const upload = bucket.openUploadStream('file', { metadata: { kind: 'test' } });
    await within(
      new Promise((resolve, reject) => upload.on('finish', resolve).on('error', reject).end(content)),
      'upload',
    );
    const download = async (stream) => {
      const parts = [];
      for await (const part of stream) parts.push(part);
      return Buffer.concat(parts);
    };
    equal(content.equals(await within(download(bucket.openDownloadStream(upload.id)), 'download')), true, 'content');
    equal((await within(download(bucket.openDownloadStreamByName('file')), 'download')).length, 4321, 'content by name');
    equal((await bucket.find().toArray()).map((f) => [f.length, f.metadata]), [[4321, { kind: 'test' }]], 'files');
    equal(await database.collection('fs.chunks').countDocuments(), 5, 'chunks');
    await bucket.rename(upload.id, 'renamed');
    await bucket.delete(upload.id);
    equal(await database.collection('fs.chunks').countDocuments(), 0, 'chunks after delete');
    await fails(mongodb.MongoRuntimeError, null, () => download(bucket.openDownloadStreamByName('file')), 'a deleted file');
  },

  async changeStream() {
    notStandalone();
    const collection = await fresh('watched', [{ _id: 0 }]);
    let stream = collection.watch([], { maxAwaitTimeMS: 100 });
    await stream.tryNext(); // opens the stream
    await collection.insertOne({ _id: 1 });
    await collection.updateOne({ _id: 1 }, { $set: { x: 2 } });
    let change = await within(stream.next(), 'insert');
    equal([change.operationType, change.fullDocument], ['insert', { _id: 1 }], 'insert');
    equal(change.ns, { db: DATABASE, coll: 'watched' }, 'ns');
    const token = stream.resumeToken;
    change = await within(stream.next(), 'update');
    equal(change.updateDescription.updatedFields, { x: 2 }, 'update');
    equal(await stream.tryNext(), null, 'no more events');
    await stream.close();
    await collection.deleteOne({ _id: 1 });
    stream = client.db(DATABASE).watch([{ $match: { operationType: { $ne: 'update' } } }], { resumeAfter: token });
    equal((await within(stream.next(), 'delete')).operationType, 'delete', 'after the token, filtered');
    await stream.close();
    stream = client.watch([], { fullDocument: 'updateLookup', maxAwaitTimeMS: 100 });
    await stream.tryNext();
    await collection.updateOne({ _id: 0 }, { $set: { y: 1 } });
    equal((await within(stream.next(), 'updateLookup')).fullDocument, { _id: 0, y: 1 }, 'updateLookup over the cluster');
    await stream.close();
  },

  async compressors() {
    const packages = { zlib: 'node:zlib', snappy: 'snappy', zstd: '@mongodb-js/zstd' };
    const missing = [];
    const collection = await fresh('compressed', [{ _id: 1, x: 'y'.repeat(5000) }]);
    for (const [name, file] of Object.entries(packages)) {
      try {
        require(file);
      } catch {
        missing.push(name);
        continue;
      }
      const c = connect(URI, { compressors: [name] });
      await c.db(DATABASE).collection('compressed').insertOne({ _id: name });
      equal((await c.db(DATABASE).collection('compressed').findOne({ _id: 1 })).x.length, 5000, name);
      await c.close();
    }
    equal(await collection.countDocuments(), 4 - missing.length, 'documents');
    if (missing.length) throw new Skip('not installed for Node: ' + missing.join(', '));
  },

  // Fail points, which belong to one server.

  async failCommandWithCode() {
    const collection = await failingCollection('failing', { retryReads: false });
    await withFailPoint({ times: 1 }, { failCommands: ['find'], errorCode: 8000, errorLabels: ['Alpha', 'Beta'] }, async () => {
      const failure = await fails(mongodb.MongoServerError, 8000, () => collection.findOne(), 'find');
      equal(['Alpha', 'Beta', 'Gamma'].map((n) => failure.hasErrorLabel(n)), [true, true, false], 'labels');
      equal(failure.message.includes('failCommand'), true, `the message names the fail point: ${failure.message}`);
      equal(await collection.findOne(), { _id: 1 }, 'the next find');
      equal(named(collection.client, 'find').length, 2, 'find sent');
    });
  },

  async failCommandRetriedRead() {
    const collection = await failingCollection('failing');
    const c = collection.client;
    await withFailPoint({ times: 1 }, { failCommands: ['find'], closeConnection: true }, async () => {
      c.sent = [];
      equal(await collection.findOne(), { _id: 1 }, 'find');
      equal(named(c, 'find').length, 2, 'find sent');
    });
    await withFailPoint({ times: 2 }, { failCommands: ['find'], closeConnection: true }, async () => {
      c.sent = [];
      await fails(mongodb.MongoNetworkError, null, () => collection.findOne(), 'two closed connections');
      equal(named(c, 'find').length, 2, 'find sent');
    });
    await withFailPoint({ times: 1 }, { failCommands: ['aggregate'], errorCode: 11600 }, async () => {
      c.sent = [];
      equal((await collection.aggregate([]).toArray()).length, 1, 'aggregate');
      equal(named(c, 'aggregate').length, 2, 'aggregate sent');
    });
  },

  async failCommandRetriedWrite() {
    notStandalone();
    const collection = await failingCollection('failing');
    const c = collection.client;
    await withFailPoint({ times: 1 }, { failCommands: ['insert'], closeConnection: true }, async () => {
      c.sent = [];
      await collection.insertOne({ _id: 2 });
      const numbers = named(c, 'insert').map((i) => String(i.txnNumber));
      equal(numbers.length, 2, 'insert sent');
      equal(numbers[0], numbers[1], 'txnNumber of the retry');
    });
    const shutdown = { code: 91, errmsg: 'shutting down' };
    await withFailPoint({ times: 1 }, { failCommands: ['insert'], writeConcernError: shutdown, errorLabels: ['RetryableWriteError'] }, async () => {
      c.sent = [];
      await collection.insertOne({ _id: 3 });
      equal(named(c, 'insert').length, 2, 'insert sent after a write concern error');
    });
    equal(await collection.countDocuments(), 3, 'documents: each once');
    const waited = { code: 64, errmsg: 'waiting timed out', errInfo: { wtimeout: true } };
    await withFailPoint({ times: 1 }, { failCommands: ['insert'], writeConcernError: waited }, async () => {
      const failure = await fails(mongodb.MongoWriteConcernError, 64, () => collection.insertOne({ _id: 4 }), 'insert');
      equal(failure.errInfo, { wtimeout: true }, 'errInfo');
    });
    equal(await collection.countDocuments(), 4, 'documents: the insert was executed');
  },

  async failCommandBlocks() {
    const collection = await failingCollection('failing');
    await withFailPoint({ times: 1 }, { failCommands: ['find'], blockConnection: true, blockTimeMS: 150 }, async () => {
      const begin = performance.now();
      equal(await collection.findOne(), { _id: 1 }, 'find');
      const took = performance.now() - begin;
      equal(took >= 149, true, `blocked for 150 ms, took ${took} ms`);
    });
    await withFailPoint({ times: 1 }, { failCommands: ['find'], blockConnection: true, blockTimeMS: 10 * PATIENCE_MS }, async () => {
      const impatient = connect(SINGLE_URI, { socketTimeoutMS: 300, retryReads: false }).db(DATABASE).collection('failing');
      await fails(mongodb.MongoNetworkTimeoutError, null, () => impatient.findOne(), 'find within 300 ms');
    });
  },

  async failCommandOfApplication() {
    const struck = await failingCollection('failing', { appName: 'struck', retryReads: false });
    const spared = await failingCollection('failing', { appName: 'spared', retryReads: false });
    await withFailPoint('alwaysOn', { failCommands: ['find'], errorCode: 8000, appName: 'struck' }, async () => {
      for (let n = 0; n < 2; n++) {
        await fails(mongodb.MongoServerError, 8000, () => struck.findOne(), 'find of the named application');
        equal(await spared.findOne(), { _id: 1 }, 'find of another application');
      }
    });
    equal(await struck.findOne(), { _id: 1 }, 'find after the fail point is off');
  },

  async failCommandOfNamespace() {
    const struck = await failingCollection('failing', { retryReads: false });
    const spared = await failingCollection('spared', { retryReads: false });
    const data = { failCommands: ['find'], errorCode: 8000, namespace: `${DATABASE}.failing` };
    await withFailPoint({ skip: 1 }, data, async () => {
      equal(await struck.findOne(), { _id: 1 }, 'skipped find');
      equal(await spared.findOne(), { _id: 1 }, 'find in another namespace');
      await fails(mongodb.MongoServerError, 8000, () => struck.findOne(), 'next find');
    });
  },

  async failPointRefused() {
    const admin = single.db('admin');
    await fails(mongodb.MongoServerError, 266, () => admin.command({ configureFailPoint: 'noSuch', mode: 'off' }), 'an unknown fail point');
    await fails(mongodb.MongoServerError, 2, () => admin.command({ configureFailPoint: 'failCommand', mode: 'x' }), 'an unknown mode');
  },

  // Access.

  async authentication() {
    if (!URI.includes('@')) throw new Skip('access control is off');
    const [, user, rest] = URI.match(/\/\/([^:]*):[^@]*@(.*)/);
    const status = await client.db('admin').command({ connectionStatus: 1 });
    equal(status.authInfo.authenticatedUsers, [{ user, db: 'admin' }], 'authenticated users');
    await fails(mongodb.MongoServerError, 18, () => connect(`mongodb://${user}:wrong@${rest}`).db(DATABASE).collections(), 'a wrong password');
    await fails(mongodb.MongoServerError, 13, () => connect(`mongodb://${rest}`).db(DATABASE).collection('x').findOne(), 'reading without authentication');
  },

  async encryption() {
    if (!CA_FILE) throw new Skip('TLS is off');
    let reason = '';
    // On a busy machine the first timeouts may be too short for a handshake.
    for (let timeout = 1000; !/verify the first certificate/.test(reason) && timeout < PATIENCE_MS; timeout *= 2) {
      const withoutCA = connect(SINGLE_URI, { tlsCAFile: undefined, serverSelectionTimeoutMS: timeout });
      const failure = await fails(mongodb.MongoError, null, () => withoutCA.db('admin').command({ ping: 1 }), 'an untrusted certificate');
      reason = failure.message;
    }
    equal(/verify the first certificate/.test(reason), true, reason);
    const plain = connect(SINGLE_URI.replace('tls=true', 'tls=false'), { tlsCAFile: undefined, serverSelectionTimeoutMS: 1000 });
    await fails(mongodb.MongoError, null, () => plain.db('admin').command({ ping: 1 }), 'plain text');
  },
};

async function withFailPoint(mode, data, action) {
  await single.db('admin').command({ configureFailPoint: 'failCommand', mode, data });
  try {
    await action();
  } finally {
    await single.db('admin').command({ configureFailPoint: 'failCommand', mode: 'off' });
  }
}

async function failingCollection(name, options) {
  const c = connect(SINGLE_URI, { heartbeatFrequencyMS: 500, ...options });
  const collection = c.db(DATABASE).collection(name);
  await collection.deleteMany({});
  await collection.insertOne({ _id: 1 });
  c.sent = [];
  return collection;
}

async function main() {
  const unknown = STEPS.filter((name) => !(name in steps));
  if (unknown.length) {
    console.log(`FAILED steps: unknown steps ${unknown}`);
    return 1;
  }
  client = connect();
  single = connect(SINGLE_URI);
  try {
    for (const [name, action] of Object.entries(steps)) {
      if (STEPS.length && !STEPS.includes(name)) continue;
      const begin = performance.now();
      try {
        await action();
      } catch (failure) {
        if (failure instanceof Skip) {
          console.log(`skip ${name}: ${failure.message}`);
          continue;
        }
        console.log(`FAILED ${name}: ${failure.name}: ${failure.message}`.replaceAll('\n', ' '));
        console.error(failure);
        return 1;
      }
      console.log(`ok ${name} ${((performance.now() - begin) / 1000).toFixed(3)}s`);
    }
    console.log(`done with the Node driver ${require('mongodb/package.json').version}`);
    return 0;
  } finally {
    await Promise.all(openClients.map((c) => c.close()));
  }
}

main().then((code) => {
  process.exitCode = code;
});
