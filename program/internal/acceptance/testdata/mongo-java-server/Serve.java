import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** Starts mongo-java-server, which has no program of its own, and prints its connection string. */
public class Serve {
    public static void main(String[] arguments) {
        System.err.println("listens at " + new MongoServer(new MemoryBackend()).bindAndGetConnectionString());
    }
}
