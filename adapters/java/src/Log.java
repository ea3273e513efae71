import com.mongodb.MongoInterruptedException;
import com.mongodb.connection.ClusterDescription;
import com.mongodb.connection.ConnectionDescription;
import com.mongodb.connection.ConnectionId;
import com.mongodb.connection.ServerDescription;
import com.mongodb.connection.ServerId;
import com.mongodb.event.ClusterClosedEvent;
import com.mongodb.event.ClusterDescriptionChangedEvent;
import com.mongodb.event.ClusterListener;
import com.mongodb.event.ClusterOpeningEvent;
import com.mongodb.event.CommandEvent;
import com.mongodb.event.CommandFailedEvent;
import com.mongodb.event.CommandListener;
import com.mongodb.event.CommandStartedEvent;
import com.mongodb.event.CommandSucceededEvent;
import com.mongodb.event.ConnectionCheckOutFailedEvent;
import com.mongodb.event.ConnectionCheckOutStartedEvent;
import com.mongodb.event.ConnectionCheckedInEvent;
import com.mongodb.event.ConnectionCheckedOutEvent;
import com.mongodb.event.ConnectionClosedEvent;
import com.mongodb.event.ConnectionCreatedEvent;
import com.mongodb.event.ConnectionPoolClearedEvent;
import com.mongodb.event.ConnectionPoolClosedEvent;
import com.mongodb.event.ConnectionPoolCreatedEvent;
import com.mongodb.event.ConnectionPoolListener;
import com.mongodb.event.ConnectionPoolReadyEvent;
import com.mongodb.event.ConnectionReadyEvent;
import com.mongodb.event.ServerDescriptionChangedEvent;
import com.mongodb.event.ServerHeartbeatFailedEvent;
import com.mongodb.event.ServerHeartbeatStartedEvent;
import com.mongodb.event.ServerHeartbeatSucceededEvent;
import com.mongodb.event.ServerListener;
import com.mongodb.event.ServerMonitorListener;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDocument;
import org.bson.BsonNumber;
import org.bson.RawBsonDocument;
import org.bson.codecs.BsonDocumentCodec;

