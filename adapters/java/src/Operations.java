import com.mongodb.MongoDriverInformation;
import com.mongodb.MongoNamespace;
import com.mongodb.ReadPreference;
import com.mongodb.TransactionOptions;
import com.mongodb.client.AggregateIterable;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.ClientSession;
import com.mongodb.client.ListDatabasesIterable;
import com.mongodb.client.MapReduceIterable;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCluster;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.MongoIterable;
import com.mongodb.client.gridfs.model.GridFSDownloadOptions;
import com.mongodb.client.gridfs.model.GridFSUploadOptions;
import com.mongodb.client.model.BulkWriteOptions;
import com.mongodb.client.model.CountOptions;
import com.mongodb.client.model.CreateCollectionOptions;
import com.mongodb.client.model.CreateViewOptions;
import com.mongodb.client.model.DeleteOptions;
import com.mongodb.client.model.DropCollectionOptions;
import com.mongodb.client.model.DropIndexOptions;
import com.mongodb.client.model.EstimatedDocumentCountOptions;
import com.mongodb.client.model.FindOneAndDeleteOptions;
import com.mongodb.client.model.FindOneAndReplaceOptions;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.InsertOneOptions;
import com.mongodb.client.model.RenameCollectionOptions;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.SearchIndexModel;
import com.mongodb.client.model.SearchIndexType;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.ValidationOptions;
import com.mongodb.client.model.bulk.ClientBulkWriteOptions;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.bson.BsonArray;
import org.bson.BsonBinary;
import org.bson.BsonBoolean;
import org.bson.BsonDocument;
import org.bson.BsonNull;
import org.bson.BsonString;
import org.bson.BsonValue;

/** The operations that the driver performs. */
final class Operations {
    /** The value of an operation that returns nothing. */
    static final Object NOTHING = new Object();

    /** An operation. Arguments are removed as they are used. */
    record Call(Entities test, Entities.Entity on, Object object, ClientSession session, BsonDocument arguments,
            BsonDocument operation, Supplier<Object> callback) {
        BsonValue take(String name) {
            BsonValue value = arguments.remove(name);
            if (value == null) {
                throw new IllegalArgumentException(Adapter.text(operation, "name") + " requires " + name);
            }
            return value;
        }

        String text(String name) {
            return take(name).asString().getValue();
        }

        /** Sets the remaining arguments as options. */
        <T> T options(T object) {
            T set = Options.set(object, arguments);
            arguments.clear();
            return set;
        }

        Object call(Object object, String method, Object... more) {
            if (!LAZY.contains(method)) {
                rejectRest();
            }
            List<Object> all = new ArrayList<>(session == null ? List.of() : List.of(session));
            all.addAll(List.of(more));
            return Options.call(object, method, all);
        }

        void rejectRest() {
            for (String name : arguments.keySet()) {
                throw Failed.lacks("argument " + name + " of " + on.kind() + "." + Adapter.text(operation, "name"));
            }
        }
    }

    static final Map<String, Function<Call, Object>> TABLE = new TreeMap<>();

    /**
     * Adds a row: the operation, and the method with its positional arguments, where * and ? stand for the class of the
     * result. Other arguments are options, of a class or of the iterable that the method returns.
     */
    private static void row(String operation, String method, Class<?> options) {
        String[] words = method.split(" ");
        TABLE.put(operation, call -> {
            List<Object> arguments = new ArrayList<>();
            for (String word : List.of(words).subList(1, words.length)) {
                arguments.add(word.equals("*") ? BsonDocument.class : word.equals("?") ? BsonValue.class
                        : call.take(word));
            }
            if (options != null) {
                arguments.add(call.options(Options.options(options)));
            }
            Object result = call.call(call.object, words[0], arguments.toArray());
            return LAZY.contains(words[0]) ? call.options(result) : result;
        });
    }

    /** Methods that return an iterable with options and send nothing. */
    private static final List<String> LAZY = List.of("find", "aggregate", "watch", "distinct", "listCollections",
            "listCollectionNames", "listDatabases", "listDatabaseNames", "listIndexes",
            "listSearchIndexes", "mapReduce");

