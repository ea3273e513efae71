"""Converts errors and results of PyMongo to errors and results of the protocol."""

import contextlib
import json
import re

from bson import json_util
from pymongo import errors, results


class Failed(Exception):
    """An error. Its argument has the fields of the protocol."""


def ejson(value):
    """Converts a value to canonical Extended JSON."""
    return json.loads(json_util.dumps(value, json_options=json_util.CANONICAL_JSON_OPTIONS))


# The first matching class determines the kind.
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
        message = lambda e: ejson({"code": e.get("code"), "message": e.get("errmsg", ""), "details": e.get("details", {})})
        out.update(kind="client bulk write", client=out["client"] and error.error is not None,
                   writeErrors={str(e["idx"]): message(e) for e in error.write_errors},
                   writeConcernErrors=[message(e) for e in error.write_concern_errors])
        if error.partial_result is not None:
            out["partial"] = ejson(written(error.partial_result))
    return out


def server_error(out, error, details):
    """Adds the fields of a server error. Write errors have no reply."""
    writes, concerns = details.get("writeErrors") or [], details.get("writeConcernErrors") or []
    client_bulk = isinstance(error, errors.ClientBulkWriteException)
    out.update(client=False, kind="server")
    if isinstance(error, errors.BulkWriteError):
        names = {"inserted": "nInserted", "matched": "nMatched", "modified": "nModified", "deleted": "nRemoved", "upserted": "nUpserted"}
        partial = {name + "Count": details[key] for name, key in names.items()}
        partial["upsertedIds"] = {str(u["index"]): u["_id"] for u in details["upserted"]}
        out.update(kind="bulk write", partial=ejson(partial))
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


def written(result):
    """Converts the result of writes."""
    if not result.acknowledged:
        return {"acknowledged": False}
    out = {}
    for name in ("inserted_id inserted_ids inserted_count matched_count modified_count deleted_count upserted_count upserted_id "
                 "upserted_ids insert_results update_results delete_results").split():
        with contextlib.suppress(AttributeError, errors.InvalidOperation):
            value = getattr(result, name)
            if name.endswith("s"):  # by index
                items = value.items() if isinstance(value, dict) else enumerate(value or ())
                value = {str(i): written(v) if name.endswith("results") else v for i, v in items}
            out[re.sub("_([a-z])", lambda m: m[1].upper(), name)] = value
    if isinstance(result, results.UpdateResult) and not result.did_upsert:
        del out["upsertedId"]
    if isinstance(result, results.InsertManyResult):
        out["insertedCount"] = len(result.inserted_ids)
    return out
