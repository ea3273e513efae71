import com.mongodb.ClientBulkWriteException;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoClientException;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoException;
import com.mongodb.MongoExecutionTimeoutException;
import com.mongodb.MongoOperationTimeoutException;
import com.mongodb.MongoSecurityException;
import com.mongodb.MongoServerException;
import com.mongodb.MongoSocketException;
import com.mongodb.MongoTimeoutException;
import com.mongodb.MongoWriteConcernException;
import com.mongodb.MongoWriteException;
import com.mongodb.WriteError;
import com.mongodb.bulk.BulkWriteError;
import com.mongodb.bulk.WriteConcernError;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.bson.BsonDocument;

/** Converts errors of the driver to errors of the protocol. */
final class Failures {
    /** The first matching class determines the kind. */
    private static final Map<Class<?>, String> KINDS = new LinkedHashMap<>();

    static {
        KINDS.put(MongoOperationTimeoutException.class, "timeout");
        KINDS.put(MongoBulkWriteException.class, "bulk write");
        KINDS.put(ClientBulkWriteException.class, "client bulk write");
        KINDS.put(MongoWriteException.class, "write");
        KINDS.put(MongoWriteConcernException.class, "write");
        KINDS.put(MongoServerException.class, "server");
        KINDS.put(MongoExecutionTimeoutException.class, "server");
        KINDS.put(MongoTimeoutException.class, "server selection");
        KINDS.put(MongoSocketException.class, "network");
        KINDS.put(MongoClientException.class, "client");
        KINDS.put(MongoException.class, "client");
        KINDS.put(Throwable.class, "argument");
    }

    private Failures() {
    }

    static Map<String, Object> describe(Throwable error) {
        if (error instanceof Failed failed) {
            return new LinkedHashMap<>(failed.failure);
        }
        Map<String, Object> out = new LinkedHashMap<>();
        boolean server = error instanceof MongoServerException || error instanceof MongoExecutionTimeoutException;
        if (error instanceof ClientBulkWriteException bulk) {
            clientBulkWrite(out, bulk);
        } else if (error instanceof MongoSecurityException && error.getCause() instanceof MongoCommandException cause) {
            out.putAll(describe(cause));
        } else {
            out.put("client", !server);
        }
        out.put("message", error.getMessage() == null ? error.toString() : error.getMessage());
        out.put("timeout", out.get("timeout") == Boolean.TRUE || error instanceof MongoOperationTimeoutException);
        out.putIfAbsent("kind", KINDS.entrySet().stream().filter(e -> e.getKey().isInstance(error)).findFirst()
                .orElseThrow().getValue());
        if (error instanceof MongoException e) {
            Set<String> labels = new TreeSet<>(e.getErrorLabels());
            if (out.get("labels") instanceof List<?> more) {
                more.forEach(label -> labels.add(label.toString()));
            }
            out.put("labels", List.copyOf(labels));
        }
        if (server && !(error instanceof ClientBulkWriteException)) {
            server(out, (MongoException) error);
        }
        return out;
    }

    /** Adds the fields of a server error. Write errors have no reply. */
    private static void server(Map<String, Object> out, MongoException error) {
        int code = error.getCode();
        if (error instanceof MongoServerException e) {
            if (e.getServerAddress() != null) {
                out.put("server", e.getServerAddress().toString());
            }
            if (e.getErrorCodeName() != null && !e.getErrorCodeName().isEmpty()) {
                out.put("codeName", e.getErrorCodeName());
            }
        }
        if (error instanceof MongoCommandException e) {
            out.put("response", Log.copy(e.getResponse()));
        } else if (error instanceof MongoWriteException e) {
            out.put("writeErrors", Map.of("0", write(e.getError())));
        } else if (error instanceof MongoWriteConcernException e) {
            out.put("writeConcernErrors", List.of(concern(e.getWriteConcernError())));
        } else if (error instanceof MongoBulkWriteException e) {
            Map<String, Object> writes = new TreeMap<>();
            for (BulkWriteError write : e.getWriteErrors()) {
                writes.put(String.valueOf(write.getIndex()), write(write));
            }
            WriteConcernError concern = e.getWriteConcernError();
            out.put("writeErrors", writes);
            out.put("writeConcernErrors", concern == null ? List.of() : List.of(concern(concern)));
            out.put("partial", Results.value(e.getWriteResult()));
            // The exception itself has no meaningful code.
            code = !e.getWriteErrors().isEmpty() ? e.getWriteErrors().get(0).getCode()
                    : concern != null ? concern.getCode() : code;
        }
        if (code > 0) {
            out.put("code", code);
        }
    }

    private static void clientBulkWrite(Map<String, Object> out, ClientBulkWriteException error) {
        out.put("client", false);
        if (error.getCause() != null) {
            out.putAll(describe(error.getCause()));
        }
        Map<String, Object> writes = new TreeMap<>();
        error.getWriteErrors().forEach((index, write) -> writes.put(index.toString(), write(write)));
        List<Object> concerns = new ArrayList<>();
        error.getWriteConcernErrors().forEach(concern -> concerns.add(concern(concern)));
        out.put("kind", "client bulk write");
        out.put("writeErrors", writes);
        out.put("writeConcernErrors", concerns);
        error.getPartialResult().ifPresent(partial -> out.put("partial", Results.value(partial)));
    }

    private static Map<String, Object> write(WriteError error) {
        return document(error.getCode(), error.getMessage(), error.getDetails());
    }

    private static Map<String, Object> concern(WriteConcernError error) {
        return document(error.getCode(), error.getMessage(), error.getDetails());
    }

    private static Map<String, Object> document(int code, String message, BsonDocument details) {
        return Map.of("code", code, "message", message, "details", details);
    }
}
