// The log of a client: command, CMAP and SDAM events in the order in which the driver emits them.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const { describeError, ejson } = require('./failures.js');

// calls holds the call of the protocol in which code runs: whether its commands are kept out of the log, and which
// server got its last command.
const calls = new AsyncLocalStorage();

const PHASES = ['Started', 'Succeeded', 'Failed'];
const POOL = ['Created', 'Ready', 'Cleared', 'Closed'];
const CONNECTION = ['Created', 'Ready', 'Closed', 'CheckOutStarted', 'CheckOutFailed', 'CheckedOut', 'CheckedIn'];

// state is a server or topology description as the format sees it.
function state(description) {
  const { type, servers } = description;
  if (!(servers instanceof Map)) return { type };
  return { type, servers: [...servers.values()].map(server => ({ address: server.address, type: server.type })) };
}

class Log {
  events = [];
  messages = [];
  unacknowledged = false; // whether a write concern asked for no reply
  #waiting = new Set();
  #silent = new Set(); // request ids of commands that are kept out

  add(type, fields) {
    const event = { sequence: this.events.length + 1, type: type + 'Event', time: Date.now(), ...fields };
    this.events.push(JSON.parse(JSON.stringify(event))); // without what is undefined, as it is now
    for (const wake of this.#waiting) wake();
  }

  // message adds a log message, as the Logging specification names its parts.
  message({ t, c, s, ...data }) {
    this.messages.push({
      sequence: this.messages.length + 1, time: t.getTime(), level: s, component: c, data: ejson(data),
      ...(data.failure !== undefined && { failureRedacted: /redacted/.test(data.failure) })
    });
  }

  // after gives the events after a sequence number, and waits for one at most that long.
  async after(sequence, waitMS) {
    if (this.events.length <= sequence && waitMS > 0) {
      await new Promise(resolve => {
        const check = () => this.events.length > sequence && done();
        const timeout = setTimeout(done, waitMS);
        const waiting = this.#waiting;
        waiting.add(check);
        function done() {
          clearTimeout(timeout);
          waiting.delete(check);
          resolve();
        }
      });
    }
    return this.events.slice(sequence);
  }

  listen(client) {
    this.client = client;
    for (const phase of PHASES) {
      client.on('command' + phase, event => this.#command(phase, event));
      client.on('serverHeartbeat' + phase, event => this.#heartbeat(phase, event));
    }
    for (const name of POOL) client.on('connectionPool' + name, event => this.#pool('pool' + name, event));
    for (const name of CONNECTION) client.on('connection' + name, event => this.#pool('connection' + name, event));
    client.on('topologyOpening', () => this.add('topologyOpening'));
    client.on('topologyClosed', () => this.add('topologyClosed'));
    for (const name of ['topologyDescriptionChanged', 'serverDescriptionChanged']) {
      client.on(name, event => this.add(name, {
        address: event.address, previousDescription: state(event.previousDescription), newDescription: state(event.newDescription)
      }));
    }
  }

  #command(phase, event) {
    const call = calls.getStore();
    if (phase === 'Started') {
      if (call) call.server = event.address;
      if (call?.hidden) this.#silent.add(event.requestId);
    }
    if (this.#silent.has(event.requestId)) return;
    const body = phase === 'Started' ? event.command : event.reply;
    const redacted = phase !== 'Failed' && body && Object.keys(body).length === 0;
    const fields = {
      Started: () => ({ command: ejson(body) }),
      Succeeded: () => ({ reply: ejson(body ?? { ok: 1 }) }),
      Failed: () => ({ failure: describeError(event.failure) })
    };
    this.add('command' + phase, {
      address: event.address, commandName: event.commandName, databaseName: event.databaseName, requestId: event.requestId,
      driverConnectionId: event.connectionId === undefined ? undefined : String(event.connectionId),
      serverConnectionId: typeof event.serverConnectionId === 'bigint' ? Number(event.serverConnectionId) : undefined,
      serviceId: event.serviceId && ejson(event.serviceId), durationMS: event.duration, redacted: redacted || undefined,
      ...fields[phase]()
    });
  }

  #heartbeat(phase, event) {
    this.add('serverHeartbeat' + phase, {
      address: event.connectionId, awaited: event.awaited, error: event.failure && String(event.failure)
    });
  }

  #pool(name, event) {
    this.add(name, {
      address: event.address, connectionId: event.connectionId, reason: event.reason,
      serviceId: event.serviceId && ejson(event.serviceId), interruptInUseConnections: event.interruptInUseConnections,
      error: event.error && String(event.error)
    });
  }
}

module.exports = { Log, calls, state };
