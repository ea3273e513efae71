"""An adapter of utr for PyMongo. docs/driver/engine-protocol.md describes the messages on standard input and output."""

import ctypes
import json
import os
import queue
import sys
import threading

sys.path += filter(None, [os.environ.get("UTR_PACKAGES")])  # where utr's command installs PyMongo

from bson import json_util
from entities import DESCRIPTION, Test
from events import thread
from failures import Failed, describe_error, ejson
from pymongo.errors import PyMongoError


def decoded(pairs):
    """Reads an object: a value of Extended JSON if it begins with a $, which takes more time, or else a document."""
    special = pairs and pairs[0][0].startswith("$")
    return json_util.object_pairs_hook(pairs, json_util.CANONICAL_JSON_OPTIONS) if special else dict(pairs)


class Canceled(BaseException):
    """Ends an operation. PyMongo treats it like Ctrl-C: it closes the connection and does not retry."""


class Worker(threading.Thread):
    """A thread that performs one request after the other."""

    def __init__(self, perform):
        super().__init__(daemon=True)
        self.perform, self.requests = perform, queue.SimpleQueue()
        self.start()

    def run(self):
        while True:
            self.perform(self, self.requests.get())

    def cancel(self, exception):
        """Raises an exception in the thread, or with None, forgets one that is not raised yet."""
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), exception and ctypes.py_object(exception))


class Conversation:
    """The exchange of messages with utr. Every open request has a thread of its own."""

    def __init__(self):
        self.lock = threading.Lock()  # guards writing and the fields below
        self.workers = {}  # by open request: None before it begins, or Canceled
        self.idle = []  # workers without a request
        self.replies = {}  # queues for the replies to callback, by id
        self.tests = {}  # open tests, by number

    def serve(self):
        for line in sys.stdin:
            message = json.loads(line, object_pairs_hook=decoded)
            if "method" not in message:
                self.replies[message["id"]].put(message)
            elif message["method"] == "cancel":
                self.cancel(message["params"]["id"])
            else:
                with self.lock:
                    worker = self.idle.pop() if self.idle else Worker(self.answer)
                    self.workers[message["id"]] = None
                worker.requests.put(message)

    def cancel(self, id):
        with self.lock:
            if isinstance(worker := self.workers.get(id), Worker):
                worker.cancel(Canceled)
            elif id in self.workers:
                self.workers[id] = Canceled

    def answer(self, worker, message):
        thread.server, thread.hidden = None, False  # set by an earlier request
        id, params = message["id"], message.get("params", {})
        number = params.pop("test", None)
        test = self.tests.get(number)
        call = {
            "hello": lambda protocol, runner: {"protocol": 1, **DESCRIPTION},
            "begin": lambda: self.tests.update({number: Test()}) or {},
            "open": lambda **entity: self.outcome(test, id, lambda: test.open(**entity)),
            "do": lambda **operation: self.do(test, id, operation),
            "events": lambda client, after, waitMS: {"events": test.get(client)[2].after(after, waitMS / 1000)},
            "close": lambda id: self.outcome(test, message["id"], lambda: test.close(id)),
            "end": lambda: self.tests.pop(number).end() or {},
        }.get(message["method"])
        reply = {"error": {"code": -32601, "message": f"unknown call {message['method']}"}}
        try:
            try:
                with self.lock:
                    before, self.workers[id] = self.workers[id], worker
                if before:
                    raise Canceled
                reply = {"result": call(**params)} if call else reply
            except (Exception, Canceled) as error:  # the call could not be performed
                reply = {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}
            with self.lock:
                del self.workers[id]
                worker.cancel(None)
        except Canceled:  # after the call
            with self.lock:
                self.workers.pop(id, None)
        with self.lock:
            self.idle.append(worker)
        self.send({"id": id, **reply})

    def send(self, message):
        with self.lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def outcome(self, test, id, call):
        """Performs a call. An error of the driver is part of its result."""
        try:
            value = call()
            return {} if value is ... else {"value": ejson(value)}
        except Canceled:
            return {"error": {"message": "the operation was canceled", "client": True, "kind": "canceled"}}
        except Failed as error:
            return {"error": error.args[0]}
        except (PyMongoError, ValueError, TypeError, KeyError) as error:
            test.raised[id] = error
            return {"error": describe_error(error)}

    def do(self, test, id, operation):
        operation["callback"] = lambda session: self.callback(test, id)
        outcome = self.outcome(test, id, lambda: test.do(**operation))
        return {**outcome, "server": thread.server} if thread.server else outcome

    def callback(self, test, do):
        """Makes utr perform the operations of withTransaction, and raises their error."""
        replies = queue.Queue()
        with self.lock:
            id = len(self.replies) + 1
            self.replies[id] = replies
        self.send({"id": id, "method": "callback", "params": {"do": do}})
        result = replies.get().get("result", {})
        if result.get("raisedBy") in test.raised:
            raise test.raised[result["raisedBy"]]
        if "error" in result:
            raise Failed(result["error"])


if __name__ == "__main__":
    Conversation().serve()