    /** Adds a row for any other operation. */
    private static void row(String operation, Function<Call, Object> perform) {
        TABLE.put(operation, perform);
    }

    private static void run(String operation, java.util.function.Consumer<Call> perform) {
        TABLE.put(operation, call -> {
            perform.accept(call);
            return NOTHING;
        });
    }

    static {
        row("client.listDatabaseNames", c -> c.arguments.containsKey("filter") // listDatabaseNames has no filter
                ? c.options((ListDatabasesIterable<?>) c.call(c.object, "listDatabases", BsonDocument.class)).nameOnly(true)
                : c.options(c.call(c.object, "listDatabaseNames")));
        row("client.listDatabases", "listDatabases *", null);
        row("client.createChangeStream", "watch pipeline *", null);
        row("client.clientBulkWrite", Operations::clientBulkWrite);
        run("client.close", c -> c.test.close(Adapter.text(c.operation, "object")));
        row("client.dropDatabase", c -> c.call(((MongoCluster) c.object).getDatabase(c.text("database")), "drop"));
        run("client.appendMetadata", c -> ((MongoClient) c.object).appendMetadata(Options.set(
                MongoDriverInformation.builder(), c.take("driverInfoOptions").asDocument()).build()));
        row("client.$topology", c -> Log.state(((MongoClient) c.object).getClusterDescription()));
        row("client.$configureFailPoint", c -> Entities.hidden((MongoClient) c.object,
                c.take("command").asDocument()));

        row("database.aggregate", c -> aggregate(c, BsonDocument.class));
        row("database.createChangeStream", "watch pipeline *", null);
        row("database.createCollection", Operations::createCollection);
        row("database.dropCollection", c -> c.call(database(c).getCollection(c.text("collection")), "drop",
                c.options(new DropCollectionOptions())));
        row("database.listCollectionNames", "listCollectionNames", null);
        row("database.listCollections", "listCollections *", null);
        row("database.modifyCollection", c -> command(c, new BsonDocument("collMod", c.take("collection"))));
        row("database.runCommand", Operations::runCommand);

        row("collection.aggregate", c -> aggregate(c));
        row("collection.bulkWrite", Operations::bulkWrite);
        row("collection.countDocuments", "countDocuments filter", CountOptions.class);
        row("collection.createChangeStream", "watch pipeline *", null);
        row("collection.createFindCursor", "find filter", null);
        row("collection.createIndex", "createIndex keys", IndexOptions.class);
        row("collection.createSearchIndex", c -> searchIndexes(c, new BsonArray(List.of(c.take("model")))).get(0));
        row("collection.createSearchIndexes", c -> searchIndexes(c, c.take("models").asArray()));
        row("collection.deleteMany", "deleteMany filter", DeleteOptions.class);
        row("collection.deleteOne", "deleteOne filter", DeleteOptions.class);
        row("collection.distinct", "distinct fieldName ?", null);
        row("collection.dropIndex", "dropIndex name", DropIndexOptions.class);
        row("collection.dropIndexes", "dropIndexes", DropIndexOptions.class);
        row("collection.dropSearchIndex", "dropSearchIndex name", null);
        row("collection.estimatedDocumentCount", "estimatedDocumentCount", EstimatedDocumentCountOptions.class);
        row("collection.find", "find filter", null);
        row("collection.findOne", "find", null);
        row("collection.findOneAndDelete", "findOneAndDelete filter", FindOneAndDeleteOptions.class);
        row("collection.findOneAndReplace", "findOneAndReplace filter replacement", FindOneAndReplaceOptions.class);
        row("collection.findOneAndUpdate", "findOneAndUpdate filter update", FindOneAndUpdateOptions.class);
        row("collection.insertMany", "insertMany documents", InsertManyOptions.class);
        row("collection.insertOne", "insertOne document", InsertOneOptions.class);
        row("collection.listIndexNames", "listIndexes *", null);
        row("collection.listIndexes", "listIndexes *", null);
        row("collection.listSearchIndexes", Operations::listSearchIndexes);
        row("collection.mapReduce", Operations::mapReduce);
        row("collection.rename", c -> c.call(c.object, "renameCollection", new MongoNamespace(
                ((MongoCollection<?>) c.object).getNamespace().getDatabaseName(), c.text("to")),
                c.options(new RenameCollectionOptions())));
        row("collection.replaceOne", "replaceOne filter replacement", ReplaceOptions.class);
        row("collection.updateMany", "updateMany filter update", UpdateOptions.class);
        row("collection.updateOne", "updateOne filter update", UpdateOptions.class);
        row("collection.updateSearchIndex", "updateSearchIndex name definition", null);

        row("session.abortTransaction", "abortTransaction", null);
        row("session.commitTransaction", "commitTransaction", null);
        row("session.endSession", "close", null);
        row("session.getSnapshotTime", "getSnapshotTimestamp", null);
        run("session.startTransaction", c -> session(c).startTransaction(
                c.options(TransactionOptions.builder()).build()));
        run("session.withTransaction", c -> session(c).withTransaction(c.callback::get,
                c.options(TransactionOptions.builder()).build()));
        row("session.$lsid", c -> session(c).getServerSession().getIdentifier());
        row("session.$transactionState", c -> transactionState(session(c)));
        row("session.$pinnedServer", c -> session(c).getPinnedServerAddress() == null ? BsonNull.VALUE
                : session(c).getPinnedServerAddress().toString());
        row("session.$dirty", c -> session(c).getServerSession().isMarkedDirty());

        row("bucket.delete", "delete id", null);
        row("bucket.drop", "drop", null);
        row("bucket.find", "find filter", null);
        row("bucket.rename", "rename id newFilename", null);
        row("bucket.download", c -> download(c, c.take("id")));
        row("bucket.downloadByName", c -> download(c, c.take("filename"), c.options(new GridFSDownloadOptions())));
        row("bucket.upload", "uploadFromStream filename source", GridFSUploadOptions.class);
        row("bucket.uploadWithId", "uploadFromStream id filename source", GridFSUploadOptions.class);

        row("cursor.close", "close", null);
        row("cursor.iterateOnce", "tryNext", null);
        row("cursor.iterateUntilDocumentOrError", "next", null);
    }

