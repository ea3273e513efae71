"""Errors of PyMongo as the protocol describes them."""

import json

from bson import json_util
from pymongo import errors


class Failed(Exception):
    """An error that is described already."""

    def __init__(self, failure):
        super().__init__(failure["message"])
        self.failure = failure


def ejson(value):
    """Converts a value to canonical Extended JSON."""
    return json.loads(json_util.dumps(value, json_options=json_util.CANONICAL_JSON_OPTIONS))


# The first class that fits gives the kind.
KINDS = [
    (errors.ServerSelectionTimeoutError, "server selection"), (errors.WaitQueueTimeoutError, "connection check-out"),
    (errors.AutoReconnect, "network"), (errors.ConfigurationError, "argument"), (errors.PyMongoError, "client"),
    (Exception, "argument"),
]


def describe_error(error):
    client_bulk = isinstance(error, errors.ClientBulkWriteException)
    if client_bulk and isinstance(error.error, errors.PyMongoError):
        out = describe_error(error.error)
    else:
        out = {"message": str(error) or type(error).__name__, "client": True,
               "kind": next(kind for cls, kind in KINDS if isinstance(error, cls))}
        if isinstance(error, (errors.OperationFailure, errors.NotPrimaryError)):
            server_error(out, error, error.details or {})
    if labels := {*out.get("labels", ()), *getattr(error, "_error_labels", ())}:
        out["labels"] = sorted(labels)
    out["timeout"] = out.get("timeout", False) or getattr(error, "timeout", False)
    if client_bulk:
        client_bulk_error(out, error)
    return out


def server_error(out, error, details):
    """Adds what the server said. Errors of writes have no reply."""
    writes, concerns = details.get("writeErrors") or [], details.get("writeConcernErrors") or []
    client_bulk = isinstance(error, errors.ClientBulkWriteException)
    out.update(client=False, kind="server")
    if isinstance(error, errors.BulkWriteError):
        out.update(kind="bulk write", partial=ejson(partial(details)))
    elif isinstance(error, errors.WriteError):
        out["kind"], writes = "write", [details]
    elif isinstance(error, errors.WriteConcernError):
        out["kind"], concerns = "write", [details.get("writeConcernError", details)]
    elif not client_bulk and details:
        out["response"] = ejson(details)
    if writes:
        out["writeErrors"] = {str(w.get("index", 0)): ejson({k: v for k, v in w.items() if k != "op"}) for w in writes}
    out["writeConcernErrors"] = [ejson(c) for c in concerns]
    first = (writes + concerns + [details])[0]
    if "code" in first and not client_bulk:
        out.update(code=int(first["code"]), codeName=first.get("codeName", ""))


def partial(details):
    """What a bulk write had done before it failed."""
    names = {"inserted": "nInserted", "matched": "nMatched", "modified": "nModified", "deleted": "nRemoved", "upserted": "nUpserted"}
    counts = {name + "Count": details[key] for name, key in names.items()}
    return {**counts, "upsertedIds": {str(u["index"]): u["_id"] for u in details["upserted"]}}


def client_bulk_error(out, error):
    from entities import written

    message = lambda e: ejson({"code": e.get("code"), "message": e.get("errmsg", ""), "details": e.get("details", {})})
    out.update(kind="client bulk write", client=out["client"] and error.error is not None,
               writeErrors={str(e["idx"]): message(e) for e in error.write_errors},
               writeConcernErrors=[message(e) for e in error.write_concern_errors])
    if error.partial_result is not None:
        out["partial"] = ejson(written(error.partial_result))
