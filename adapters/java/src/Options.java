import com.mongodb.MongoNamespace;
import com.mongodb.ReadConcern;
import com.mongodb.ReadConcernLevel;
import com.mongodb.ReadPreference;
import com.mongodb.Tag;
import com.mongodb.TagSet;
import com.mongodb.TransactionOptions;
import com.mongodb.WriteConcern;
import com.mongodb.client.model.ChangeStreamPreAndPostImagesOptions;
import com.mongodb.client.model.ClusteredIndexOptions;
import com.mongodb.client.model.Collation;
import com.mongodb.client.model.CollationStrength;
import com.mongodb.client.model.IndexOptionDefaults;
import com.mongodb.client.model.TimeSeriesOptions;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.bson.BsonArray;
import org.bson.BsonBoolean;
import org.bson.BsonDocument;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.bson.Document;
import org.bson.types.ObjectId;

/** Calls methods of the driver with BSON values. It converts them to the types of the parameters. */
final class Options {
    /** Names in the format, and alternative names in the driver. */
    private static final Map<String, String> RENAMED = Map.ofEntries(
            Map.entry("2dsphereIndexVersion", "sphereVersion"),
            Map.entry("textIndexVersion", "textVersion"),
            Map.entry("allowPartialResults", "partial"),
            Map.entry("alternate", "collationAlternate"),
            Map.entry("authorizedDatabases", "authorizedDatabasesOnly"),
            Map.entry("bucketMaxSpanSeconds", "bucketMaxSpan"),
            Map.entry("bucketRoundingSeconds", "bucketRounding"),
            Map.entry("caseFirst", "collationCaseFirst"),
            Map.entry("causalConsistency", "causallyConsistent"),
            Map.entry("changeStreamPreAndPostImages", "changeStreamPreAndPostImagesOptions"),
            Map.entry("clusteredIndex", "clusteredIndexOptions"),
            Map.entry("expireAfterSeconds", "expireAfter"),
            Map.entry("finalize", "finalizeFunction"),
            Map.entry("hint", "hintString"),
            Map.entry("max", "maxDocuments"),
            Map.entry("maxVariable", "collationMaxVariable"),
            Map.entry("name", "driverName"),
            Map.entry("platform", "driverPlatform"),
            Map.entry("query", "filter"),
            Map.entry("size", "sizeInBytes"),
            Map.entry("storageEngine", "storageEngineOptions"),
            Map.entry("strength", "collationStrength"),
            Map.entry("timeseries", "timeSeriesOptions"),
            Map.entry("version", "driverVersion"));

    private static final Map<Class<?>, Function<BsonDocument, Object>> DOCUMENTS = Map.ofEntries(
            Map.entry(Collation.class, d -> set(Collation.builder(), d).build()),
            Map.entry(ReadConcern.class, Options::readConcern),
            Map.entry(WriteConcern.class, Options::writeConcern),
            Map.entry(ReadPreference.class, Options::readPreference),
            Map.entry(TransactionOptions.class, d -> set(TransactionOptions.builder(), d).build()),
            Map.entry(IndexOptionDefaults.class, d -> set(new IndexOptionDefaults(), d)),
            Map.entry(TimeSeriesOptions.class, d -> set(new TimeSeriesOptions(text(d, "timeField")), d)),
            Map.entry(ClusteredIndexOptions.class, d -> set(new ClusteredIndexOptions(
                    d.remove("key").asDocument(), d.remove("unique").asBoolean().getValue()), d)),
            Map.entry(ChangeStreamPreAndPostImagesOptions.class, d -> set(
                    new ChangeStreamPreAndPostImagesOptions(d.remove("enabled").asBoolean().getValue()), d)),
            Map.entry(Document.class, d -> Document.parse(d.toJson())),
            Map.entry(InputStream.class, d -> new ByteArrayInputStream(
                    HexFormat.of().parseHex(text(d, "$$hexBytes")))));

    private Options() {
    }

    private static String text(BsonDocument options, String name) {
        return options.remove(name).asString().getValue();
    }

    /** Sets options of an object. An option without a method is unsupported. */
    static <T> T set(T object, BsonDocument options) {
        for (Map.Entry<String, BsonValue> option : options.entrySet()) {
            object = set(object, option.getKey(), option.getValue());
        }
        return object;
    }

    @SuppressWarnings("unchecked") // methods of builders return the builder
    static <T> T set(T object, String name, BsonValue value) {
        String base = name.replaceFirst("MS$", "");
        List<String> names = new ArrayList<>(List.of(base, RENAMED.getOrDefault(name, base)));
        for (String n : List.copyOf(names)) {
            names.add("with" + Names.capital(n));
        }
        TimeUnit unit = name.endsWith("Seconds") ? TimeUnit.SECONDS : TimeUnit.MILLISECONDS;
        for (String n : names) {
            for (Method method : object.getClass().getMethods()) {
                Object[] arguments = !Names.same(method.getName(), n) || method.isBridge() ? null
                        : method.getParameterCount() == 2 ? fit(method, List.of(value, unit))
                        : fit(method, List.of(value));
                if (arguments != null) {
                    Object result = invoke(object, method, arguments);
                    return result == null ? object : (T) result;
                }
            }
        }
        throw Failed.lacks("option " + name + " of " + object.getClass().getSimpleName().replaceAll("Impl$", ""));
    }

    /** Calls the method with a name that accepts the arguments. */
    static Object call(Object object, String name, List<?> arguments) {
        for (Method method : object instanceof Class<?> c ? c.getMethods() : object.getClass().getMethods()) {
            Object[] fitting = method.getName().equals(name) && !method.isBridge() ? fit(method, arguments) : null;
            if (fitting != null) {
                Object result = invoke(object instanceof Class ? null : object, method, fitting);
                return method.getReturnType() == void.class ? Operations.NOTHING : result;
            }
        }
        throw new IllegalArgumentException("no method " + name + " accepts " + arguments);
    }

