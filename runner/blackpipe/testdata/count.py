"""Counts an event exactly once, in two idempotent steps, each of which is tried twice."""

import os

from bson import ObjectId
from pymongo import MongoClient
from pymongo.errors import ConnectionFailure


def count(days):
    token = ObjectId()
    twice(days, {"_id": "2016-06-28"}, {"$addToSet": {"pending": token}}, upsert=True)
    twice(days, {"_id": "2016-06-28", "pending": token}, {"$pull": {"pending": token}, "$inc": {"counter": 1}})


def twice(days, query, update, **options):
    try:
        days.update_one(query, update, **options)
    except ConnectionFailure:
        days.update_one(query, update, **options)


if __name__ == "__main__":
    with MongoClient(os.environ["MONGODB_URI"]) as client:
        count(client.app.days)
