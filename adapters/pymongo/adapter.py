"""An adapter of utr for PyMongo: JSON-RPC 2.0 messages, one per line, on standard input and output.

docs/engine-protocol.md describes the messages. Every request runs in a thread of its own.
"""

import ctypes
import json
import queue
import sys
import threading

from bson import json_util
from entities import Test, describe
from failures import Failed, describe_error, ejson
from pymongo.errors import PyMongoError


class Cancelled(BaseException):
    """Ends an operation. PyMongo treats it like Ctrl-C: it closes the connection and does not retry."""


class Conversation:
    def __init__(self, lines, out):
        self.lines, self.out = lines, out
        self.lock = threading.Lock()  # guards what follows, and writing
        self.threads = {}  # of the requests under way, by id
        self.replies = {}  # to calls of callback, by id
        self.raised = {}  # errors of the requests of this test, by id
        self.test = None

    def serve(self):
        for line in self.lines:
            message = json_util.loads(line, json_options=json_util.CANONICAL_JSON_OPTIONS)
            if "method" not in message:
                self.replies[message["id"]].put(message)
            elif message["method"] == "cancel":
                self.cancel(message["params"]["id"])
            else:
                thread = threading.Thread(target=self.answer, args=(message,), daemon=True)
                with self.lock:
                    self.threads[message["id"]] = thread
                thread.start()

    def cancel(self, id):
        with self.lock:
            if thread := self.threads.get(id):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Cancelled))

    def answer(self, message):
        id, test = message["id"], self.test
        call = {
            "hello": lambda protocol, runner: {"protocol": 1, **describe()},
            "begin": self.begin,
            "open": lambda **entity: self.outcome(id, lambda _: test.open(**entity)),
            "do": lambda **operation: self.outcome(id, lambda outcome: self.do(id, outcome, **operation)),
            "events": lambda client, after, waitMS: {"events": test.log(client).after(after, waitMS / 1000)},
            "close": lambda id: self.outcome(message["id"], lambda _: test.close(id)),
            "end": lambda: test.end() or {},
        }.get(message["method"])
        try:
            if call is None:
                reply = {"error": {"code": -32601, "message": f"unknown call {message['method']}"}}
            else:
                reply = {"result": call(**message.get("params", {}))}
        except (Exception, Cancelled) as error:  # the call cannot be carried out
            reply = {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}
        with self.lock:
            del self.threads[id]
        self.send({"id": id, **reply})

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message})
        with self.lock:
            self.out.write(text + "\n")
            self.out.flush()

    def begin(self):
        self.test, self.raised = Test(), {}
        return {}

    def outcome(self, id, do):
        """Carries out a call. An error of the driver is a part of its result."""
        outcome = {}
        try:
            do(outcome)
        except Cancelled:
            outcome["error"] = {"message": "the operation was cancelled", "client": True, "kind": "cancelled"}
        except Failed as error:
            outcome["error"] = error.failure
        except (PyMongoError, ValueError, TypeError, KeyError) as error:
            self.raised[id] = error
            outcome["error"] = describe_error(error)
        return outcome

    def do(self, id, outcome, object, name, arguments={}, saveAs=None, callback=False):
        log = self.test.log(object)
        log.thread.server = None
        try:
            value = self.test.do(object, name, arguments, saveAs, callback and (lambda session: self.callback(id)))
            if value is not ...:
                outcome["value"] = ejson(value)
        finally:
            if log.thread.server:
                outcome["server"] = log.thread.server

    def callback(self, do):
        """Lets utr perform the operations of a withTransaction, and raises the error that they end with."""
        replies = queue.Queue()
        with self.lock:
            id = len(self.replies) + 1
            self.replies[id] = replies
        self.send({"id": id, "method": "callback", "params": {"do": do}})
        ended = replies.get().get("result", {})
        if ended.get("raisedBy") in self.raised:
            raise self.raised[ended["raisedBy"]]
        if "error" in ended:
            raise Failed(ended["error"])


if __name__ == "__main__":
    Conversation(sys.stdin, sys.stdout).serve()
