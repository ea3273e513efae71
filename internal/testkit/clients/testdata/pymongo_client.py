"""Uses a deployment with PyMongo, in steps.

Each step prints one line: "ok STEP", "skip STEP: why" or "FAILED STEP: why".
After a failure the traceback is on standard error and the exit code is 1.

UTR_URI         the deployment; UTR_SINGLE_URI: one of its servers, for fail points
UTR_TOPOLOGY    single, replicaset, sharded or load-balanced
UTR_VERSION     the server version
UTR_CA_FILE     the CA certificate; empty without TLS
UTR_STEPS       names of steps, separated by commas; empty means all
"""

import datetime
import importlib.util
import os
import sys
import time
import traceback
import uuid

import bson
import gridfs
import pymongo
from bson import decimal128
from pymongo import errors, monitoring, read_concern, read_preferences, write_concern

URI = os.environ["UTR_URI"]
SINGLE_URI = os.environ["UTR_SINGLE_URI"]
TOPOLOGY = os.environ["UTR_TOPOLOGY"]
VERSION = tuple(int(n) for n in os.environ["UTR_VERSION"].split("."))
CA_FILE = os.environ.get("UTR_CA_FILE", "")
STEPS = [s for s in os.environ.get("UTR_STEPS", "").split(",") if s]
DATABASE = "clients_pymongo"
# Timeout of all operations, long enough for a busy machine.
PATIENCE_MS = 60000


class Skip(Exception):
    """The reason why a step does not apply."""


class Commands(monitoring.CommandListener):
    """Records the commands of a client."""

    def __init__(self):
        self.sent = []

    def started(self, event):
        self.sent.append((event.command_name, dict(event.command), event.connection_id))

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass

    def named(self, name):
        return [command for sent, command, _ in self.sent if sent == name]

    def clear(self):
        self.sent.clear()


def connect(uri=URI, **options):
    if CA_FILE:
        options.setdefault("tlsCAFile", CA_FILE)
    options.setdefault("serverSelectionTimeoutMS", PATIENCE_MS)
    options.setdefault("socketTimeoutMS", PATIENCE_MS)
    return pymongo.MongoClient(uri, **options)


