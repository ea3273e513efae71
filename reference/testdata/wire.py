"""Performs the operations of wire_test.go with PyMongo: prints the name of
each when it is done, and waits for a line before the next."""
import sys

from pymongo import DeleteOne, InsertOne, MongoClient, ReturnDocument, UpdateOne
from pymongo.server_api import ServerApi

uri, kind, api, names = sys.argv[1:5]
options = {"server_api": ServerApi("1", deprecation_errors=True)} if api == "true" else {}
client = MongoClient(uri, **options)
db = client["db"]
coll = db["coll"]
session = {
    "": lambda: None,
    "causal": lambda: client.start_session(),
    "notCausal": lambda: client.start_session(causal_consistency=False),
    "snapshot": lambda: client.start_session(snapshot=True),
}[kind]()
s = {"session": session}
set_a = {"$set": {"a": 1}}


def close_early():
    cursor = coll.find({}, batch_size=2, **s)
    cursor.next()
    cursor.close()


def transaction(act, end):
    with client.start_session() as own:
        own.start_transaction()
        try:
            act({"session": own})
        finally:
            getattr(own, end)()


operations = {
    "find": lambda: list(coll.find({}, **s)),
    "findBatches": lambda: list(coll.find({}, batch_size=2, **s)),
    "findLimit": lambda: list(coll.find({}, batch_size=3, limit=4, **s)),
    "findNegative": lambda: list(coll.find({}, limit=-2, **s)),
    "findOne": lambda: coll.find_one({}, **s),
    "aggregate": lambda: list(coll.aggregate([{"$match": {}}], batchSize=2, **s)),
    "aggregateDatabase": lambda: list(db.aggregate([{"$listLocalSessions": {}}], **s)),
    "countDocuments": lambda: coll.count_documents({}, **s),
    "distinct": lambda: coll.distinct("_id", {}, **s),
    "listDatabases": lambda: list(client.list_databases(**s)),
    "listDatabaseNames": lambda: client.list_database_names(**s),
    "listCollections": lambda: list(db.list_collections(**s)),
    "listCollectionNames": lambda: db.list_collection_names(**s),
    "listIndexes": lambda: list(coll.list_indexes(**s)),
    "watch": lambda: coll.watch([], **s).close(),
    "watchDatabase": lambda: db.watch([], **s).close(),
    "watchClient": lambda: client.watch([], **s).close(),
    "cursorClose": close_early,
    "runCommand": lambda: db.command("ping", **s),
    "runCursorCommand": lambda: list(db.cursor_command({"find": "coll", "batchSize": 2}, **s).batch_size(2)),
    "out": lambda: list(coll.aggregate([{"$match": {}}, {"$out": "out"}], **s)),
    "insertOne": lambda: coll.insert_one({"_id": 10}, **s),
    "insertMany": lambda: coll.insert_many([{"_id": 11}, {"_id": 12}], **s),
    "insertUnordered": lambda: coll.insert_many([{"_id": 13}, {"_id": 13}, {"_id": 14}], ordered=False, **s),
    "updateOne": lambda: coll.update_one({"_id": 10}, set_a, upsert=True, **s),
    "updateMany": lambda: coll.update_many({"_id": 11}, set_a, **s),
    "replaceOne": lambda: coll.replace_one({"_id": 11}, {"b": 1}, **s),
    "deleteOne": lambda: coll.delete_one({"_id": 10}, **s),
    "findOneAndUpdate": lambda: coll.find_one_and_update({"_id": 11}, set_a, return_document=ReturnDocument.AFTER, **s),
    "findOneAndReplace": lambda: coll.find_one_and_replace({"_id": 11}, {"c": 1}, **s),
    "findOneAndDelete": lambda: coll.find_one_and_delete({"_id": 11}, **s),
    "bulkWrite": lambda: coll.bulk_write(
        [InsertOne({"_id": 15}), UpdateOne({"_id": 15}, set_a), DeleteOne({"_id": 15})], **s),
    "clientBulkWrite": lambda: client.bulk_write(
        [InsertOne({"_id": 16}, namespace="db.coll"), DeleteOne({"_id": 16}, namespace="db.coll")], **s),
    "commitTransaction": lambda: transaction(lambda own: coll.insert_one({"_id": 17}, **own), "commit_transaction"),
    "abortTransaction": lambda: transaction(lambda own: list(coll.find({}, batch_size=2, **own)), "abort_transaction"),
    "createCollection": lambda: db.create_collection("made", check_exists=False, **s),
    "createIndex": lambda: coll.create_index({"a": 1}, name="a_1", **s),
    "dropIndex": lambda: coll.drop_index("a_1", **s),
    "dropCollection": lambda: db.drop_collection("made", **s),
    "dropDatabase": lambda: client.drop_database("made", **s),
    "deleteMany": lambda: coll.delete_many({"_id": {"$gte": 10}}, **s),
}
if not session:  # it takes none
    operations["estimatedDocumentCount"] = coll.estimated_document_count


def told(name):
    print(name, flush=True)
    sys.stdin.readline()


for name in names.split(","):
    if name in operations:
        try:
            operations[name]()
        except Exception:  # what the server answers is not compared here
            pass
        told(name)
if session:
    session.end_session()
client.close()
told("close")
