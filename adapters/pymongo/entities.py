"""The entities of a test, and the operations that PyMongo performs on them."""

import contextlib
import functools
import inspect
import re

import gridfs
import pymongo
from events import Log, host, state, thread
from failures import Failed, written
from pymongo import client_session, common, driver_info, operations, read_concern, read_preferences, results, server_api
from pymongo.synchronous import client_session as states
from pymongo.synchronous import monitor
from pymongo.synchronous.cursor import Cursor

# PyMongo's own tests also reduce these intervals. They do not change which commands PyMongo sends, but how long it waits
# for a heartbeat after an error, and in close().
common.MIN_HEARTBEAT_INTERVAL = common.EVENTS_QUEUE_FREQUENCY = 0.01
common.HEARTBEAT_FREQUENCY = 0.02  # each heartbeat uses the interpreter, and the tests of a process share it
common.KILL_CURSOR_FREQUENCY = 600  # after an error, PyMongo closes the cursor again after this time


class RttMonitor(monitor._RttMonitor):
    """Measures round-trip times as often as PyMongo does by default, whatever the heartbeat interval is."""

    def __init__(self, *args):
        super().__init__(*args)
        self._executor.update_interval(10)


monitor._RttMonitor = RttMonitor

# Each operation: the method if its name is not the same in snake_case, and the options that it accepts as **kwargs.
CHANGE = "maxTimeMS collation bypassDocumentValidation"
AGGREGATE = CHANGE + " allowDiskUse batchSize hint let comment"
VALIDATION = "viewOn pipeline validator validationLevel validationAction expireAfterSeconds changeStreamPreAndPostImages timeseries maxTimeMS "
TABLE = {
    "client": {
        "appendMetadata": (), "clientBulkWrite": ("bulk_write",), "close": (), "createChangeStream": ("watch",),
        "dropDatabase": (), "listDatabaseNames": (), "listDatabases": ("", "filter authorizedDatabases nameOnly maxTimeMS"),
        "$topology": (), "$configureFailPoint": ()},
    "database": {
        "aggregate": ("", AGGREGATE), "createChangeStream": ("watch",), "dropCollection": (), "runCommand": ("command",),
        "createCollection": ("", VALIDATION + "capped size max clusteredIndex comment collation storageEngine indexOptionDefaults"),
        "createCommandCursor": ("cursor_command",), "runCursorCommand": ("cursor_command",),
        "listCollectionNames": ("", "maxTimeMS authorizedCollections"), "modifyCollection": ("", VALIDATION + "collection index"),
        "listCollections": ("", "maxTimeMS batchSize authorizedCollections nameOnly")},
    "collection": {
        "aggregate": ("", AGGREGATE), "bulkWrite": (), "countDocuments": ("", "maxTimeMS collation hint limit skip"),
        "createChangeStream": ("watch",), "createFindCursor": ("find",),
        "createIndex": ("", "2dsphereIndexVersion background bits bucketSize collation commitQuorum default_language "
                            "expireAfterSeconds hidden language_override max maxTimeMS min name partialFilterExpression "
                            "sparse textIndexVersion unique weights wildcardProjection"),
        "createSearchIndex": (), "createSearchIndexes": (), "deleteMany": (), "deleteOne": (), "distinct": ("", "maxTimeMS collation"),
        "dropIndex": ("", "maxTimeMS"), "dropIndexes": ("", "maxTimeMS"), "dropSearchIndex": (),
        "estimatedDocumentCount": ("", "maxTimeMS"), "find": (), "findOne": (), "findOneAndDelete": ("", CHANGE),
        "findOneAndReplace": ("", CHANGE), "findOneAndUpdate": ("", CHANGE), "insertMany": (), "insertOne": (),
        "listIndexNames": ("list_indexes",), "listIndexes": (), "listSearchIndexes": ("", "aggregationOptions"),
        "rename": ("", "dropTarget maxTimeMS"), "replaceOne": (), "updateMany": (), "updateOne": (), "updateSearchIndex": ()},
    "session": {
        "abortTransaction": (), "commitTransaction": (), "endSession": (), "startTransaction": (), "withTransaction": (),
        "$lsid": (), "$transactionState": (), "$pinnedServer": (), "$dirty": ()},
    "bucket": {
        "delete": (), "deleteByName": (), "download": ("open_download_stream",), "rename": (), "renameByName": (), "find": (),
        "downloadByName": ("open_download_stream_by_name",), "upload": ("upload_from_stream",),
        "uploadWithId": ("upload_from_stream_with_id",)},
    "cursor": {"close": (), "iterateOnce": (), "iterateUntilDocumentOrError": ("next",)},
}
DESCRIPTION = {"name": "pymongo", "version": pymongo.version, "schemaVersion": "1.28", "concurrentTests": 4,
               "operations": sorted(f"{kind}.{name}" for kind, rows in TABLE.items() for name in rows),
               "lacks": {
                   "client.listDatabaseObjects": "PyMongo has no method that returns the databases as Database objects",
                   "collection.count": "PyMongo 4.0 removed Collection.count, and estimated_document_count has no filter",
                   "collection.mapReduce": "PyMongo 4.0 removed Collection.map_reduce",
                   "database.listCollectionObjects": "PyMongo has no method that returns the collections as Collection objects"}}
