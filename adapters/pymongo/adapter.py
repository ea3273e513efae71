"""An adapter of utr for PyMongo. docs/driver/engine-protocol.md describes the messages on standard input and output."""

import ctypes
import json
import os
import queue
import sys
import threading

sys.path += filter(None, [os.environ.get("UTR_PACKAGES")])  # where utr says that PyMongo is to be installed

from bson import json_util
from entities import DESCRIPTION, Test
from events import thread
from failures import Failed, describe_error, ejson
from pymongo.errors import PyMongoError


class Canceled(BaseException):
    """Ends an operation. PyMongo treats it like Ctrl-C: it closes the connection and does not retry."""


class Conversation:
    """The exchange of messages with utr. Every request runs in its own thread."""

    def __init__(self):
        self.lock = threading.Lock()  # guards writing and the fields below
        self.threads = {}  # by open request
        self.replies = {}  # queues for the replies to callback, by id
        self.test = None

    def serve(self):
        for line in sys.stdin:
            message = json_util.loads(line, json_options=json_util.CANONICAL_JSON_OPTIONS)
            if "method" not in message:
                self.replies[message["id"]].put(message)
            elif message["method"] == "cancel":
                with self.lock:
                    if request := self.threads.get(message["params"]["id"]):
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(request.ident), ctypes.py_object(Canceled))
            else:
                request = threading.Thread(target=self.answer, args=(message,), daemon=True)
                with self.lock:
                    self.threads[message["id"]] = request
                request.start()

    def answer(self, message):
        id, test = message["id"], self.test
        call = {
            "hello": lambda protocol, runner: {"protocol": 1, **DESCRIPTION},
            "begin": lambda: setattr(self, "test", Test()) or {},
            "open": lambda **entity: self.outcome(id, lambda: test.open(**entity)),
            "do": lambda **operation: self.do(id, operation),
            "events": lambda client, after, waitMS: {"events": test.get(client)[2].after(after, waitMS / 1000)},
            "close": lambda id: self.outcome(message["id"], lambda: test.close(id)),
            "end": lambda: test.end() or {},
        }.get(message["method"])
        try:
            unknown = {"error": {"code": -32601, "message": f"unknown call {message['method']}"}}
            reply = {"result": call(**message.get("params", {}))} if call else unknown
        except (Exception, Canceled) as error:  # the call could not be performed
            reply = {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}
        with self.lock:
            del self.threads[id]
        self.send({"id": id, **reply})

    def send(self, message):
        with self.lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def outcome(self, id, call):
        """Performs a call. An error of the driver is part of its result."""
        try:
            value = call()
            return {} if value is ... else {"value": ejson(value)}
        except Canceled:
            return {"error": {"message": "the operation was canceled", "client": True, "kind": "canceled"}}
        except Failed as error:
            return {"error": error.args[0]}
        except (PyMongoError, ValueError, TypeError, KeyError) as error:
            self.test.raised[id] = error
            return {"error": describe_error(error)}

    def do(self, id, operation):
        operation["callback"] = lambda session: self.callback(id)
        outcome = self.outcome(id, lambda: self.test.do(**operation))
        return {**outcome, "server": thread.server} if thread.server else outcome

    def callback(self, do):
        """Makes utr perform the operations of withTransaction, and raises their error."""
        replies = queue.Queue()
        with self.lock:
            id = len(self.replies) + 1
            self.replies[id] = replies
        self.send({"id": id, "method": "callback", "params": {"do": do}})
        result = replies.get().get("result", {})
        if result.get("raisedBy") in self.test.raised:
            raise self.test.raised[result["raisedBy"]]
        if "error" in result:
            raise Failed(result["error"])


if __name__ == "__main__":
    Conversation().serve()
