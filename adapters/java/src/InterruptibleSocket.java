import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.net.SocketOption;
import java.net.SocketOptions;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.Set;

/**
 * A socket whose reads and writes end when their thread is interrupted, like reads and writes of a channel. With plain
 * sockets the driver handles an interrupt only after the server has replied.
 */
final class InterruptibleSocket extends SocketImpl {
    private static final Map<Integer, SocketOption<?>> OPTIONS = Map.of(
            SocketOptions.TCP_NODELAY, StandardSocketOptions.TCP_NODELAY,
            SocketOptions.SO_KEEPALIVE, StandardSocketOptions.SO_KEEPALIVE,
            SocketOptions.SO_RCVBUF, StandardSocketOptions.SO_RCVBUF,
            SocketOptions.SO_SNDBUF, StandardSocketOptions.SO_SNDBUF,
            SocketOptions.SO_REUSEADDR, StandardSocketOptions.SO_REUSEADDR);

    private SocketChannel channel;
    private Socket socket; // of the channel

    @Override
    protected void create(boolean stream) throws IOException {
        channel = SocketChannel.open();
        socket = channel.socket();
    }

    @Override
    protected void connect(String host, int port) throws IOException {
        connect(new InetSocketAddress(host, port), 0);
    }

    @Override
    protected void connect(InetAddress to, int port) throws IOException {
        connect(new InetSocketAddress(to, port), 0);
    }

    @Override
    protected void connect(SocketAddress to, int timeout) throws IOException {
        socket.connect(to, timeout);
        address = socket.getInetAddress();
        port = socket.getPort();
        localport = socket.getLocalPort();
    }

    @Override
    protected void bind(InetAddress host, int port) throws IOException {
        socket.bind(new InetSocketAddress(host, port));
    }

    @Override
    protected void listen(int backlog) throws IOException {
        throw new SocketException("not a server socket");
    }

    @Override
    protected void accept(SocketImpl other) throws IOException {
        listen(0);
    }

    @Override
    protected InputStream getInputStream() throws IOException {
        return socket.getInputStream();
    }

    @Override
    protected OutputStream getOutputStream() throws IOException {
        return socket.getOutputStream();
    }

    @Override
    protected int available() throws IOException {
        return socket.getInputStream().available();
    }

    @Override
    protected void close() throws IOException {
        channel.close();
    }

    @Override
    protected void shutdownInput() throws IOException {
        channel.shutdownInput();
    }

    @Override
    protected void shutdownOutput() throws IOException {
        channel.shutdownOutput();
    }

    @Override
    protected void sendUrgentData(int data) throws IOException {
        throw new SocketException("urgent data is not supported");
    }

    @Override
    protected <T> void setOption(SocketOption<T> option, T value) throws IOException {
        channel.setOption(option, value);
    }

    @Override
    protected <T> T getOption(SocketOption<T> option) throws IOException {
        return channel.getOption(option);
    }

    @Override
    protected Set<SocketOption<?>> supportedOptions() {
        return channel.supportedOptions();
    }

    @Override
    @SuppressWarnings("unchecked") // options of sockets and channels have values of the same types
    public void setOption(int option, Object value) throws SocketException {
        try {
            if (option == SocketOptions.SO_TIMEOUT) {
                socket.setSoTimeout((Integer) value);
            } else if (OPTIONS.containsKey(option)) {
                channel.setOption((SocketOption<Object>) OPTIONS.get(option), value);
            }
        } catch (SocketException e) {
            throw e;
        } catch (IOException e) {
            throw (SocketException) new SocketException(e.getMessage()).initCause(e);
        }
    }

    @Override
    public Object getOption(int option) throws SocketException {
        try {
            return option == SocketOptions.SO_TIMEOUT ? (Object) socket.getSoTimeout()
                    : option == SocketOptions.SO_BINDADDR ? socket.getLocalAddress()
                    : channel.getOption(OPTIONS.get(option));
        } catch (SocketException e) {
            throw e;
        } catch (IOException e) {
            throw (SocketException) new SocketException(e.getMessage()).initCause(e);
        }
    }
}