    private Operations() {
    }

    private static MongoDatabase database(Call c) {
        return (MongoDatabase) c.object;
    }

    private static ClientSession session(Call c) {
        return (ClientSession) c.object;
    }

    /** Reasons why the driver cannot perform operations that are not in the table. */
    static final Map<String, String> LACKS = Map.of(
            "client.listDatabaseObjects", "the Java driver has no method that returns the databases as MongoDatabase",
            "collection.count",
            "the Java driver 4.0 removed MongoCollection.count, and estimatedDocumentCount has no filter",
            "database.createCommandCursor", "the Java driver has no MongoDatabase.runCursorCommand",
            "database.listCollectionObjects",
            "the Java driver has no method that returns the collections as MongoCollection",
            "database.runCursorCommand", "the Java driver has no MongoDatabase.runCursorCommand");

    /** Performs an aggregate. If it writes, its result must not be iterated: that would also read the collection. */
    private static Object aggregate(Call c, Object... type) {
        BsonArray pipeline = c.take("pipeline").asArray();
        List<Object> arguments = new ArrayList<>(List.of(pipeline));
        arguments.addAll(List.of(type));
        AggregateIterable<?> found = (AggregateIterable<?>) c.options(c.call(c.object, "aggregate", arguments.toArray()));
        BsonDocument last = pipeline.isEmpty() ? new BsonDocument() : pipeline.get(pipeline.size() - 1).asDocument();
        if (last.containsKey("$out") || last.containsKey("$merge")) {
            found.toCollection();
            return List.of();
        }
        return found;
    }