def equal(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def fails(kind, code, action, what):
    try:
        result = action()
    except kind as failure:
        if code is not None:
            equal(failure.code, code, f"code of {what}: {failure}")
        return failure
    raise AssertionError(f"{what} did not fail, and returned {result!r}")


STEP_TABLE = []


def step(function):
    STEP_TABLE.append((function.__name__, function))
    return function


def fresh(name, documents=()):
    """Returns a collection with only these documents."""
    collection = client[DATABASE][name]
    collection.drop()
    if documents:
        collection.insert_many([dict(d) for d in documents])
    return collection


def not_standalone():
    if TOPOLOGY == "single":
        raise Skip("not supported by a standalone")


@step
def connects():
    hello = client.admin.command("hello")
    equal(hello["isWritablePrimary"], True, "isWritablePrimary")
    equal(client.server_info()["versionArray"][:2], list(VERSION), "version")
    kinds = {
        "single": (None, None),
        "replicaset": ("rs0", None),
        "sharded": (None, "isdbgrid"),
        "load-balanced": (None, "isdbgrid"),
    }
    equal((hello.get("setName"), hello.get("msg")), kinds[TOPOLOGY], "setName and msg")
    if TOPOLOGY == "replicaset":
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while len(client.secondaries) < 2:
            if time.monotonic() > deadline:
                raise AssertionError(f"secondaries: {client.secondaries}")
            time.sleep(0.01)
        secondary = client.get_database(
            DATABASE, read_preference=read_preferences.Secondary()
        ).command("hello", read_preference=read_preferences.Secondary())
        equal(secondary["secondary"], True, "read from a secondary")


@step
def insertMany():
    collection = fresh("inserted")
    commands.clear()
    ids = collection.insert_many([{"_id": n, "x": n * 11} for n in range(250)]).inserted_ids
    equal(len(ids), 250, "ids")
    equal(collection.count_documents({}), 250, "documents")
    with_number = ["txnNumber" in c for c in commands.named("insert")]
    equal(with_number, [TOPOLOGY != "single"], "txnNumber for each insert sent")
    fails(errors.DuplicateKeyError, 11000, lambda: collection.insert_one({"_id": 3}), "a second _id")


@step
def insertOverSeveralCommands():
    """The documents exceed the maximum message size, so the driver must split them."""
    collection = fresh("large")
    big = "x" * (1 << 20)
    commands.clear()
    collection.insert_many([{"_id": n, "big": big} for n in range(50)])
    if len(commands.named("insert")) < 2:
        raise AssertionError("sent as one message")
    equal(collection.count_documents({}), 50, "documents")
    equal(sum(len(d["big"]) for d in collection.find()), 50 << 20, "bytes read")
    collection.drop()


@step
def types():
    values = {
        "_id": bson.ObjectId(),
        "double": 1.5,
        "long": bson.Int64(1 << 60),
        "int": 7,
        "text": "grüße 🙂\x00",
        "binary": b"\x00\xff",
        "uuid": bson.Binary.from_uuid(uuid.UUID(int=5)),
        "date": datetime.datetime(2026, 2, 3, 4, 5, 6, 789000),
        "true": True,
        "null": None,
        "regex": bson.Regex("^a", "i"),
        "timestamp": bson.Timestamp(5, 6),
        "decimal": decimal128.Decimal128("1.10"),
        "min": bson.MinKey(),
        "max": bson.MaxKey(),
        "code": bson.Code("f"),
        "nested": {"list": [1, [2, {"three": 3}]], "empty": {}},
    }
    collection = fresh("types")
    collection.insert_one(values)
    equal(collection.find_one(), values, "document")
    kinds = {name: {"$type": "$" + name} for name in ("long", "decimal", "uuid", "regex")}
    got = next(collection.aggregate([{"$project": {"_id": 0, **kinds}}]))
    equal(got, {"long": "long", "decimal": "decimal", "uuid": "binData", "regex": "regex"}, "$type")


@step
def updateOne():
    collection = fresh("updated", [{"_id": 1, "x": 1, "tags": ["a"]}, {"_id": 2, "x": 1, "tags": []}])
    r = collection.update_one({"_id": 1}, {"$set": {"y": 2}, "$inc": {"x": 4}, "$push": {"tags": "b"}})
    equal((r.matched_count, r.modified_count), (1, 1), "updateOne")
    equal(collection.find_one({"_id": 1}), {"_id": 1, "x": 5, "tags": ["a", "b"], "y": 2}, "updated")
    r = collection.update_many({}, {"$mul": {"x": 10}})
    equal((r.matched_count, r.modified_count), (2, 2), "updateMany")
    r = collection.update_one({"_id": 9}, {"$set": {"z": 1}, "$setOnInsert": {"fresh": True}}, upsert=True)
    equal((r.matched_count, r.upserted_id), (0, 9), "upsert")
    r = collection.update_one({"_id": 2}, [{"$set": {"double": {"$multiply": ["$x", 2]}}}])
    equal(collection.find_one({"_id": 2})["double"], 20, "update by pipeline")
    collection.replace_one({"_id": 2}, {"only": "this"})
    equal(collection.find_one({"_id": 2}), {"_id": 2, "only": "this"}, "replaced")
    equal(collection.find_one_and_update({"_id": 9}, {"$set": {"z": 2}}, return_document=True)["z"], 2, "after")
    equal(collection.find_one_and_delete({"_id": 9})["z"], 2, "deleted")
    equal(collection.delete_many({}).deleted_count, 2, "deleteMany")
    fails(errors.WriteError, 9, lambda: collection.update_one({}, {"$nosuch": {"a": 1}}), "an unknown modifier")


@step
def bulkWrite():
    collection = fresh("bulk", [{"_id": 1}, {"_id": 2}])
    r = collection.bulk_write(
        [
            pymongo.InsertOne({"_id": 3}),
            pymongo.UpdateOne({"_id": 1}, {"$set": {"x": 1}}),
            pymongo.UpdateOne({"_id": 4}, {"$set": {"x": 1}}, upsert=True),
            pymongo.ReplaceOne({"_id": 2}, {"y": 1}),
            pymongo.DeleteOne({"_id": 3}),
        ]
    )
    counts = (r.inserted_count, r.matched_count, r.modified_count, r.deleted_count, r.upserted_ids)
    equal(counts, (1, 2, 2, 1, {2: 4}), "counts")
    failure = fails(
        errors.BulkWriteError,
        None,
        lambda: collection.bulk_write(
            [pymongo.InsertOne({"_id": n}) for n in (1, 20, 2, 21)], ordered=False
        ),
        "duplicates",
    )
    indexes = [(e["index"], e["code"]) for e in failure.details["writeErrors"]]
    equal(indexes, [(0, 11000), (2, 11000)], "writeErrors")
    equal(collection.count_documents({}), 5, "documents")


@step
def clientBulkWrite():
    if VERSION < (8, 0):
        raise Skip("the command bulkWrite requires 8.0")
    collection = fresh("bulk_of_client", [{"_id": 1}])
    namespace = f"{DATABASE}.bulk_of_client"
    r = client.bulk_write(
        [
            pymongo.InsertOne({"_id": 2}, namespace=namespace),
            pymongo.UpdateOne({"_id": 1}, {"$set": {"x": 1}}, namespace=namespace),
            pymongo.InsertOne({"_id": 1}, namespace=f"{DATABASE}.bulk_of_client_too"),
            pymongo.DeleteOne({"_id": 2}, namespace=namespace),
        ],
        verbose_results=True,
    )
    equal((r.inserted_count, r.modified_count, r.deleted_count), (2, 1, 1), "counts")
    equal(list(collection.find()), [{"_id": 1, "x": 1}], "documents")
    client[DATABASE]["bulk_of_client_too"].drop()


@step
def find():
    collection = fresh("found", [{"_id": n, "x": n % 3, "in": {"y": [n, n + 1]}} for n in range(12)])
    got = list(collection.find({"x": {"$gt": 0}}, {"x": 1}, sort=[("x", -1), ("_id", 1)], skip=1, limit=4))
    equal([(d["_id"], d["x"]) for d in got], [(5, 2), (8, 2), (11, 2), (1, 1)], "documents")
    equal(set(got[0]), {"_id", "x"}, "fields")
    equal([d["_id"] for d in collection.find({"in.y": 5})], [4, 5], "by an element of a nested array")
    equal(collection.count_documents({"$or": [{"_id": {"$in": [1, 2]}}, {"x": {"$exists": False}}]}), 2, "$or, $in, $exists")
    equal(collection.find_one({"_id": {"$regex": "^a"}}), None, "no match")
    equal(collection.count_documents({"$expr": {"$eq": ["$_id", "$x"]}}), 3, "$expr")
    fails(errors.OperationFailure, 2, lambda: collection.find_one({"x": {"$nosuch": 1}}), "an unknown operator")


@step
def aggregate():
    collection = fresh(
        "aggregated", [{"_id": n, "kind": "even" if n % 2 == 0 else "odd", "n": n} for n in range(10)]
    )
    got = list(
        collection.aggregate(
            [
                {"$match": {"n": {"$gte": 3}}},
                {"$group": {"_id": "$kind", "sum": {"$sum": "$n"}, "all": {"$push": "$n"}}},
                {"$sort": {"_id": 1}},
                {"$project": {"_id": 0, "kind": "$_id", "sum": 1, "many": {"$size": "$all"}}},
            ]
        )
    )
    want = [{"sum": 18, "kind": "even", "many": 3}, {"sum": 24, "kind": "odd", "many": 4}]
    equal(got, want, "groups")
    got = list(
        collection.aggregate(
            [
                {"$match": {"_id": {"$lt": 2}}},
                {"$lookup": {"from": "aggregated", "localField": "kind", "foreignField": "kind", "as": "same"}},
                {"$unwind": "$same"},
                {"$count": "pairs"},
            ]
        )
    )
    equal(got, [{"pairs": 10}], "$lookup, $unwind, $count")
    list(collection.aggregate([{"$match": {"n": {"$lt": 3}}}, {"$out": "aggregated_out"}]))
    equal(client[DATABASE]["aggregated_out"].count_documents({}), 3, "$out")
    client[DATABASE]["aggregated_out"].drop()
    fails(errors.OperationFailure, 40324, lambda: list(collection.aggregate([{"$nosuch": {}}])), "an unknown stage")


@step
def countAndDistinct():
    collection = fresh("counted", [{"_id": n, "x": n % 3, "t": ["a", "b"]} for n in range(7)])
    equal(collection.count_documents({"x": 0}), 3, "countDocuments")
    equal(collection.estimated_document_count(), 7, "estimatedDocumentCount")
    equal(sorted(collection.distinct("x")), [0, 1, 2], "distinct")
    equal(sorted(collection.distinct("t", {"x": 1})), ["a", "b"], "distinct of arrays")


@step
def indexes():
    collection = fresh("indexed", [{"_id": 1, "x": 1}])
    equal(collection.create_index([("x", 1)], unique=True), "x_1", "name")
    names = collection.create_indexes(
        [pymongo.IndexModel([("a", 1), ("b", -1)]), pymongo.IndexModel([("e", 1)], name="expiry", expireAfterSeconds=60)]
    )
    equal(names, ["a_1_b_-1", "expiry"], "names")
    information = collection.index_information()
    equal(sorted(information), ["_id_", "a_1_b_-1", "expiry", "x_1"], "listed")
    equal((information["x_1"]["unique"], information["expiry"]["expireAfterSeconds"]), (True, 60), "options")
    failure = fails(errors.DuplicateKeyError, 11000, lambda: collection.insert_one({"x": 1}), "a second x")
    # A mongos before 5.0 returns codeName instead of keyPattern.
    details = {name: failure.details.get(name) for name in ("keyPattern", "codeName")}
    if TOPOLOGY == "sharded" and VERSION < (5, 0):
        equal(details, {"keyPattern": None, "codeName": "DuplicateKey"}, "details")
    else:
        equal(details, {"keyPattern": {"x": 1}, "codeName": None}, "details")
    collection.drop_index("x_1")
    collection.insert_one({"x": 1})
    equal(len(collection.index_information()), 3, "after one was dropped")


@step
def collectionsAndDatabases():
    database = client["clients_pymongo_listed"]
    client.drop_database(database)
    database.create_collection("capped", capped=True, size=4096)
    database["plain"].insert_one({})
    database.create_collection("seen", viewOn="plain", pipeline=[{"$match": {}}])
    kinds = {c["name"]: (c["type"], c["options"].get("capped")) for c in database.list_collections()}
    kinds.pop("system.views", None)
    equal(kinds, {"capped": ("collection", True), "plain": ("collection", None), "seen": ("view", None)}, "collections")
    equal(database["seen"].count_documents({}), 1, "documents of the view")
    equal(database.list_collection_names(filter={"name": "plain"}), ["plain"], "filtered")
    if "clients_pymongo_listed" not in client.list_database_names():
        raise AssertionError(f"databases: {client.list_database_names()}")
    fails(errors.CollectionInvalid, None, lambda: database.create_collection("plain"), "creating it again")
    client.drop_database(database)
    equal(database.list_collection_names(), [], "after dropDatabase")


@step
def diagnostics():
    fresh("measured", [{"_id": 1}])
    database = client[DATABASE]
    equal(database.command("collStats", "measured")["count"], 1, "collStats")
    equal(database.command("dbStats")["ok"], 1, "dbStats")
    equal("connections" in client.admin.command("serverStatus"), True, "serverStatus")
    fails(errors.OperationFailure, 59, lambda: database.command("noSuchCommand"), "an unknown command")


@step
def getMore():
    collection = fresh("batches", [{"_id": n} for n in range(10)])
    commands.clear()
    equal([d["_id"] for d in collection.find(batch_size=3, sort=[("_id", 1)])], list(range(10)), "documents")
    equal([c["batchSize"] for c in commands.named("getMore")], [3, 3, 3], "getMore sent")
    commands.clear()
    equal(len(list(collection.aggregate([{"$match": {}}], batchSize=4))), 10, "documents of aggregate")
    equal(len(commands.named("getMore")), 2, "getMore sent for aggregate")
    cursor = collection.find(batch_size=2)
    next(cursor)
    number = cursor.cursor_id
    commands.clear()
    cursor.close()
    equal([c["cursors"] for c in commands.named("killCursors")], [[number]], "killCursors sent")
    # Use one server, because the cursor does not exist on another mongos.
    database = single[DATABASE]
    with single.start_session() as session:
        cursor = database["batches"].find(batch_size=2, session=session)
        next(cursor)
        database.command("killCursors", "batches", cursors=[cursor.cursor_id], session=session)
        next(cursor)
        fails(errors.CursorNotFound, 43, lambda: next(cursor), "getMore of a killed cursor")


@step
def sessions():
    collection = fresh("sessions")
    commands.clear()
    with client.start_session(causal_consistency=TOPOLOGY != "single") as session:
        collection.insert_one({"_id": 1}, session=session)
        equal(collection.find_one({}, session=session), {"_id": 1}, "read")
        lsids = [c["lsid"] for _, c, _ in commands.sent]
        equal(lsids, [session.session_id] * 2, "lsid sent")
        if TOPOLOGY != "single":
            after = commands.named("find")[0]["readConcern"]["afterClusterTime"]
            equal(after, session.operation_time, "afterClusterTime")
            majority = collection.with_options(read_concern=read_concern.ReadConcern("majority"), write_concern=write_concern.WriteConcern("majority"))
            majority.insert_one({"_id": 2}, session=session)
            equal(majority.count_documents({}, session=session), 2, "majority")
    with client.start_session(snapshot=True) as session:
        if TOPOLOGY == "single" or VERSION < (5, 0):
            return
        equal(collection.count_documents({}, session=session), 2, "snapshot")


@step
def transactions():
    not_standalone()
    collection = fresh("transactions", [{"_id": 0}])
    with client.start_session() as session:
        with session.start_transaction():
            collection.insert_one({"_id": 1}, session=session)
            equal(collection.count_documents({}, session=session), 2, "seen inside")
            equal(collection.count_documents({}), 1, "seen outside")
        equal(collection.count_documents({}), 2, "after commit")
        session.start_transaction(read_concern=read_concern.ReadConcern("snapshot"), write_concern=write_concern.WriteConcern("majority"))
        collection.delete_many({}, session=session)
        session.abort_transaction()
        equal(collection.count_documents({}), 2, "after abort")
        session.with_transaction(lambda s: collection.update_one({"_id": 0}, {"$inc": {"x": 1}}, session=s))
        equal(collection.find_one({"_id": 0})["x"], 1, "after withTransaction")
        session.start_transaction()
        collection.update_one({"_id": 0}, {"$inc": {"x": 1}}, session=session)
        with client.start_session() as other:
            other.start_transaction()
            failure = fails(
                errors.OperationFailure,
                112,
                lambda: collection.update_one({"_id": 0}, {"$inc": {"x": 1}}, session=other),
                "a write conflict",
            )
            equal(failure.has_error_label("TransientTransactionError"), True, "label")
        session.commit_transaction()


@step
def gridFS():
    client[DATABASE].drop_collection("fs.files")
    client[DATABASE].drop_collection("fs.chunks")
    bucket = gridfs.GridFSBucket(client[DATABASE], chunk_size_bytes=1000)
    content = bytes(n % 251 for n in range(4321))
    with bucket.open_upload_stream("file", metadata={"kind": "test"}) as stream:
        stream.write(content)
    equal(bucket.open_download_stream(stream._id).read(), content, "content")
    equal(bucket.open_download_stream_by_name("file").metadata, {"kind": "test"}, "metadata")
    equal(client[DATABASE]["fs.chunks"].count_documents({}), 5, "chunks")
    equal([f.length for f in bucket.find({})], [4321], "files")
    bucket.rename(stream._id, "renamed")
    bucket.delete(stream._id)
    equal(client[DATABASE]["fs.chunks"].count_documents({}), 0, "chunks after delete")
    fails(gridfs.NoFile, None, lambda: bucket.open_download_stream_by_name("file"), "a deleted file")


@step
def changeStream():
    not_standalone()
    collection = fresh("watched", [{"_id": 0}])
    with collection.watch(max_await_time_ms=100) as stream:
        collection.insert_one({"_id": 1})
        collection.update_one({"_id": 1}, {"$set": {"x": 2}})
        change = stream.next()
        equal((change["operationType"], change["fullDocument"]), ("insert", {"_id": 1}), "insert")
        equal(change["ns"], {"db": DATABASE, "coll": "watched"}, "ns")
        token = stream.resume_token
        change = stream.next()
        equal(change["updateDescription"]["updatedFields"], {"x": 2}, "update")
        equal(stream.try_next(), None, "no more events")
    collection.delete_one({"_id": 1})
    with client[DATABASE].watch([{"$match": {"operationType": {"$ne": "update"}}}], resume_after=token) as stream:
        equal(stream.next()["operationType"], "delete", "after the token, filtered")
    with client.watch(full_document="updateLookup") as stream:
        collection.update_one({"_id": 0}, {"$set": {"y": 1}})
        equal(stream.next()["fullDocument"], {"_id": 0, "y": 1}, "updateLookup over the cluster")


@step
def compressors():
    modules = {"zlib": "zlib", "snappy": "snappy", "zstd": "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"}
    missing = []
    collection = fresh("compressed", [{"_id": 1, "x": "y" * 5000}])
    for name, module in modules.items():
        try:
            if importlib.util.find_spec(module) is None:
                raise ImportError
        except ImportError:
            missing.append(name)
            continue
        with connect(compressors=name) as c:
            c[DATABASE]["compressed"].insert_one({"_id": name})
            equal(c[DATABASE]["compressed"].find_one({"_id": 1})["x"], "y" * 5000, name)
            equal(c.options._options["compressors"], [name], "compressors of the client")
    equal(collection.count_documents({}), 4 - len(missing), "documents")
    if missing:
        raise Skip("not installed for PyMongo: " + ", ".join(missing))


# Fail points. Each belongs to one server.


class FailPoint:
    def __init__(self, mode, **data):
        self.mode, self.data = mode, data

    def __enter__(self):
        single.admin.command("configureFailPoint", "failCommand", mode=self.mode, data=self.data)
        commands.clear()

    def __exit__(self, *_):
        single.admin.command("configureFailPoint", "failCommand", mode="off")


def failing_collection(name, **options):
    # After a shutdown error PyMongo waits for the next heartbeat, by default 10 s.
    c = connect(SINGLE_URI, event_listeners=[commands], heartbeatFrequencyMS=500, **options)
    open_clients.append(c)
    collection = c[DATABASE][name]
    collection.drop()
    collection.insert_one({"_id": 1})
    return collection


@step
def failCommandWithCode():
    collection = failing_collection("failing", retryReads=False)
    with FailPoint({"times": 1}, failCommands=["find"], errorCode=8000, errorLabels=["Alpha", "Beta"]):
        failure = fails(errors.OperationFailure, 8000, collection.find_one, "find")
        equal([failure.has_error_label(n) for n in ("Alpha", "Beta", "Gamma")], [True, True, False], "labels")
        equal("failCommand" in str(failure), True, f"the message names the fail point: {failure}")
        equal(collection.find_one(), {"_id": 1}, "the next find")
    equal(len(commands.named("find")), 2, "find sent")


@step
def failCommandRetriedRead():
    collection = failing_collection("failing")
    with FailPoint({"times": 1}, failCommands=["find"], closeConnection=True):
        equal(collection.find_one(), {"_id": 1}, "find")
        equal(len(commands.named("find")), 2, "find sent")
    with FailPoint({"times": 2}, failCommands=["find"], closeConnection=True):
        fails(errors.AutoReconnect, None, collection.find_one, "two closed connections")
        equal(len(commands.named("find")), 2, "find sent")
    with FailPoint({"times": 1}, failCommands=["aggregate"], errorCode=11600):
        equal(len(list(collection.aggregate([]))), 1, "aggregate")
        equal(len(commands.named("aggregate")), 2, "aggregate sent")


@step
def failCommandRetriedWrite():
    not_standalone()
    collection = failing_collection("failing")
    with FailPoint({"times": 1}, failCommands=["insert"], closeConnection=True):
        collection.insert_one({"_id": 2})
    numbers = [c["txnNumber"] for c in commands.named("insert")]
    equal(len(numbers), 2, "insert sent")
    equal(numbers[0], numbers[1], "txnNumber of the retry")
    with FailPoint({"times": 1}, failCommands=["insert"], writeConcernError={"code": 91, "errmsg": "shutting down"}, errorLabels=["RetryableWriteError"]):
        collection.insert_one({"_id": 3})
    equal(len(commands.named("insert")), 2, "insert sent after a write concern error")
    equal(collection.count_documents({}), 3, "documents: each once")
    with FailPoint({"times": 1}, failCommands=["insert"], writeConcernError={"code": 64, "errmsg": "waiting timed out", "errInfo": {"wtimeout": True}}):
        failure = fails(errors.WTimeoutError, 64, lambda: collection.insert_one({"_id": 4}), "insert")
        equal(failure.details["errInfo"], {"wtimeout": True}, "errInfo")
    equal(collection.count_documents({}), 4, "documents: the insert was executed")


@step
def failCommandBlocks():
    collection = failing_collection("failing")
    with FailPoint({"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=150):
        begin = time.monotonic()
        equal(collection.find_one(), {"_id": 1}, "find")
        took = time.monotonic() - begin
        equal(took >= 0.15, True, f"blocked for 150 ms, took {took:.3f} s")
    with FailPoint({"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=10 * PATIENCE_MS):
        with pymongo.timeout(0.2):
            failure = fails(errors.PyMongoError, None, collection.find_one, "find within 0.2 s")
        equal(failure.timeout, True, f"{failure!r} is a timeout")


@step
def failCommandOfApplication():
    struck = failing_collection("failing", appname="struck", retryReads=False)
    spared = failing_collection("failing", appname="spared", retryReads=False)
    with FailPoint("alwaysOn", failCommands=["find"], errorCode=8000, appName="struck"):
        for _ in range(2):
            fails(errors.OperationFailure, 8000, struck.find_one, "find of the named application")
            equal(spared.find_one(), {"_id": 1}, "find of another application")
    equal(struck.find_one(), {"_id": 1}, "find after the fail point is off")


@step
def failCommandOfNamespace():
    struck = failing_collection("failing", retryReads=False)
    spared = failing_collection("spared", retryReads=False)
    with FailPoint({"skip": 1}, failCommands=["find"], errorCode=8000, namespace=f"{DATABASE}.failing"):
        equal(struck.find_one(), {"_id": 1}, "skipped find")
        equal(spared.find_one(), {"_id": 1}, "find in another namespace")
        fails(errors.OperationFailure, 8000, struck.find_one, "next find")


@step
def failPointRefused():
    admin = single.admin
    fails(errors.OperationFailure, 266, lambda: admin.command("configureFailPoint", "noSuch", mode="off"), "an unknown fail point")
    fails(errors.OperationFailure, 2, lambda: admin.command("configureFailPoint", "failCommand", mode="x"), "an unknown mode")


# Access.


@step
def authentication():
    if "@" not in URI:
        raise Skip("access control is off")
    before, after = URI.split("@", 1)
    user = before.split("//")[1].split(":")[0]
    status = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
    equal(status, [{"user": user, "db": "admin"}], "authenticated users")
    with connect(f"mongodb://{user}:wrong@{after}") as c:
        fails(errors.OperationFailure, 18, c[DATABASE].list_collection_names, "a wrong password")
    with connect(f"mongodb://{after}") as c:
        fails(errors.OperationFailure, 13, c[DATABASE]["x"].find_one, "reading without authentication")


@step
def encryption():
    if not CA_FILE:
        raise Skip("TLS is off")
    # A load balancer is not monitored, so the operation itself fails. With monitoring server selection fails.
    kind = errors.AutoReconnect if TOPOLOGY == "load-balanced" else errors.ServerSelectionTimeoutError
    timeout, reason = 500, ""
    while "CERTIFICATE_VERIFY_FAILED" not in reason and timeout < PATIENCE_MS:
        timeout *= 2  # on a busy machine the first timeouts may be too short for a handshake
        with pymongo.MongoClient(SINGLE_URI, serverSelectionTimeoutMS=timeout) as c:
            failure = fails(kind, None, lambda: c.admin.command("ping"), "an untrusted certificate")
            equal(type(failure), kind, f"{failure}: its type")
            reason = str(failure)
    equal("CERTIFICATE_VERIFY_FAILED" in reason, True, reason)
    with pymongo.MongoClient(SINGLE_URI.replace("tls=true", "tls=false"), serverSelectionTimeoutMS=1000) as c:
        failure = fails(kind, None, lambda: c.admin.command("ping"), "plain text")
        equal(type(failure), kind, f"{failure}: its type")


def main():
    global client, single, commands
    unknown = set(STEPS) - {name for name, _ in STEP_TABLE}
    if unknown:
        print(f"FAILED steps: unknown steps {unknown}")
        return 1
    commands = Commands()
    client = connect(event_listeners=[commands])
    single = connect(SINGLE_URI)
    open_clients.extend([client, single])
    try:
        for name, function in STEP_TABLE:
            if STEPS and name not in STEPS:
                continue
            begin = time.monotonic()
            try:
                function()
            except Skip as why:
                print(f"skip {name}: {why}", flush=True)
                continue
            except Exception as failure:
                print(f"FAILED {name}: {type(failure).__name__}: {failure}".replace("\n", " "), flush=True)
                traceback.print_exc()
                return 1
            print(f"ok {name} {time.monotonic() - begin:.3f}s", flush=True)
        print(f"done with PyMongo {pymongo.version}", flush=True)
        return 0
    finally:
        for c in open_clients:
            c.close()


open_clients = []
if __name__ == "__main__":
    sys.exit(main())