/** The log of a client: command, CMAP and SDAM events in the order in which the driver publishes them. */
final class Log implements CommandListener, ConnectionPoolListener, ServerListener, ServerMonitorListener,
        ClusterListener {
    static final ThreadLocal<String> SERVER = new ThreadLocal<>(); // of the last command of this thread
    static final ThreadLocal<Boolean> HIDDEN = ThreadLocal.withInitial(() -> false); // commands of this thread

    final Spans spans = new Spans();
    private final List<Map<String, Object>> events = new ArrayList<>();
    private final CountDownLatch closed = new CountDownLatch(1);
    volatile boolean unacknowledged; // whether an unacknowledged write was sent

    synchronized List<Map<String, Object>> after(long sequence, long waitMS) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMS);
        for (long left = waitMS; events.size() <= sequence && left > 0;
                left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())) {
            wait(left);
        }
        return List.copyOf(events.subList((int) Math.min(sequence, events.size()), events.size()));
    }

    /** Adds an event with the fields that are not null. */
    private synchronized void add(String type, Object... fields) {
        if (closed.getCount() == 0) {
            return;
        }
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("sequence", events.size() + 1);
        event.put("type", type + "Event");
        event.put("time", System.currentTimeMillis());
        for (int i = 0; i < fields.length; i += 2) {
            if (fields[i + 1] != null) {
                event.put((String) fields[i], fields[i + 1]);
            }
        }
        events.add(event);
        if (type.equals("topologyClosed")) {
            closed.countDown();
        }
        notifyAll();
    }

    /** Waits up to ten seconds for the last event of a closed client. A thread of the driver publishes it. */
    void awaitClosed() {
        try {
            closed.await(10, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new MongoInterruptedException("while the client was closed", e);
        }
    }

    // Commands

    @Override
    public void commandStarted(CommandStartedEvent e) {
        BsonDocument command = copy(e.getCommand());
        if (command.get("writeConcern") instanceof BsonDocument concern && concern.get("w") instanceof BsonNumber w) {
            unacknowledged |= w.intValue() == 0;
        }
        command("Started", e, null, "command", command, command.isEmpty());
    }

    @Override
    public void commandSucceeded(CommandSucceededEvent e) {
        command("Succeeded", e, e.getElapsedTime(TimeUnit.MICROSECONDS), "reply", copy(e.getResponse()),
                e.getResponse().isEmpty());
    }

    @Override
    public void commandFailed(CommandFailedEvent e) {
        Map<String, Object> failure = Failures.describe(e.getThrowable());
        boolean redacted = failure.get("response") instanceof BsonDocument response && response.isEmpty();
        command("Failed", e, e.getElapsedTime(TimeUnit.MICROSECONDS), "failure", failure, redacted);
    }

    /** Copies a document. The original is valid only during the call of the listener. */
    static BsonDocument copy(BsonDocument document) {
        return new RawBsonDocument(document, new BsonDocumentCodec());
    }

    private void command(String phase, CommandEvent e, Long micros, String name, Object body, boolean redacted) {
        ConnectionDescription connection = e.getConnectionDescription();
        SERVER.set(connection.getServerAddress().toString());
        if (HIDDEN.get()) {
            return;
        }
        add("command" + phase, "address", SERVER.get(), "commandName", e.getCommandName(),
                "databaseName", e.getDatabaseName(), "requestId", e.getRequestId(), "operationId", e.getOperationId(),
                "driverConnectionId", connection.getConnectionId().toString(),
                "serverConnectionId", connection.getConnectionId().getServerValue(),
                "serviceId", connection.getServiceId(), "durationMS", micros == null ? null : micros / 1000.0,
                "redacted", redacted ? true : null, name, body);
    }

    // Pools

    private void connection(String type, ConnectionId id, String reason) {
        add("connection" + type, "address", id.getServerId().getAddress().toString(),
                "connectionId", id.getLocalValue(), "reason", reason);
    }

    private void pool(String type, ServerId id) {
        pool(type, id, "reason", null);
    }

    private void pool(String type, ServerId id, String name, Object value) {
        add(type, "address", id.getAddress().toString(), name, value);
    }

    @Override
    public void connectionPoolCreated(ConnectionPoolCreatedEvent e) {
        pool("poolCreated", e.getServerId());
    }

    @Override
    public void connectionPoolReady(ConnectionPoolReadyEvent e) {
        pool("poolReady", e.getServerId());
    }

    @Override
    public void connectionPoolCleared(ConnectionPoolClearedEvent e) {
        pool("poolCleared", e.getServerId(), "serviceId", e.getServiceId());
    }

    @Override
    public void connectionPoolClosed(ConnectionPoolClosedEvent e) {
        pool("poolClosed", e.getServerId());
    }

    @Override
    public void connectionCheckOutStarted(ConnectionCheckOutStartedEvent e) {
        pool("connectionCheckOutStarted", e.getServerId());
    }

    @Override
    public void connectionCheckOutFailed(ConnectionCheckOutFailedEvent e) {
        pool("connectionCheckOutFailed", e.getServerId(), "reason", Names.camel(e.getReason()));
    }

    @Override
    public void connectionCheckedOut(ConnectionCheckedOutEvent e) {
        connection("CheckedOut", e.getConnectionId(), null);
    }

    @Override
    public void connectionCheckedIn(ConnectionCheckedInEvent e) {
        connection("CheckedIn", e.getConnectionId(), null);
    }

    @Override
    public void connectionCreated(ConnectionCreatedEvent e) {
        connection("Created", e.getConnectionId(), null);
    }

    @Override
    public void connectionReady(ConnectionReadyEvent e) {
        connection("Ready", e.getConnectionId(), null);
    }

    @Override
    public void connectionClosed(ConnectionClosedEvent e) {
        connection("Closed", e.getConnectionId(), Names.camel(e.getReason()));
    }

    // The topology

    private void heartbeat(String phase, ConnectionId id, boolean awaited, Throwable error) {
        add("serverHeartbeat" + phase, "address", id.getServerId().getAddress().toString(), "awaited", awaited,
                "error", error == null ? null : error.toString());
    }

    @Override
    public void serverHearbeatStarted(ServerHeartbeatStartedEvent e) {
        heartbeat("Started", e.getConnectionId(), e.isAwaited(), null);
    }

    @Override
    public void serverHeartbeatSucceeded(ServerHeartbeatSucceededEvent e) {
        heartbeat("Succeeded", e.getConnectionId(), e.isAwaited(), null);
    }

    @Override
    public void serverHeartbeatFailed(ServerHeartbeatFailedEvent e) {
        heartbeat("Failed", e.getConnectionId(), e.isAwaited(), e.getThrowable());
    }

    @Override
    public void serverDescriptionChanged(ServerDescriptionChangedEvent e) {
        add("serverDescriptionChanged", "address", e.getServerId().getAddress().toString(),
                "previousDescription", Map.of("type", type(e.getPreviousDescription())),
                "newDescription", Map.of("type", type(e.getNewDescription())));
    }

    @Override
    public void clusterOpening(ClusterOpeningEvent e) {
        add("topologyOpening");
    }

    @Override
    public void clusterDescriptionChanged(ClusterDescriptionChangedEvent e) {
        add("topologyDescriptionChanged", "previousDescription", state(e.getPreviousDescription()),
                "newDescription", state(e.getNewDescription()));
    }

    @Override
    public void clusterClosed(ClusterClosedEvent e) {
        add("topologyClosed");
    }

    /** Converts a topology to the terms of the SDAM specification. */
    static Map<String, Object> state(ClusterDescription cluster) {
        List<Map<String, String>> servers = new ArrayList<>();
        boolean primary = false;
        for (ServerDescription server : cluster.getServerDescriptions()) {
            servers.add(Map.of("address", server.getAddress().toString(), "type", type(server)));
            primary |= server.isPrimary();
        }
        String type = switch (cluster.getConnectionMode()) {
            case SINGLE -> "Single";
            case LOAD_BALANCED -> "LoadBalanced";
            default -> switch (cluster.getType()) {
                case REPLICA_SET -> primary ? "ReplicaSetWithPrimary" : "ReplicaSetNoPrimary";
                case SHARDED -> "Sharded";
                case STANDALONE -> "Single";
                case LOAD_BALANCED -> "LoadBalanced";
                default -> "Unknown";
            };
        };
        return Map.of("type", type, "servers", servers);
    }

    private static String type(ServerDescription server) {
        return switch (server.getType()) {
            case STANDALONE -> "Standalone";
            case REPLICA_SET_PRIMARY -> "RSPrimary";
            case REPLICA_SET_SECONDARY -> "RSSecondary";
            case REPLICA_SET_ARBITER -> "RSArbiter";
            case REPLICA_SET_OTHER -> "RSOther";
            case REPLICA_SET_GHOST -> "RSGhost";
            case SHARD_ROUTER -> "Mongos";
            case LOAD_BALANCER -> "LoadBalancer";
            default -> "Unknown";
        };
    }
}
