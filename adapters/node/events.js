// The log of a client: command, CMAP and SDAM events in the order in which the driver emits them.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const { EventEmitter, once } = require('node:events');
const { describeError, ejson } = require('./failures.js');

// calls holds the call of the protocol in which code runs. Commands of operations of the runner, which begin with $,
// are kept out of the log.
const calls = new AsyncLocalStorage();

const PHASES = ['Started', 'Succeeded', 'Failed'];
const POOL = ['PoolCreated', 'PoolReady', 'PoolCleared', 'PoolClosed', 'Created', 'Ready', 'Closed', 'CheckOutStarted',
  'CheckOutFailed', 'CheckedOut', 'CheckedIn'];

// state is a server or topology description as the format sees it.
function state({ type, servers }) {
  if (!(servers instanceof Map)) return { type };
  return { type, servers: [...servers.values()].map(server => ({ address: server.address, type: server.type })) };
}

class Log {
  events = [];
  unacknowledged = false; // whether a write concern asked for no reply
  #added = new EventEmitter();

  constructor(client) {
    this.client = client;
    for (const phase of PHASES) {
      client.on('command' + phase, event => this.#command(phase, event));
      client.on('serverHeartbeat' + phase, ({ connectionId, awaited, failure }) =>
        this.#add('serverHeartbeat' + phase, { address: connectionId, awaited, error: failure && String(failure) }));
    }
    for (const name of POOL) {
      client.on('connection' + name, event => this.#pool(name.replace(/^Pool/, 'pool'), event));
    }
    for (const name of ['topologyOpening', 'topologyClosed']) client.on(name, () => this.#add(name));
    for (const name of ['topologyDescriptionChanged', 'serverDescriptionChanged']) {
      client.on(name, ({ address, previousDescription, newDescription }) => this.#add(name, {
        address, previousDescription: state(previousDescription), newDescription: state(newDescription)
      }));
    }
  }

  #add(type, fields) {
    this.events.push({ sequence: this.events.length + 1, type: type + 'Event', time: Date.now(), ...fields });
    this.#added.emit('event');
  }

  #command(phase, event) {
    const call = calls.getStore();
    if (call?.operation && phase === 'Started') call.result.server = event.address;
    if (call?.operation?.startsWith('$')) return;
    const { command, reply, failure, address, commandName, databaseName, requestId } = event;
    this.#add('command' + phase, {
      address, commandName, databaseName, requestId, durationMS: event.duration,
      driverConnectionId: event.connectionId?.toString(), serviceId: event.serviceId && ejson(event.serviceId),
      serverConnectionId: typeof event.serverConnectionId === 'bigint' ? Number(event.serverConnectionId) : undefined,
      redacted: Object.keys(command ?? reply ?? { failure }).length === 0 || undefined,
      command: command && ejson(command), reply: reply && ejson(reply), failure: failure && describeError(failure)
    });
  }

  #pool(name, { address, connectionId, reason, serviceId, interruptInUseConnections, error }) {
    this.#add(name.startsWith('pool') ? name : 'connection' + name, {
      address, connectionId, reason, interruptInUseConnections,
      serviceId: serviceId && ejson(serviceId), error: error && String(error)
    });
  }

  // after gives the events after a sequence number, and waits for one at most that long.
  async after(sequence, waitMS) {
    if (this.events.length <= sequence && waitMS > 0) {
      await once(this.#added, 'event', { signal: AbortSignal.timeout(waitMS) }).catch(() => {});
    }
    return this.events.slice(sequence);
  }
}

module.exports = { Log, calls, state };
