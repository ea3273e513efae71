// An adapter of utr for the Node driver: JSON-RPC 2.0 messages, one per line, on standard input and output.
// docs/engine-protocol.md describes the messages.
'use strict';

const readline = require('node:readline');
const { EJSON } = require('mongodb').BSON;
const { Test, describe } = require('./entities.js');
const { Failed, describeError } = require('./failures.js');
const { calls } = require('./events.js');

// Members of messages that hold Extended JSON.
const DOCUMENTS = ['options', 'arguments', 'clusterTime'];

let test; // the one that is open
let raised = new Map(); // errors of the requests of this test, by id
const underWay = new Map(); // calls that can be cancelled, by id
const callbacks = new Map(); // functions that take the replies to callback, by id

const METHODS = {
  hello: () => ({ protocol: 1, ...describe() }),
  begin: () => {
    test = new Test();
    raised = new Map();
    return {};
  },
  open: (params, id) => outcome(id, () => test.open(params)),
  do: async (params, id) => {
    let server;
    const result = await outcome(id, async call => {
      try {
        return await test.do(params, call, () => callback(id));
      } finally {
        server = call.server;
      }
    });
    return server ? { ...result, server } : result;
  },
  events: async ({ client, after, waitMS }) => ({ events: await test.get(client).log.after(after, waitMS) }),
  logs: ({ client }) => ({ messages: test.get(client).log.messages }),
  close: (params, id) => outcome(id, () => test.close(params.id)),
  end: async () => {
    await test.end();
    return {};
  }
};

async function answer({ id, method, params }) {
  try {
    if (!METHODS[method]) return send({ id, error: { code: -32601, message: `unknown call ${method}` } });
    send({ id, result: await METHODS[method](params, id) });
  } catch (error) {
    send({ id, error: { code: -32603, message: String(error.stack) } });
  }
}

// outcome carries out a call. An error of the driver is a part of its result.
async function outcome(id, carryOut) {
  const call = { hidden: false, server: undefined, log: undefined, cancelled: false };
  underWay.set(id, call);
  const result = {};
  try {
    const value = await calls.run(call, () => carryOut(call));
    if (value !== undefined) result.value = EJSON.serialize(value, { relaxed: false });
  } catch (error) {
    if (call.cancelled) {
      result.error = { message: 'the operation was cancelled', client: true, kind: 'cancelled' };
    } else if (error instanceof Failed) {
      result.error = error.failure;
    } else {
      raised.set(id, error);
      result.error = describeError(error);
    }
  }
  underWay.delete(id);
  return result;
}

// callback lets utr perform the operations of a withTransaction, and throws the error that they end with.
async function callback(id) {
  const mine = callbacks.size + 1;
  const reply = new Promise(resolve => callbacks.set(mine, resolve));
  send({ id: mine, method: 'callback', params: { do: id } });
  const { result = {} } = await reply;
  if (raised.has(result.raisedBy)) throw raised.get(result.raisedBy);
  if (result.error) throw new Failed(result.error);
}

// cancel closes the client of a call, since the driver cannot end the call alone.
function cancel({ id }) {
  const call = underWay.get(id);
  if (!call) return;
  call.cancelled = true;
  call.log?.client.close(true).catch(() => {});
}

function send(message) {
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
}

function receive(line) {
  const message = JSON.parse(line);
  if (!message.method) return callbacks.get(message.id)(message);
  if (message.method === 'cancel') return cancel(message.params);
  for (const name of DOCUMENTS) {
    if (message.params[name]) message.params[name] = EJSON.deserialize(message.params[name], { relaxed: false });
  }
  answer(message);
}

readline.createInterface({ input: process.stdin, crlfDelay: Infinity }).on('line', receive).on('close', () => process.exit());
