// Errors and results of the Node driver as the protocol describes them.
'use strict';

const mongodb = require('mongodb');

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

function ejson(value) {
  return mongodb.BSON.EJSON.serialize(value, { relaxed: false });
}

// The first class that fits gives the kind.
const KINDS = [
  [mongodb.MongoClientBulkWriteError, 'client bulk write'], [mongodb.MongoBulkWriteError, 'bulk write'],
  [mongodb.MongoServerError, 'server'], [mongodb.MongoServerSelectionError, 'server selection'],
  [mongodb.MongoNetworkError, 'network'], [mongodb.MongoAPIError, 'argument'], [mongodb.MongoError, 'client'],
  [Object, 'argument']
];

function describeError(error) {
  const [, kind] = KINDS.find(([type]) => error instanceof type);
  const cause = wrapped(error);
  const out = { message: error.message || error.name, kind };
  out.client = !((cause ?? error) instanceof mongodb.MongoServerError);
  out.labels = [...new Set([...error.errorLabels ?? [], ...cause?.errorLabels ?? []])];
  const { code, codeName, errorResponse } = kind === 'client bulk write' ? cause ?? {} : error;
  if (error instanceof mongodb.MongoServerError) {
    if (typeof code === 'number') Object.assign(out, { code, codeName });
    if (kind === 'server' && errorResponse) out.response = ejson({ ok: 0, ...errorResponse });
  }
  if (kind === 'client bulk write') {
    out.writeErrors = indexed(error.writeErrors, document);
    out.writeConcernErrors = error.writeConcernErrors.map(document);
    if (error.partialResult) out.partial = ejson(written(error.partialResult));
  } else if (kind === 'bulk write') {
    out.writeErrors = indexed([error.writeErrors].flat().map(write => [write.index, write]), document);
    out.partial = ejson(written(error.result));
  }
  return out;
}

// wrapped is the error that ended a bulk write, if that was not an error of one of its writes.
function wrapped(error) {
  if (error instanceof mongodb.MongoClientBulkWriteError) return error.cause;
  return error.errorResponse instanceof Error ? error.errorResponse : undefined;
}

function document({ code, errmsg, message, errInfo, details }) {
  return ejson({ code, message: errmsg ?? message, details: errInfo ?? details ?? {} });
}

// indexed makes a document of the pairs of an index and a value.
function indexed(pairs, convert) {
  return Object.fromEntries([...pairs].map(([index, value]) => [String(index), convert(value)]));
}

const WRITTEN = [
  'insertedId', 'insertedIds', 'insertedCount', 'matchedCount', 'modifiedCount', 'deletedCount', 'upsertedCount',
  'upsertedId', 'upsertedIds', 'insertResults', 'updateResults', 'deleteResults'
];

// written is the result of writes under the format's names.
function written(result) {
  if (result.acknowledged === false) return { acknowledged: false };
  const present = WRITTEN.filter(name => result[name] !== undefined && result[name] !== null);
  return Object.fromEntries(present.map(name =>
    [name, result[name] instanceof Map ? indexed(result[name], written) : result[name]]));
}

module.exports = { Failed, describeError, ejson, lacks, written };
