import com.mongodb.observability.ObservabilitySettings;
import io.micrometer.common.KeyValue;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.ObservationView;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.bson.BsonDocument;
import org.bson.BsonInt64;
import org.bson.BsonString;
import org.bson.BsonValue;

/** The spans of a client (observations in Micrometer), in the order in which they began. */
final class Spans implements ObservationHandler<Observation.Context> {
    /** Attributes that are integers in OpenTelemetry. Micrometer has only strings. */
    private static final Set<String> INTEGERS = Set.of("server.port", "db.mongodb.cursor_id",
            "db.mongodb.driver_connection_id", "db.mongodb.server_connection_id", "db.mongodb.txn_number");

    private final List<Observation.Context> begun = new ArrayList<>();

    ObservabilitySettings settings(boolean payload) {
        ObservationRegistry registry = ObservationRegistry.create();
        registry.observationConfig().observationHandler(this);
        return ObservabilitySettings.micrometerBuilder().observationRegistry(registry)
                .enableCommandPayloadTracing(payload).maxQueryTextLength(Integer.MAX_VALUE).build();
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
        return true;
    }

    @Override
    public synchronized void onStart(Observation.Context context) {
        if (!Log.HIDDEN.get()) {
            begun.add(context);
        }
    }

    synchronized List<Map<String, Object>> list() {
        List<Map<String, Object>> all = new ArrayList<>();
        for (Observation.Context context : begun) {
            ObservationView parent = context.getParentObservation();
            BsonDocument attributes = new BsonDocument();
            for (KeyValue attribute : context.getAllKeyValues()) {
                attributes.put(attribute.getKey(), value(attribute));
            }
            Map<String, Object> span = new LinkedHashMap<>();
            span.put("id", String.valueOf(begun.indexOf(context)));
            span.put("parent", parent == null ? "" : String.valueOf(begun.indexOf(parent.getContextView())));
            span.put("name", context.getContextualName());
            span.put("attributes", attributes);
            all.add(span);
        }
        return all;
    }

    private static BsonValue value(KeyValue attribute) {
        return INTEGERS.contains(attribute.getKey()) ? new BsonInt64(Long.parseLong(attribute.getValue()))
                : new BsonString(attribute.getValue());
    }
}
