import java.util.List;
import java.util.Map;
import org.bson.BsonBoolean;
import org.bson.BsonDocument;
import org.bson.BsonNull;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.bson.json.JsonMode;
import org.bson.json.JsonWriterSettings;

/** Writes messages: maps, lists and scalars as JSON, BSON as canonical Extended JSON. */
final class Json {
    private static final JsonWriterSettings CANONICAL =
            JsonWriterSettings.builder().outputMode(JsonMode.EXTENDED).build();

    private Json() {
    }

    static void write(StringBuilder out, Object value) {
        if (value instanceof BsonValue bson) {
            String text = new BsonDocument("v", bson).toJson(CANONICAL);
            out.append(text, text.indexOf(':') + 1, text.length() - 1);
        } else if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                write(out.append(separator), entry.getKey().toString());
                write(out.append(':'), entry.getValue());
                separator = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            String separator = "[";
            for (Object item : list) {
                write(out.append(separator), item);
                separator = ",";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else if (value instanceof Number) {
            out.append(value);
        } else if (value instanceof Boolean b) {
            write(out, BsonBoolean.valueOf(b));
        } else {
            write(out, value == null ? BsonNull.VALUE : new BsonString(value.toString()));
        }
    }
}
