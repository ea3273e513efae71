// An adapter of utr for the Node driver, with messages on standard input and output. docs/driver/engine-protocol.md
// describes the messages.
'use strict';

// The driver of UTR_NODE_PATH or NODE_PATH, or else the driver in the folder that utr names.
const { UTR_NODE_PATH, NODE_PATH, UTR_PACKAGES } = process.env;
process.env.NODE_PATH = [UTR_NODE_PATH, NODE_PATH, UTR_PACKAGES].filter(Boolean).join(require('node:path').delimiter);
require('node:module')._initPaths();

const readline = require('node:readline');
const { EJSON } = require('mongodb').BSON;
const { Test, description } = require('./entities.js');
const { calls } = require('./events.js');
const { Failed, describeError, ejson } = require('./failures.js');

const open = new Map(); // open calls, by request
const callbacks = new Map(); // functions that receive the replies to callback, by id
const tests = new Map(); // open tests, by number

const METHODS = {
  hello: () => description,
  begin: ({ test }) => void tests.set(test, new Test()),
  open: ({ test, ...params }, id) => outcome(test, id, call => tests.get(test).open(params, call)),
  do: ({ test, ...params }, id) =>
    outcome(test, id, call => tests.get(test).do(params, call, () => callback(test, id))),
  events: async ({ test, client, after, waitMS }) =>
    ({ events: await tests.get(test).get(client).log.after(after, waitMS) }),
  logs: ({ test, client }) => ({ messages: tests.get(test).get(client).log.messages }),
  close: ({ test, id: entity }, id) => outcome(test, id, () => tests.get(test).close(entity)),
  async end({ test }) {
    await tests.get(test).end();
    tests.delete(test);
  }
};

// outcome performs a call. An error of the driver is part of its result.
async function outcome(test, id, perform) {
  const result = {};
  const call = { result, controller: new AbortController() };
  open.set(id, call);
  try {
    const value = await calls.run(call, perform, call);
    if (value !== undefined) result.value = ejson(value);
  } catch (error) {
    tests.get(test)?.raised.set(id, error);
    result.error = error instanceof Failed ? error.failure : describeError(error);
  }
  open.delete(id);
  return result;
}

// callback makes utr perform the operations of withTransaction, and throws their error.
async function callback(test, request) {
  const id = callbacks.size + 1;
  const reply = new Promise(resolve => callbacks.set(id, resolve));
  send({ id, method: 'callback', params: { do: request } });
  const { result = {} } = await reply;
  const { raised } = tests.get(test);
  if (raised.has(result.raisedBy)) throw raised.get(result.raisedBy);
  if (result.error) throw new Failed(result.error);
}

// cancel aborts a call. If the driver does not support that, closing the client ends the call.
function cancel({ id }) {
  const reason = new Failed({ message: 'the operation was canceled', client: true, kind: 'canceled' });
  open.get(id)?.controller.abort(reason);
  setTimeout(() => open.get(id)?.log?.client.close().catch(() => {}), 1000).unref();
}

function send(message) {
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
}

async function receive(line) {
  const { id, method, params, ...reply } = JSON.parse(line);
  if (!method) return callbacks.get(id)(reply);
  if (method === 'cancel') return cancel(params);
  try {
    if (!METHODS[method]) return send({ id, error: { code: -32601, message: `unknown call ${method}` } });
    for (const name of ['options', 'arguments', 'clusterTime']) {
      if (params[name]) params[name] = EJSON.deserialize(params[name], { relaxed: false });
    }
    send({ id, result: await METHODS[method](params, id) ?? {} });
  } catch (error) {
    send({ id, error: { code: -32603, message: String(error.stack) } });
  }
}

readline.createInterface({ input: process.stdin }).on('line', receive).on('close', () => process.exit());
