import com.mongodb.MongoInterruptedException;
import com.mongodb.internal.build.MongoDriverVersion;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.bson.BsonDocument;
import org.bson.BsonInt32;
import org.bson.BsonInt64;
import org.bson.BsonValue;

/**
 * An adapter of utr for the Java driver: JSON-RPC 2.0 messages, one per line, on standard input and output.
 * docs/driver/engine-protocol.md describes the messages. Every open request has a thread of its own.
 */
public final class Adapter {
    private interface Work {
        Object run() throws Exception;
    }

    private final OutputStream out = new FileOutputStream(FileDescriptor.out);
    private final ExecutorService workers = Executors.newCachedThreadPool(); // reuses its threads for later requests
    private final Map<Long, Optional<Thread>> threads = new HashMap<>(); // by open request; empty until it begins
    private final Set<Long> canceled = ConcurrentHashMap.newKeySet();
    private final Map<Integer, BlockingQueue<BsonDocument>> replies = new ConcurrentHashMap<>(); // to callback, by id
    private final AtomicInteger callbacks = new AtomicInteger();
    private final Map<Long, Entities> tests = new ConcurrentHashMap<>(); // open ones, by number

    @SuppressWarnings("deprecation") // only other code in the process would be affected
    public static void main(String[] args) throws IOException {
        Socket.setSocketImplFactory(InterruptibleSocket::new);
        new Adapter().serve();
        System.exit(0);
    }

    private void serve() throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            BsonDocument message = BsonDocument.parse(line);
            if (!message.containsKey("method")) {
                replies.remove(message.getNumber("id").intValue()).add(message);
            } else if (message.getString("method").getValue().equals("cancel")) {
                cancel(message.getDocument("params").getNumber("id").longValue());
            } else {
                long id = message.getNumber("id").longValue();
                occupy(id, Optional.empty());
                workers.execute(() -> answer(id, message));
            }
        }
    }

    private synchronized void occupy(long id, Optional<Thread> thread) {
        threads.put(id, thread);
        if (canceled.contains(id)) {
            thread.ifPresent(Thread::interrupt);
        }
    }

    private synchronized void cancel(long id) {
        if (threads.containsKey(id)) {
            canceled.add(id);
            threads.get(id).ifPresent(Thread::interrupt);
        }
    }

    private synchronized void release(long id) {
        threads.remove(id);
        canceled.remove(id);
        Thread.interrupted(); // clears a late cancellation
    }

    private void answer(long id, BsonDocument message) {
        String method = message.getString("method").getValue();
        BsonDocument params = message.getDocument("params", new BsonDocument());
        Map<String, Object> reply = new LinkedHashMap<>(Map.of("jsonrpc", "2.0", "id", id));
        occupy(id, Optional.of(Thread.currentThread()));
        try {
            reply.put("result", call(id, method, params));
        } catch (Exception e) { // the call could not be performed
            reply.put("error", Map.of("code", e instanceof NoSuchMethodException ? -32601 : -32603,
                    "message", e.toString()));
        }
        release(id);
        send(reply);
    }

    private Object call(long id, String method, BsonDocument params) throws Exception {
        long number = params.getNumber("test", new BsonInt64(0)).longValue();
        Entities test = tests.get(number);
        switch (method) {
            case "hello":
                return Map.of("protocol", 1, "name", "java", "version", MongoDriverVersion.VERSION,
                        "schemaVersion", "1.28", "operations", List.copyOf(Operations.TABLE.keySet()),
                        "lacks", Operations.LACKS, "features", List.of("reduced heartbeats", "tracing"),
                        "concurrentTests", 16);
            case "begin":
                tests.put(number, new Entities());
                return Map.of();
            case "open":
                return outcome(test, id, () -> {
                    test.open(params);
                    return Operations.NOTHING;
                });
            case "do":
                Log.SERVER.remove();
                Map<String, Object> done = outcome(test, id,
                        () -> Operations.perform(test, params, () -> callback(test, id)));
                if (Log.SERVER.get() != null) {
                    done.put("server", Log.SERVER.get());
                }
                return done;
            case "events":
                return Map.of("events", test.get(text(params, "client")).log()
                        .after(params.getNumber("after").longValue(), params.getNumber("waitMS").longValue()));
            case "spans":
                return Map.of("spans", test.get(text(params, "client")).log().spans.list());
            case "close":
                return outcome(test, id, () -> {
                    test.close(text(params, "id"));
                    return Operations.NOTHING;
                });
            case "end":
                tests.remove(number).end();
                return Map.of();
            default:
                throw new NoSuchMethodException("unknown call " + method);
        }
    }

    static String text(BsonDocument params, String name) {
        return params.getString(name).getValue();
    }

    /** Performs a call. An error of the driver is part of its result. */
    private Map<String, Object> outcome(Entities test, long id, Work work) {
        Map<String, Object> outcome = new LinkedHashMap<>();
        try {
            Object value = work.run();
            if (value != Operations.NOTHING) {
                outcome.put("value", value);
            }
        } catch (Exception e) {
            test.raised.put(id, e);
            boolean wasCanceled = e instanceof MongoInterruptedException || canceled.contains(id);
            outcome.put("error", wasCanceled
                    ? Map.of("message", "the operation was canceled: " + e.getMessage(), "client", true,
                            "kind", "canceled")
                    : Failures.describe(e));
        }
        return outcome;
    }

    /** Makes utr perform the operations of withTransaction, and throws their error. */
    private Object callback(Entities test, long request) {
        BlockingQueue<BsonDocument> replied = new LinkedBlockingQueue<>();
        int id = callbacks.incrementAndGet();
        replies.put(id, replied);
        send(Map.of("jsonrpc", "2.0", "id", id, "method", "callback", "params", Map.of("do", request)));
        BsonDocument result;
        try {
            result = replied.take().getDocument("result", new BsonDocument());
        } catch (InterruptedException e) {
            throw new MongoInterruptedException("in the callback", e);
        }
        BsonValue source = result.get("raisedBy", new BsonInt32(0));
        if (test.raised.get(source.asNumber().longValue()) instanceof RuntimeException error) {
            throw error;
        }
        if (result.containsKey("error")) {
            throw new Failed(result.getDocument("error"));
        }
        return null;
    }

    private void send(Map<String, ?> message) {
        StringBuilder text = new StringBuilder();
        Json.write(text, message);
        byte[] line = text.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        synchronized (out) {
            try {
                out.write(line);
            } catch (IOException e) { // utr has ended
                System.exit(1);
            }
        }
    }
}
