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

const ejson = value => mongodb.BSON.EJSON.serialize(value, { relaxed: false });

function lacks(what) {
  return new Failed({ message: `the Node adapter does not support ${what}`, client: true, unsupported: what });
}

function describeError(error) {
  const clientBulk = error instanceof mongodb.MongoClientBulkWriteError;
  // A bulk write that ended with another error than one of its writes has that inside.
  const cause = clientBulk ? error.cause : error.errorResponse instanceof Error ? error.errorResponse : undefined;
  const { code, codeName, errorResponse } = clientBulk ? cause ?? {} : error;
  const out = {
    message: error.message || error.name,
    kind: error.name.replace(/^Mongo|Error$/g, '').replace(/\B[A-Z]/g, ' $&').toLowerCase() || 'argument',
    client: !((cause ?? error) instanceof mongodb.MongoServerError),
    labels: [...new Set([...error.errorLabels ?? [], ...cause?.errorLabels ?? []])]
  };
  if (error instanceof mongodb.MongoServerError && typeof code === 'number') Object.assign(out, { code, codeName });
  if (clientBulk) {
    out.writeErrors = indexed(error.writeErrors, document);
    out.writeConcernErrors = error.writeConcernErrors.map(document);
    if (error.partialResult) out.partial = ejson(written(error.partialResult));
  } else if (error instanceof mongodb.MongoBulkWriteError) {
    out.writeErrors = indexed([error.writeErrors].flat().map(write => [write.index, write]), document);
    out.partial = ejson(written(error.result));
  } else if (error instanceof mongodb.MongoServerError && errorResponse) {
    out.response = ejson({ ok: 0, ...errorResponse });
  }
  return out;
}

function document({ code, errmsg, message, errInfo, details }) {
  return ejson({ code, message: errmsg ?? message, details: errInfo ?? details ?? {} });
}

// indexed makes a document of pairs of an index and a value.
function indexed(pairs, convert) {
  return Object.fromEntries([...pairs].map(([index, value]) => [String(index), convert(value)]));
}

const WRITTEN = ('insertedId insertedIds insertedCount matchedCount modifiedCount deletedCount upsertedCount' +
  ' upsertedId upsertedIds insertResults updateResults deleteResults').split(' ');

// written is the result of writes under the format's names.
function written(result) {
  if (result.acknowledged === false) return { acknowledged: false };
  const present = WRITTEN.filter(name => result[name] !== undefined && result[name] !== null);
  return Object.fromEntries(present.map(name =>
    [name, result[name] instanceof Map ? indexed(result[name], written) : result[name]]));
}

module.exports = { Failed, describeError, ejson, lacks, written };