    static Object perform(Entities test, BsonDocument operation, Supplier<Object> callback) {
        Entities.Entity on = test.get(Adapter.text(operation, "object"));
        String name = on.kind() + "." + Adapter.text(operation, "name");
        if (!TABLE.containsKey(name)) {
            throw Failed.lacks("operation " + name);
        }
        BsonDocument arguments = operation.getDocument("arguments", new BsonDocument()).clone();
        BsonValue id = arguments.remove("session");
        ClientSession session = id == null ? null
                : (ClientSession) test.get(id.asString().getValue(), "session").object();
        Object object = on.object();
        for (String option : List.of("readConcern", "readPreference", "writeConcern", "timeoutMS")) {
            boolean own = on.kind().equals("session")
                    || name.equals("database.runCommand") && !option.equals("timeoutMS");
            if (arguments.containsKey(option) && !own) {
                object = Options.set(object, option, arguments.remove(option));
            }
        }
        Call call = new Call(test, on, object, session, arguments, operation, callback);
        Object result = TABLE.get(name).apply(call);
        if (result instanceof MongoIterable<?> iterable) {
            result = found(call, name, iterable);
        }
        return result == NOTHING ? result : Results.value(result);
    }

    private static Object found(Call call, String name, MongoIterable<?> found) {
        if (found instanceof ChangeStreamIterable<?> stream) {
            found = stream.withDocumentClass(BsonDocument.class);
        }
        if (name.matches(".*\\.create.*(Stream|Cursor)")) {
            return call.test.save(call.operation, "cursor", found.cursor(), call.on.log());
        } else if (name.equals("collection.findOne")) {
            return found.first();
        } else if (name.matches(".*\\.list(Index|Database)Names")) {
            return found.map(one -> one instanceof BsonDocument document ? document.get("name") : one);
        }
        return found;
    }

    private static Object command(Call c, BsonDocument command) {
        command.putAll(c.arguments);
        c.arguments.clear();
        return c.call(c.object, "runCommand", command, BsonDocument.class);
    }

    private static Object runCommand(Call c) {
        BsonDocument given = c.take("command").asDocument();
        BsonDocument command = new BsonDocument();
        if (c.arguments.containsKey("commandName")) { // the name must be the first field
            String name = c.text("commandName");
            command.append(name, given.get(name));
        }
        command.putAll(given);
        BsonValue preference = c.arguments.remove("readPreference");
        return preference == null ? c.call(c.object, "runCommand", command, BsonDocument.class)
                : c.call(c.object, "runCommand", command, preference, BsonDocument.class);
    }

    private static Object createCollection(Call c) {
        String name = c.text("collection");
        BsonDocument validation = new BsonDocument();
        for (String option : List.of("validator", "validationLevel", "validationAction")) {
            if (c.arguments.containsKey(option)) {
                validation.append(option, c.take(option));
            }
        }
        if (c.arguments.containsKey("viewOn")) {
            BsonValue pipeline = c.arguments.getOrDefault("pipeline", new BsonArray());
            String source = c.text("viewOn");
            c.arguments.remove("pipeline");
            c.arguments.putAll(validation);
            c.call(c.object, "createView", new BsonString(name), new BsonString(source), pipeline,
                    c.options(new CreateViewOptions()));
        } else {
            c.call(c.object, "createCollection", new BsonString(name), c.options(new CreateCollectionOptions())
                    .validationOptions(Options.set(new ValidationOptions(), validation)));
        }
        if (c.operation.containsKey("saveAs")) {
            c.test.save(c.operation, "collection", database(c).getCollection(name, BsonDocument.class), c.on.log());
        }
        return NOTHING;
    }

    private static Object listSearchIndexes(Call c) {
        Object found = c.call(c.object, "listSearchIndexes", BsonDocument.class);
        BsonValue more = c.arguments.remove("aggregationOptions");
        return Options.set(c.options(found), more == null ? new BsonDocument() : more.asDocument());
    }

