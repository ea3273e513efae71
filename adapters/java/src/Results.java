import com.mongodb.bulk.BulkWriteInsert;
import com.mongodb.bulk.BulkWriteResult;
import com.mongodb.bulk.BulkWriteUpsert;
import com.mongodb.client.MongoIterable;
import com.mongodb.client.gridfs.model.GridFSFile;
import com.mongodb.client.model.bulk.ClientBulkWriteResult;
import com.mongodb.client.result.InsertManyResult;
import com.mongodb.client.result.UpdateResult;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.bson.BsonDateTime;
import org.bson.BsonDocument;
import org.bson.BsonDouble;
import org.bson.BsonInt32;
import org.bson.BsonInt64;
import org.bson.BsonObjectId;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.bson.types.ObjectId;

/** Converts results of the driver to results of the format. */
final class Results {
    private Results() {
    }

    static Object value(Object result) {
        if (result == null || result instanceof BsonValue || result instanceof String || result instanceof Boolean
                || result instanceof Map) {
            return result;
        } else if (result instanceof Long number) {
            return new BsonInt64(number);
        } else if (result instanceof Integer number) {
            return new BsonInt32(number);
        } else if (result instanceof Double number) {
            return new BsonDouble(number);
        } else if (result instanceof ObjectId id) {
            return new BsonObjectId(id);
        } else if (result instanceof Iterable<?> items) {
            List<Object> out = new ArrayList<>();
            for (Object item : result instanceof MongoIterable<?> i ? i.into(new ArrayList<>()) : items) {
                out.add(value(item));
            }
            return out;
        } else if (result instanceof GridFSFile file) {
            return file(file);
        }
        return written(result);
    }

    private static BsonDocument file(GridFSFile file) {
        BsonDocument out = new BsonDocument("_id", file.getId()).append("length", new BsonInt64(file.getLength()))
                .append("chunkSize", new BsonInt32(file.getChunkSize()))
                .append("uploadDate", new BsonDateTime(file.getUploadDate().getTime()))
                .append("filename", new BsonString(file.getFilename()));
        return file.getMetadata() == null ? out : out.append("metadata", file.getMetadata().toBsonDocument());
    }

    /** Converts the result of writes. Its properties have the names of the format. */
    private static Map<String, Object> written(Object result) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (Method method : result.getClass().getMethods()) {
            if (method.getName().matches("(was|is)Acknowledged") && get(result, method).equals(false)) {
                return Map.of("acknowledged", false);
            }
        }
        for (Method method : result.getClass().getMethods()) {
            String name = method.getName();
            if (!name.matches("get(Inserted|Matched|Modified|Deleted|Upsert|Inserts|Verbose|Insert|Update|Delete).*")) {
                continue;
            }
            Object value = get(result, method);
            value = value instanceof Optional<?> optional ? optional.orElse(null) : value;
            name = Character.toLowerCase(name.charAt(3)) + name.substring(4);
            if (value instanceof Map<?, ?> map) { // by index
                Map<Object, Object> items = new TreeMap<>();
                map.forEach((index, item) -> items.put(index, value(item)));
                out.put(name, items);
            } else if (value instanceof ClientBulkWriteResult.VerboseResults) {
                out.putAll(written(value));
            } else if (value != null && !(value instanceof List)) {
                out.put(name, value(value));
            }
        }
        if (result instanceof InsertManyResult many) {
            out.put("insertedCount", new BsonInt32(many.getInsertedIds().size()));
        } else if (result instanceof UpdateResult update) {
            out.put("upsertedCount", new BsonInt32(update.getUpsertedId() == null ? 0 : 1));
        } else if (result instanceof BulkWriteResult bulk) {
            Map<Object, Object> inserted = new TreeMap<>();
            for (BulkWriteInsert insert : bulk.getInserts()) {
                inserted.put(insert.getIndex(), insert.getId());
            }
            Map<Object, Object> upserted = new TreeMap<>();
            for (BulkWriteUpsert upsert : bulk.getUpserts()) {
                upserted.put(upsert.getIndex(), upsert.getId());
            }
            out.put("insertedIds", inserted);
            out.put("upsertedIds", upserted);
            out.put("upsertedCount", new BsonInt32(upserted.size()));
        }
        return out;
    }

    private static Object get(Object result, Method method) {
        try {
            method.setAccessible(true); // the class may be hidden behind its interface
            return method.invoke(result);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
