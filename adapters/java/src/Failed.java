import java.util.Map;
import org.bson.BsonDocument;

/** An error with the fields of the protocol. */
final class Failed extends RuntimeException {
    private static final long serialVersionUID = 1;
    final transient Map<String, ?> failure;

    Failed(BsonDocument failure) {
        this(failure.getString("message").getValue(), failure);
    }

    private Failed(String message, Map<String, ?> failure) {
        super(message);
        this.failure = failure;
    }

    static Failed lacks(String what) {
        String message = "the Java driver or its adapter does not support " + what;
        return new Failed(message, Map.of("message", message, "client", true, "unsupported", what));
    }
}