NOTHING = re.compile("append|close|drop|rename|updateSearch|delete(ByName)?$|uploadWith|(abort|commit|start|with)Trans|end|createColl")
RENAMED = {"fieldName": "key", "to": "new_name", "id": "file_id", "database": "name_or_database", "driverInfoOptions": "driver_info",
           "collection": "name_or_collection name", "name": "index_or_name"}
SPECIAL = {
    "database.modifyCollection": lambda d, collection, session=None, **o: d.command({"collMod": collection, **o}, session=session),
    "client.$topology": lambda client: state(client.topology_description),
    "client.$configureFailPoint": lambda client, command: client.admin.command(command),
    "session.$lsid": lambda session: session.session_id,
    "session.$transactionState": lambda session: transaction_state(session._transaction.state),
    "session.$pinnedServer": lambda s: host(a) if (a := s._pinned_address or getattr(s._pinned_connection, "address", None)) else None,
    "session.$dirty": lambda session: session._server_session.dirty,
    "cursor.iterateOnce": lambda cursor: cursor.try_next() if hasattr(cursor, "try_next") else next(cursor, None),
}


def transaction_state(state):
    """Names a state, which is an int."""
    name = next(name for name, value in vars(states._TxnState).items() if value == state)
    return name.lower().replace("committed_empty", "committed")


def lacks(what):
    return Failed({"message": f"PyMongo's adapter does not support {what}", "client": True, "unsupported": what})


def snake(name):
    return re.sub(r"(?<=[a-z])[A-Z]+", lambda m: "_" + m[0].lower(), name)


@functools.cache
def parameters(function):
    return inspect.signature(function).parameters


def models(requests):
    return [getattr(operations, name[0].upper() + name[1:])(**converted(fields)) for r in requests for name, fields in r.items()]


CONVERT = {
    "readConcern": lambda d: read_concern.ReadConcern(**d),
    "writeConcern": lambda d: pymongo.WriteConcern(**{{"journal": "j", "wtimeoutMS": "wtimeout"}.get(k, k): v for k, v in d.items()}),
    "readPreference": lambda d: read_preferences.make_read_preference(
        read_preferences.read_pref_mode_from_name(d["mode"]), d.get("tagSets"), d.get("maxStalenessSeconds", -1)),
    "defaultTransactionOptions": lambda d: client_session.TransactionOptions(**converted(d)),
    "driverInfoOptions": lambda d: driver_info.DriverInfo(**d),
    "requests": models, "models": models, "returnDocument": lambda v: v == "After",
    "cursorType": {"nonTailable": 0, "tailable": 2, "tailableAwait": 34}.get, "source": lambda d: bytes.fromhex(d["$$hexBytes"]),
}


def converted(options):
    return {snake(name): CONVERT.get(name, lambda v: v)(value) for name, value in options.items()}


