// Conversion of errors and results of the Node driver.
'use strict';

const mongodb = require('mongodb');

// Failed is an error with the fields of the protocol.
class Failed extends Error {
  constructor(failure) {
    super(failure.message);
    this.failure = failure;
  }
}

const ejson = value => mongodb.BSON.EJSON.serialize(value, { relaxed: false });
const lacks = what =>
  new Failed({ message: `the Node adapter does not support ${what}`, client: true, unsupported: what });
const indexed = (pairs, convert) => Object.fromEntries([...pairs].map(([index, value]) => [index, convert(value)]));
const document = ({ code, errmsg, message, errInfo, details }) =>
  ejson({ code, message: errmsg ?? message, details: errInfo ?? details ?? {} });

function describeError(error) {
  const clientBulk = error instanceof mongodb.MongoClientBulkWriteError;
  // An error of a bulk write that is not a write error is wrapped.
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

const WRITTEN = ('insertedId insertedIds insertedCount matchedCount modifiedCount deletedCount upsertedCount' +
  ' upsertedId upsertedIds insertResults updateResults deleteResults').split(' ');

function written(result) {
  if (result.acknowledged === false) return { acknowledged: false };
  const present = WRITTEN.filter(name => result[name] !== undefined && result[name] !== null);
  return Object.fromEntries(present.map(name =>
    [name, result[name] instanceof Map ? indexed(result[name], written) : result[name]]));
}

module.exports = { Failed, describeError, ejson, lacks, written };
