// The log of a client: command, CMAP and SDAM events in the order in which the driver emits them; and its log messages.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const { EventEmitter, once } = require('node:events');
const { describeError, ejson } = require('./failures.js');

// calls contains the current call. Commands of the runner's own operations are not logged: their names begin with $.
const calls = new AsyncLocalStorage();

const PHASES = ['Started', 'Succeeded', 'Failed'];
const POOL = ['PoolCreated', 'PoolReady', 'PoolCleared', 'PoolClosed', 'Created', 'Ready', 'Closed', 'CheckOutStarted',
  'CheckOutFailed', 'CheckedOut', 'CheckedIn'];
const TOPOLOGY = ['topologyOpening', 'topologyClosed', 'topologyDescriptionChanged', 'serverDescriptionChanged'];

// state converts a server or topology description.
function state(description) {
  if (!(description?.servers instanceof Map)) return description && { type: description.type };
  const servers = [...description.servers.values()];
  return { type: description.type, servers: servers.map(({ address, type }) => ({ address, type })) };
}

class Log {
  events = [];
  unacknowledged = false; // whether an unacknowledged write was sent
  #added = new EventEmitter();

  constructor(client, messages) {
    this.client = client;
    this.messages = messages;
    for (const phase of PHASES) {
      client.on('command' + phase, event => this.#command(phase, event));
      client.on('serverHeartbeat' + phase, ({ connectionId, awaited, failure }) =>
        this.#add('serverHeartbeat' + phase, { address: connectionId, awaited, error: failure && String(failure) }));
    }
    for (const name of POOL) {
      const type = ('connection' + name).replace('connectionPool', 'pool');
      client.on('connection' + name, ({ address, connectionId, reason, serviceId, interruptInUseConnections, error }) =>
        this.#add(type, {
          address, connectionId, reason, interruptInUseConnections,
          serviceId: serviceId && ejson(serviceId), error: error && String(error)
        }));
    }
    for (const name of TOPOLOGY) {
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
    const body = command ?? reply ?? failure; // {} if the driver redacted it
    this.#add('command' + phase, {
      address, commandName, databaseName, requestId, durationMS: event.duration,
      driverConnectionId: event.connectionId?.toString(), serviceId: event.serviceId && ejson(event.serviceId),
      serverConnectionId: typeof event.serverConnectionId === 'bigint' ? Number(event.serverConnectionId) : undefined,
      redacted: (!(body instanceof Error) && Object.keys(body).length === 0) || undefined,
      command: command && ejson(command), reply: reply && ejson(reply),
      failure: failure && (failure instanceof Error ? describeError(failure) : { message: 'redacted' })
    });
  }

  // after returns the events after a sequence number. Without any, it waits up to waitMS for one.
  async after(sequence, waitMS) {
    if (this.events.length <= sequence && waitMS > 0) {
      await once(this.#added, 'event', { signal: AbortSignal.timeout(waitMS) }).catch(() => {});
    }
    return this.events.slice(sequence);
  }
}

// logOptions returns options that make a client append its log messages to messages.
function logOptions(observed, messages) {
  const write = ({ t, c: component, s, ...data }) => {
    if (calls.getStore()?.operation?.startsWith('$') || data.operation === 'handshake') return; // sent by connect
    messages.push({
      sequence: messages.length + 1, time: t.getTime(), level: s.replace(/^warn$/, 'warning'), component,
      data: ejson({ ...data, error: data.error && String(data.error) }),
      failureRedacted: data.failure && data.failure === '(redacted)'
    });
  };
  const mongodbLogComponentSeverities = { ...observed };
  for (const name in observed) mongodbLogComponentSeverities[name] = observed[name].replace('warning', 'warn');
  return { mongodbLogPath: { write }, mongodbLogComponentSeverities, mongodbLogMaxDocumentLength: 10000 };
}

module.exports = { Log, calls, logOptions, state };