class Test:
    """The entities of a test. Its methods may be called concurrently."""

    PARENTS = {"client": None, "database": "client", "collection": "database", "session": "client", "bucket": "database"}
    FIELDS = {"id useMultipleMongoses observeEvents ignoreCommandMonitoringEvents observeSensitiveCommands storeEventsAsEntities "
              "awaitMinPoolSizeMS databaseName collectionName client database": None, "uriOptions": None,
              "serverApi": "version strict deprecationErrors", "databaseOptions collectionOptions": "readConcern readPreference writeConcern",
              "sessionOptions": "causalConsistency snapshot defaultTransactionOptions",
              "bucketOptions": "bucketName chunkSizeBytes readPreference writeConcern"}

    def __init__(self):
        self.entities = {}  # (kind, entity, log of its client) by id
        self.raised = {}  # errors of the driver, by request

    def get(self, id, kind=None):
        if id not in self.entities or kind not in (None, self.entities[id][0]):
            raise KeyError(f"unknown {kind or 'entity'} {id!r}")
        return self.entities[id]

    def open(self, kind, id, options={}, uri=None, clusterTime=None):
        if kind not in self.PARENTS:
            raise lacks(f"entity {kind}")
        given = {}
        for name, value in options.items():
            known = next((rule for names, rule in self.FIELDS.items() if name in names.split()), "")
            for option in [name] if known == "" else [o for o in value if o not in known.split()] if known else []:
                raise lacks(f"option {option} of a {kind}")
            if known:
                given = converted(value)
        for option in options.get("uriOptions", {}):
            if option.lower() not in common.VALIDATORS:  # an error of the driver would not skip the test
                raise lacks(f"uriOptions.{option}")
        if id in self.entities:
            raise KeyError(f"entity {id!r} exists already")
        _, parent, log = self.get(options[self.PARENTS[kind]], self.PARENTS[kind]) if kind != "client" else (None, None, Log())
        entity = {
            "client": lambda: pymongo.MongoClient(uri, event_listeners=[log.listener], **options.get("uriOptions", {}),
                                                  server_api=server_api.ServerApi(**given) if given else None),
            "database": lambda: parent.get_database(options["databaseName"], **given),
            "collection": lambda: parent.get_collection(options["collectionName"], **given),
            "session": lambda: parent.start_session(**given),
            "bucket": lambda: gridfs.GridFSBucket(parent, **given),
        }[kind]()
        if kind == "session":
            entity.session_id  # assigns the id: $lsid must not
            if clusterTime:
                entity.advance_cluster_time(clusterTime.get("$clusterTime", clusterTime))
        self.entities[id] = kind, entity, log
        return ...

    def close(self, id):
        kind, entity, log = self.get(id)
        if kind == "client" and log.unacknowledged:  # the reply shows that the server has executed the writes
            log.unacknowledged, thread.hidden = False, True
            with contextlib.suppress(pymongo.errors.PyMongoError):
                entity.admin.command("ping")
            thread.hidden = False
        if kind == "session":
            entity.end_session()
        elif kind in ("client", "cursor"):
            entity.close()
        return ...

    def end(self):
        for id in reversed(self.entities):  # a client after its sessions and cursors
            with contextlib.suppress(pymongo.errors.PyMongoError):
                self.close(id)

    def do(self, object, name, callback, arguments={}, saveAs=None):
        kind, entity, log = self.get(object)
        if name not in TABLE.get(kind, {}):
            raise lacks(f"operation {kind}.{name}")
        if "session" in arguments:
            arguments["session"] = self.get(arguments["session"], "session")[1]
        if name == "withTransaction" and "timeoutMS" not in arguments and entity.client.options.timeout is not None:
            raise lacks("timeoutMS of a client for withTransaction")  # PyMongo applies it to each operation
        timeout = pymongo.timeout(arguments.pop("timeoutMS") / 1000) if "timeoutMS" in arguments else contextlib.nullcontext()
        thread.hidden = name == "$configureFailPoint"
        with timeout:
            special = SPECIAL.get(f"{kind}.{name}")
            value = special(entity, **arguments) if special else self.call(kind, entity, name, arguments, callback, log)
            return self.result(name, value, saveAs, log)

    def call(self, kind, entity, name, arguments, callback, log):
        """Calls a method of PyMongo. Arguments are parameters of the method, **kwargs, or options of the object."""
        method, more = (*TABLE[kind][name], "", "")[:2]
        if name == "listDatabaseNames" and "filter" in arguments:  # list_database_names has no filter
            method, more, arguments = "list_databases", "filter nameOnly", {**arguments, "nameOnly": True}
        method = method or snake(name)
        known = parameters(Cursor.__init__ if method in ("find", "find_one") else getattr(type(entity), method))
        keywords, options, batch_size = {"callback": callback} if name == "withTransaction" else {}, {}, None
        for argument, value in arguments.items():
            renamed = next((n for n in [snake(argument), *RENAMED.get(argument, "").split()] if n in known), None)
            value = CONVERT.get(argument, lambda v: v)(value)
            if renamed:
                keywords[renamed] = value
            elif argument in ("readConcern", "readPreference", "writeConcern") and hasattr(entity, "with_options"):
                options[snake(argument)] = value
            elif argument == "batchSize" and method == "cursor_command":
                batch_size = value
            elif argument in more.split():
                keywords[argument] = value
            elif argument not in ("commandName", "callback"):
                raise lacks(f"argument {argument} of {kind}.{name}")
        if method == "create_collection":
            keywords["check_exists"] = False
        if first := arguments.get("commandName"):  # it must be the first field
            keywords["command"] = {first: keywords["command"][first], **keywords["command"]}
        if options:
            entity = entity.with_options(**options)
        concern = keywords.get("write_concern") or getattr(entity, "write_concern", None)
        log.unacknowledged |= concern is not None and not concern.acknowledged
        keywords.update(keywords.pop("aggregationOptions", {}))
        value = getattr(entity, method)(**keywords)
        return value.batch_size(batch_size) if batch_size else value

    def result(self, name, value, save_as, log):
        if name in ("createChangeStream", "createCommandCursor", "createFindCursor"):
            if name == "createFindCursor":
                value._refresh()  # the format requires that the command is sent now
            self.entities[save_as or f"cursor {len(self.entities)}"] = "cursor", value, log
            return ...
        if name == "createCollection" and save_as:
            self.entities[save_as] = "collection", value, log
        if NOTHING.match(name):
            return ...
        if isinstance(value, gridfs.GridOut):
            return value.read()
        if hasattr(value, "to_list"):  # a cursor
            value = [getattr(one, "_file", one) for one in value]
        if isinstance(value, results._WriteResult):
            upserted = {"upsertedCount": int(value.did_upsert)} if isinstance(value, results.UpdateResult) and value.acknowledged else {}
            return {**written(value), **upserted}
        if name in ("listIndexNames", "listDatabaseNames"):
            return [one["name"] if isinstance(one, dict) else one for one in value]
        return value
