"""The log of a client: command, CMAP and SDAM events in the order in which PyMongo publishes them."""

import threading
import time

from failures import ejson
from pymongo import monitoring

LISTENERS = (monitoring.CommandListener, monitoring.ConnectionPoolListener, monitoring.ServerHeartbeatListener,
             monitoring.ServerListener, monitoring.TopologyListener)
BODIES = {"CommandStartedEvent": "command", "CommandSucceededEvent": "reply", "CommandFailedEvent": "failure"}


def host(address):
    return "%s:%s" % tuple(address)


def state(description):
    """Converts the description of a server or topology, or None."""
    if description is None or hasattr(description, "server_type_name"):
        return description and {"type": description.server_type_name}
    return {"type": description.topology_type_name,
            "servers": [{"address": host(s.address), **state(s)} for s in description.server_descriptions().values()]}


class Thread(threading.local):
    hidden = False  # whether the command events of this thread are not logged
    server = None  # the server of the last command of this thread


thread = Thread()


class Log:
    """The events of a client. Its methods may be called concurrently."""

    def __init__(self):
        self.events, self.changed, self.closed = [], threading.Condition(), False
        self.unacknowledged = False  # whether an unacknowledged write was sent
        methods = {name: lambda _, event: self.add(event) for base in LISTENERS for name in vars(base) if name[0] != "_"}
        self.listener = type("Listener", LISTENERS, methods)()

    def add(self, event):
        """Adds an event. The classes of PyMongo are named like the events of the format, except for one."""
        kind = type(event).__name__.replace("TopologyOpened", "TopologyOpening")
        get = lambda name: getattr(event, name, None)
        address = get("address") or get("server_address") or get("connection_id")
        fields = {
            "address": address and host(address), "connectionId": get("address") and get("connection_id"), "reason": get("reason"),
            "interruptInUseConnections": get("interrupt_connections"), "serviceId": get("service_id") and ejson(get("service_id")),
            "awaited": get("awaited"), "error": str(event.reply) if kind == "ServerHeartbeatFailedEvent" else None,
            "previousDescription": state(get("previous_description")), "newDescription": state(get("new_description"))}
        if body := BODIES.get(kind):
            thread.server = fields["address"]
            fields.update({
                "commandName": event.command_name, "databaseName": event.database_name, "requestId": event.request_id,
                "operationId": event.operation_id, "serverConnectionId": event.server_connection_id,
                "durationMS": None if body == "command" else event.duration_micros / 1000,
                "redacted": get(body) == {} or None, body: failure(get(body)) if body == "failure" else ejson(get(body))})
        if kind in ("ServerOpeningEvent", "ServerClosedEvent") or body and thread.hidden:  # the first two are not in the format
            return
        with self.changed:
            if not self.closed:
                self.events.append({"sequence": len(self.events) + 1, "type": kind[0].lower() + kind[1:], "time": time.time() * 1000,
                                    **{name: value for name, value in fields.items() if value is not None}})
                self.closed = kind == "TopologyClosedEvent"
                self.changed.notify_all()

    def after(self, sequence, wait):
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) > sequence, wait)
            return self.events[sequence:]


def failure(reply):
    """Converts the failure of a command: an error reply, or PyMongo's document for a network error."""
    return {"message": str(reply.get("errmsg", reply)), "client": "ok" not in reply and "code" not in reply,
            **({"code": int(reply["code"]), "codeName": reply.get("codeName", "")} if "code" in reply else {}),
            "labels": list(reply.get("errorLabels", []))}
