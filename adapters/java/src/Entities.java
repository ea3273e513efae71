import com.mongodb.ClientSessionOptions;
import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.ServerApi;
import com.mongodb.ServerApiVersion;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.gridfs.GridFSBucket;
import com.mongodb.client.gridfs.GridFSBuckets;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.bson.BsonBoolean;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonNumber;
import org.bson.BsonString;
import org.bson.BsonValue;

/** The entities of a test. Its methods may be called concurrently. */
final class Entities {
    record Entity(String kind, Object object, Log log) {
    }

    private static final Map<String, Set<String>> FIELDS = Map.of(
            "client", Set.of("id", "useMultipleMongoses", "observeEvents", "ignoreCommandMonitoringEvents",
                    "observeSensitiveCommands", "observeTracingMessages", "storeEventsAsEntities",
                    "awaitMinPoolSizeMS", "uriOptions", "serverApi", "minHeartbeatFrequencyMS"),
            "database", Set.of("id", "client", "databaseName", "databaseOptions"),
            "collection", Set.of("id", "database", "collectionName", "collectionOptions"),
            "session", Set.of("id", "client", "sessionOptions"),
            "bucket", Set.of("id", "database", "bucketOptions"));

    /** Options of connection strings that the driver supports. For others, it only logs warnings. */
    private static final Set<String> URI_OPTIONS = Set.of(("appName authMechanism authMechanismProperties authSource "
            + "compressors connectTimeoutMS directConnection enableOverloadRetargeting gssapiServiceName "
            + "heartbeatFrequencyMS journal loadBalanced localThresholdMS maxAdaptiveRetries maxConnecting "
            + "maxIdleTimeMS maxLifeTimeMS maxPoolSize maxStalenessSeconds "
            + "minPoolSize proxyHost proxyPassword proxyPort "
            + "proxyUsername readConcernLevel readPreference readPreferenceTags replicaSet retryReads retryWrites safe "
            + "serverMonitoringMode serverSelectionTimeoutMS socketTimeoutMS srvMaxHosts srvServiceName ssl "
            + "sslInvalidHostNameAllowed timeoutMS tls tlsAllowInvalidHostnames tlsInsecure uuidRepresentation w "
            + "waitQueueTimeoutMS wTimeoutMS zlibCompressionLevel").toLowerCase().split(" "));

    private final Map<String, Entity> entities = new ConcurrentHashMap<>();
    final Map<Long, Throwable> raised = new ConcurrentHashMap<>(); // errors of the driver, by request

    Entity get(String id) {
        Entity entity = entities.get(id);
        if (entity == null) {
            throw new IllegalArgumentException("unknown entity " + id);
        }
        return entity;
    }

    Entity get(String id, String kind) {
        if (!get(id).kind.equals(kind)) {
            throw new IllegalArgumentException("entity " + id + " is not a " + kind);
        }
        return get(id);
    }

    void add(String id, Entity entity) {
        if (entities.putIfAbsent(id, entity) != null) {
            throw new IllegalArgumentException("entity " + id + " exists already");
        }
    }

    /** Saves an entity that an operation created. */
    Object save(BsonDocument operation, String kind, Object object, Log log) {
        String id = operation.getString("saveAs", new BsonString(kind + " " + entities.size())).getValue();
        add(id, new Entity(kind, object, log));
        return Operations.NOTHING;
    }

    void open(BsonDocument params) {
        String kind = Adapter.text(params, "kind");
        String id = Adapter.text(params, "id");
        BsonDocument options = params.getDocument("options", new BsonDocument());
        if (!FIELDS.containsKey(kind)) {
            throw Failed.lacks("entity " + kind);
        }
        Options.rejectOthers(kind, options, FIELDS.get(kind).toArray(String[]::new));
        if (entities.containsKey(id)) {
            throw new IllegalArgumentException("entity " + id + " exists already");
        }
        BsonDocument given = options.getDocument(kind + "Options", new BsonDocument());
        Entity parent = switch (kind) {
            case "client" -> new Entity("", null, new Log());
            case "collection", "bucket" -> get(Adapter.text(options, "database"), "database");
            default -> get(Adapter.text(options, "client"), "client");
        };
        add(id, new Entity(kind, switch (kind) {
            case "client" -> client(Adapter.text(params, "uri"), options, parent.log);
            case "database" -> Options.set(((MongoClient) parent.object)
                    .getDatabase(Adapter.text(options, "databaseName")), given);
            case "collection" -> Options.set(((MongoDatabase) parent.object)
                    .getCollection(Adapter.text(options, "collectionName"), BsonDocument.class), given);
            case "bucket" -> bucket((MongoDatabase) parent.object, given);
            default -> session((MongoClient) parent.object, given, params.get("clusterTime"));
        }, parent.log));
    }

