// Errors of the Node driver as the protocol describes them.
'use strict';

const mongodb = require('mongodb');
const { EJSON } = mongodb.BSON;

// Failed is an error that is described already.
class Failed extends Error {
  constructor(failure) {
    super(failure.message);
    this.failure = failure;
  }
}

function lacks(what) {
  return new Failed({ message: `the Node adapter does not support ${what}`, client: true, unsupported: what });
}

// The first class that fits gives the kind.
const KINDS = [
  [mongodb.MongoClientBulkWriteError, 'client bulk write'],
  [mongodb.MongoBulkWriteError, 'bulk write'],
  [mongodb.MongoServerError, 'server'],
  [mongodb.MongoOperationTimeoutError, 'timeout'],
  [mongodb.MongoServerSelectionError, 'server selection'],
  [mongodb.MongoNetworkError, 'network'],
  [mongodb.MongoAPIError, 'argument'],
  [mongodb.MongoError, 'client'],
  [Error, 'argument']
];

function describeError(error) {
  const kind = KINDS.find(([type]) => error instanceof type)[1];
  const cause = wrapped(error);
  const server = error instanceof mongodb.MongoServerError;
  const out = {
    message: error.message || error.name,
    client: !server || (cause !== undefined && !(cause instanceof mongodb.MongoServerError)),
    timeout: (cause ?? error) instanceof mongodb.MongoOperationTimeoutError,
    kind
  };
  const labels = [...(error.errorLabels ?? []), ...(cause?.errorLabels ?? [])];
  if (labels.length) out.labels = [...new Set(labels)];
  if (server) serverError(out, error, kind, cause);
  return out;
}

// wrapped is the error that ended a bulk write, if that was not an error of one of its writes.
function wrapped(error) {
  if (error instanceof mongodb.MongoClientBulkWriteError) return error.cause;
  return error instanceof mongodb.MongoBulkWriteError && error.errorResponse instanceof Error ? error.errorResponse : undefined;
}

function serverError(out, error, kind, cause) {
  const source = kind === 'client bulk write' ? (cause ?? {}) : error;
  if (typeof source.code === 'number') out.code = source.code;
  if (source.codeName) out.codeName = source.codeName;
  if (kind === 'client bulk write') {
    out.writeErrors = byIndex(error.writeErrors);
    out.writeConcernErrors = error.writeConcernErrors.map(document);
    if (error.partialResult) out.partial = ejson(written(error.partialResult));
  } else if (kind === 'bulk write') {
    out.writeErrors = byIndex([error.writeErrors].flat().map(e => [e.index, e]));
    out.partial = ejson(written(error.result));
  } else if (error.errorResponse) {
    const { ok, ...rest } = error.errorResponse;
    out.response = ejson({ ok: ok ?? 0, ...rest });
  }
}

function byIndex(errors) {
  return Object.fromEntries([...errors].map(([index, error]) => [String(index), document(error)]));
}

function document(error) {
  return ejson({ code: error.code, message: error.errmsg ?? error.message, details: error.errInfo ?? error.details ?? {} });
}

function ejson(value) {
  return EJSON.serialize(value, { relaxed: false });
}

const WRITTEN = [
  'insertedId', 'insertedIds', 'insertedCount', 'matchedCount', 'modifiedCount', 'deletedCount', 'upsertedCount',
  'upsertedId', 'upsertedIds', 'insertResults', 'updateResults', 'deleteResults'
];

// written is the result of writes under the format's names.
function written(result) {
  if (result.acknowledged === false) return { acknowledged: false };
  const out = {};
  for (const name of WRITTEN) {
    const value = result[name];
    if (value === undefined || value === null) continue;
    out[name] = value instanceof Map ? Object.fromEntries([...value].map(([i, v]) => [String(i), written(v)])) : value;
  }
  return out;
}

module.exports = { Failed, lacks, describeError, ejson, written };