    static Object create(Class<?> type, List<?> arguments) {
        for (var constructor : type.getConstructors()) {
            Object[] fitting = fit(constructor, arguments);
            if (fitting != null) {
                try {
                    return constructor.newInstance(fitting);
                } catch (ReflectiveOperationException e) {
                    throw rethrown(e);
                }
            }
        }
        throw new IllegalArgumentException("no constructor of " + type.getSimpleName() + " accepts " + arguments);
    }

    /** Creates an instance of an options class, with its constructor or the static method of the same name. */
    static Object options(Class<?> type) {
        String name = type.getSimpleName();
        return type.isInterface() ? call(type, Character.toLowerCase(name.charAt(0)) + name.substring(1), List.of())
                : create(type, List.of());
    }

    private static Object invoke(Object object, Method method, Object[] arguments) {
        try {
            method.setAccessible(true); // the class may be hidden behind its interface
            return method.invoke(object, arguments);
        } catch (ReflectiveOperationException e) {
            throw rethrown(e);
        }
    }

    /** Returns the error of the driver. It is always unchecked. */
    private static RuntimeException rethrown(ReflectiveOperationException e) {
        if (e instanceof InvocationTargetException && e.getCause() instanceof Error error) {
            throw error;
        }
        return e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e);
    }

    /** Converts arguments to the parameter types of a method. Returns null if that is impossible. */
    private static Object[] fit(Executable method, List<?> arguments) {
        Class<?>[] types = method.getParameterTypes();
        Object[] out = new Object[types.length];
        if (types.length != arguments.size()) {
            return null;
        }
        for (int i = 0; i < types.length; i++) {
            Object argument = arguments.get(i);
            out[i] = argument instanceof BsonValue value ? fit(types[i], value)
                    : types[i] != Object.class && types[i].isInstance(argument) ? argument : null;
            if (out[i] == null) {
                return null;
            }
        }
        return out;
    }

    private static Object fit(Class<?> type, BsonValue value) {
        if (DOCUMENTS.containsKey(type)) {
            return value.isDocument() ? DOCUMENTS.get(type).apply(value.asDocument().clone()) : null;
        } else if (type.isInstance(value) && (type != Object.class || value.isDocument())) {
            return value;
        } else if (type == CollationStrength.class) {
            return value.isNumber() ? CollationStrength.fromInt(value.asNumber().intValue()) : null;
        } else if (type.isAssignableFrom(List.class) && value.isArray()) {
            return new ArrayList<>(value.asArray());
        } else if (value.isNumber()) {
            return type == int.class || type == Integer.class ? (Object) Math.toIntExact(value.asNumber().longValue())
                    : type == long.class || type == Long.class ? (Object) value.asNumber().longValue()
                    : type == Double.class ? value.asNumber().doubleValue() : null;
        } else if (value.isBoolean()) {
            return type == boolean.class || type == Boolean.class ? value.asBoolean().getValue() : null;
        } else if (value.isObjectId()) {
            return type == ObjectId.class ? value.asObjectId().getValue() : null;
        } else if (value.isJavaScript()) {
            return type == String.class ? value.asJavaScript().getCode() : null;
        } else if (value.isString()) {
            String text = value.asString().getValue();
            return type == String.class ? text : type == MongoNamespace.class ? new MongoNamespace(text)
                    : type.isEnum() ? Arrays.stream(type.getEnumConstants())
                            .filter(c -> Names.same(((Enum<?>) c).name(), text)).findFirst().orElse(null) : null;
        }
        return null;
    }

    private static ReadConcern readConcern(BsonDocument options) {
        rejectOthers("readConcern", options, "level");
        return options.isEmpty() ? ReadConcern.DEFAULT : new ReadConcern(ReadConcernLevel.fromString(
                options.getString("level").getValue()));
    }

    private static WriteConcern writeConcern(BsonDocument options) {
        rejectOthers("writeConcern", options, "w", "journal", "wtimeoutMS");
        BsonValue w = options.get("w");
        WriteConcern out = w == null ? WriteConcern.ACKNOWLEDGED : w.isString()
                ? new WriteConcern(w.asString().getValue()) : new WriteConcern(w.asNumber().intValue());
        out = options.get("journal") instanceof BsonBoolean journal ? out.withJournal(journal.getValue()) : out;
        return options.containsKey("wtimeoutMS")
                ? out.withWTimeout(options.getNumber("wtimeoutMS").longValue(), TimeUnit.MILLISECONDS) : out;
    }

    private static ReadPreference readPreference(BsonDocument options) {
        rejectOthers("readPreference", options, "mode", "tagSets", "maxStalenessSeconds");
        ReadPreference out = ReadPreference.valueOf(options.getString("mode", new BsonString("primary")).getValue());
        if (options.get("tagSets") instanceof BsonArray sets) {
            out = out.withTagSetList(sets.stream().map(set -> new TagSet(set.asDocument().entrySet().stream()
                    .map(tag -> new Tag(tag.getKey(), tag.getValue().asString().getValue())).toList())).toList());
        }
        return options.containsKey("maxStalenessSeconds") ? out.withMaxStalenessMS(
                options.getNumber("maxStalenessSeconds").longValue() * 1000, TimeUnit.MILLISECONDS) : out;
    }

    static void rejectOthers(String what, BsonDocument options, String... known) {
        for (String name : options.keySet()) {
            if (!List.of(known).contains(name)) {
                throw Failed.lacks("option " + name + " of " + what);
            }
        }
    }
}