    private static MongoClient client(String uri, BsonDocument options, Log log) {
        StringBuilder text = new StringBuilder(uri);
        if (uri.indexOf('?') < 0) {
            text.append(uri.lastIndexOf('/') > uri.indexOf("://") + 2 ? "?" : "/?");
        }
        for (Map.Entry<String, BsonValue> option : options.getDocument("uriOptions", new BsonDocument()).entrySet()) {
            for (BsonValue value : option.getValue().isArray() ? option.getValue().asArray().getValues()
                    : List.of(option.getValue())) {
                text.append('&').append(option.getKey()).append('=')
                        .append(URLEncoder.encode(plain(value), StandardCharsets.UTF_8));
            }
        }
        for (String option : text.substring(text.indexOf("?") + 1).split("&")) {
            String name = option.split("=")[0];
            if (!name.isEmpty() && !URI_OPTIONS.contains(name.toLowerCase())) {
                throw Failed.lacks("connection string option " + name);
            }
        }
        MongoClientSettings.Builder settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(text.toString().replace("?&", "?"))).addCommandListener(log)
                .applyToConnectionPoolSettings(pool -> pool.addConnectionPoolListener(log))
                .applyToClusterSettings(cluster -> cluster.addClusterListener(log))
                .applyToServerSettings(server -> server.addServerListener(log).addServerMonitorListener(log)
                        .minHeartbeatFrequency(50, TimeUnit.MILLISECONDS));
        // After an error that reports a shutdown, the driver checks the server only at the next heartbeat.
        long heartbeat = options.get("minHeartbeatFrequencyMS") instanceof BsonNumber min ? min.longValue() : 500;
        if (!text.toString().toLowerCase().contains("heartbeatfrequencyms=") || heartbeat < 500) {
            settings.applyToServerSettings(server -> server.heartbeatFrequency(heartbeat, TimeUnit.MILLISECONDS));
        }
        if (options.get("serverApi") instanceof BsonDocument api) {
            ServerApiVersion version = ServerApiVersion.findByValue(Adapter.text(api, "version"));
            BsonDocument rest = api.clone();
            rest.remove("version");
            settings.serverApi(Options.set(ServerApi.builder().version(version), rest).build());
        }
        if (options.get("observeTracingMessages") instanceof BsonDocument tracing) {
            boolean payload = tracing.getBoolean("enableCommandPayload", BsonBoolean.FALSE).getValue();
            settings.observabilitySettings(log.spans.settings(payload));
        }
        return MongoClients.create(settings.build());
    }

    /** Converts a value for a connection string. */
    private static String plain(BsonValue value) {
        if (value instanceof BsonDocument pairs) {
            return String.join(",", pairs.entrySet().stream()
                    .map(e -> e.getKey() + ":" + plain(e.getValue())).toList());
        }
        return value.isString() ? value.asString().getValue()
                : value instanceof BsonBoolean flag ? String.valueOf(flag.getValue())
                : String.valueOf(value.asNumber().longValue());
    }

    private static GridFSBucket bucket(MongoDatabase database, BsonDocument options) {
        BsonValue name = options.remove("bucketName");
        return Options.set(name == null ? GridFSBuckets.create(database)
                : GridFSBuckets.create(database, name.asString().getValue()), options);
    }

    private static ClientSession session(MongoClient client, BsonDocument options, BsonValue clusterTime) {
        ClientSession session = client.startSession(Options.set(ClientSessionOptions.builder(), options).build());
        session.getServerSession(); // assigns the id: $lsid must not
        if (clusterTime instanceof BsonDocument time) {
            session.advanceClusterTime(time.getDocument("$clusterTime", time));
        }
        return session;
    }

    void close(String id) {
        Entity entity = get(id);
        if (entity.object instanceof ClientSession session) {
            session.close();
        } else if (entity.object instanceof MongoCursor<?> cursor) {
            cursor.close();
        } else if (entity.object instanceof MongoClient client) {
            if (entity.log.unacknowledged) { // the reply shows that the server has executed the writes
                entity.log.unacknowledged = false;
                try {
                    hidden(client, new BsonDocument("ping", new BsonInt32(1)));
                } catch (MongoException e) {
                    // Waiting for the server is not possible.
                }
            }
            client.close();
            entity.log.awaitClosed();
        }
    }

    /** Runs a command without events. */
    static BsonDocument hidden(MongoClient client, BsonDocument command) {
        Log.HIDDEN.set(true);
        try {
            return client.getDatabase("admin").withTimeout(0, TimeUnit.MILLISECONDS)
                    .runCommand(command, BsonDocument.class);
        } finally {
            Log.HIDDEN.set(false);
        }
    }

    void end() {
        for (String kind : List.of("cursor", "session", "client")) {
            for (Map.Entry<String, Entity> entity : new ArrayList<>(entities.entrySet())) {
                try {
                    if (entity.getValue().kind.equals(kind)) {
                        close(entity.getKey());
                    }
                } catch (RuntimeException e) {
                    // Close the other entities anyway.
                }
            }
        }
        entities.clear();
    }
}