    private static List<?> searchIndexes(Call c, BsonArray definitions) {
        List<SearchIndexModel> models = new ArrayList<>();
        for (BsonValue each : definitions) {
            BsonDocument index = each.asDocument();
            Options.rejectOthers("model", index, "name", "definition", "type");
            String name = index.get("name") instanceof BsonString text ? text.getValue() : null;
            SearchIndexType type = !(index.get("type") instanceof BsonString text) ? null
                    : text.getValue().equals("vectorSearch") ? SearchIndexType.vectorSearch()
                    : SearchIndexType.search();
            models.add(new SearchIndexModel(name, index.getDocument("definition"), type));
        }
        return (List<?>) c.call(c.object, "createSearchIndexes", models);
    }

    @SuppressWarnings("deprecation") // the retryable reads suites require it
    private static Object mapReduce(Call c) {
        if (!c.take("out").asDocument().containsKey("inline")) {
            throw Failed.lacks("argument out of collection.mapReduce");
        }
        return c.options((MapReduceIterable<?>) c.call(c.object, "mapReduce", c.take("map"), c.take("reduce")));
    }

    private static Object download(Call c, Object... arguments) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        List<Object> all = new ArrayList<>(List.of(arguments));
        all.add(1, bytes);
        c.call(c.object, "downloadToStream", all.toArray());
        return new BsonBinary(bytes.toByteArray());
    }

    /** Positional arguments of write models. Others are options. */
    private static final Map<String, List<String>> WRITES = Map.of("insertOne", List.of("document"),
            "deleteOne", List.of("filter"), "deleteMany", List.of("filter"),
            "updateOne", List.of("filter", "update"), "updateMany", List.of("filter", "update"),
            "replaceOne", List.of("filter", "replacement"));

    private static Object bulkWrite(Call c) {
        List<Object> writes = new ArrayList<>();
        for (BsonValue request : c.take("requests").asArray()) {
            request.asDocument().forEach((name, fields) -> writes.add(write(name, fields.asDocument(), null)));
        }
        return c.call(c.object, "bulkWrite", writes, c.options(new BulkWriteOptions()));
    }

    private static Object clientBulkWrite(Call c) {
        List<Object> writes = new ArrayList<>();
        for (BsonValue model : c.take("models").asArray()) {
            model.asDocument().forEach((name, fields) -> writes.add(write(name, fields.asDocument(),
                    fields.asDocument().getString("namespace").getValue())));
        }
        return c.call(c.object, "bulkWrite", writes, c.options(ClientBulkWriteOptions.clientBulkWriteOptions()));
    }

    /** Creates a write model, of a client bulk write if a namespace is given. */
    private static Object write(String name, BsonDocument fields, String namespace) {
        if (!WRITES.containsKey(name)) {
            throw Failed.lacks("write " + name);
        }
        BsonDocument options = fields.clone();
        options.remove("namespace");
        List<Object> arguments = new ArrayList<>(namespace == null ? List.of()
                : List.of(new MongoNamespace(namespace)));
        for (String argument : WRITES.get(name)) {
            arguments.add(options.remove(argument));
        }
        String type = Names.capital(name);
        String models = "com.mongodb.client.model.";
        try {
            if (name.equals("insertOne")) {
                Options.rejectOthers(name, options);
            } else {
                Class<?> kind = Class.forName(models + (namespace != null ? "bulk.Client" + type
                        : type.replaceAll("One|Many", "")) + "Options");
                arguments.add(Options.set(Options.options(kind), options));
            }
            return namespace == null ? Options.create(Class.forName(models + type + "Model"), arguments)
                    : Options.call(Class.forName(models + "bulk.ClientNamespacedWriteModel"), name, arguments);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads the state from private fields, because the driver does not publish it. */
    private static String transactionState(ClientSession session) {
        try {
            Field state = session.getClass().getDeclaredField("transactionState");
            Field sent = session.getClass().getDeclaredField("messageSentInCurrentTransaction");
            state.setAccessible(true);
            sent.setAccessible(true);
            String name = state.get(session).toString().toLowerCase();
            return !name.equals("in") ? name : sent.getBoolean(session) ? "in_progress" : "starting";
        } catch (ReflectiveOperationException e) {
            throw Failed.lacks("$transactionState");
        }
    }
}
