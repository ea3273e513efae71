"""The log of a client: command, CMAP and SDAM events in the order in which PyMongo publishes them."""

import threading
import time

from failures import ejson
from pymongo import monitoring

PHASES = ("started", "succeeded", "failed")
POOL = [name for name in vars(monitoring.ConnectionPoolListener) if not name.startswith("_")]


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def host(address):
    return "%s:%s" % tuple(address)


def state(description):
    """A server or topology description as the format sees it."""
    if hasattr(description, "server_type_name"):
        return {"type": description.server_type_name}
    return {"type": description.topology_type_name,
            "servers": [{"address": host(s.address), **state(s)} for s in description.server_descriptions().values()]}


class Thread(threading.local):
    hidden = False  # whether the command events of this thread are kept out of the log
    server = None  # that the last command of this thread was sent to


class Log:
    """Keeps the events of a client. Its methods may be called concurrently."""

    def __init__(self):
        self.events, self.changed, self.closed, self.thread = [], threading.Condition(), False, Thread()
        self.unacknowledged = False  # whether a write concern asked for no reply

    def add(self, type, **fields):
        with self.changed:
            if not self.closed:
                self.events.append({"sequence": len(self.events) + 1, "type": type + "Event", "time": time.time() * 1000,
                                    **{name: value for name, value in fields.items() if value is not None}})
                self.closed = type == "topologyClosed"
                self.changed.notify_all()

    def after(self, sequence, wait):
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) > sequence, wait)
            return self.events[sequence:]

    def listeners(self):
        def listener(name, methods):
            base = getattr(monitoring, name)
            return type(name, (base,), {method: lambda _, event, log=log: log(event) for method, log in methods.items()})()

        return [
            listener("CommandListener", {phase: self.command(phase) for phase in PHASES}),
            listener("ConnectionPoolListener", {name: self.pool(name) for name in POOL}),
            listener("ServerHeartbeatListener", {phase: self.heartbeat(phase) for phase in PHASES}),
            listener("ServerListener", {"opened": id, "description_changed": self.description, "closed": id}),
            listener("TopologyListener", {"opened": lambda _: self.add("topologyOpening"), "description_changed": self.description,
                                          "closed": lambda _: self.add("topologyClosed")}),
        ]

    def command(self, phase):
        def log(event):
            self.thread.server = host(event.connection_id)
            if self.thread.hidden:
                return
            body = event.failure if phase == "failed" else event.command if phase == "started" else event.reply
            fields = {"started": {"command": ejson(body)}, "succeeded": {"reply": ejson(body)}, "failed": {"failure": failure(body)}}
            self.add("command" + phase.title(), address=host(event.connection_id), commandName=event.command_name,
                     databaseName=event.database_name, requestId=event.request_id, operationId=event.operation_id,
                     serverConnectionId=event.server_connection_id, serviceId=event.service_id and ejson(event.service_id),
                     durationMS=None if phase == "started" else event.duration_micros / 1000,
                     redacted=True if body == {} else None, **fields[phase])

        return log

    def pool(self, name):
        get = lambda event, field: getattr(event, field, None)
        return lambda event: self.add(
            camel(name), address=host(event.address), connectionId=get(event, "connection_id"), reason=get(event, "reason"),
            serviceId=get(event, "service_id") and ejson(event.service_id),
            interruptInUseConnections=get(event, "interrupt_connections"))

    def heartbeat(self, phase):
        return lambda event: self.add("serverHeartbeat" + phase.title(), address=host(event.connection_id), awaited=event.awaited,
                                      error=str(event.reply) if phase == "failed" else None)

    def description(self, event):
        server = hasattr(event, "server_address")
        self.add("serverDescriptionChanged" if server else "topologyDescriptionChanged",
                 address=host(event.server_address) if server else None,
                 previousDescription=state(event.previous_description), newDescription=state(event.new_description))


def failure(reply):
    """The failure of a command: an error reply, or what PyMongo makes of a network error."""
    return {"message": str(reply.get("errmsg", reply)), "client": "ok" not in reply and "code" not in reply,
            **({"code": int(reply["code"]), "codeName": reply.get("codeName", "")} if "code" in reply else {}),
            "labels": list(reply.get("errorLabels", []))}
