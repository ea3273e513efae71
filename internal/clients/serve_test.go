package clients

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// setting is one deployment to serve.
type setting struct {
	reason, topology, version, user string
	tls                             bool
}

func (s setting) String() string {
	name := s.topology + "-" + s.version
	if s.user != "" {
		name += "-auth"
	}
	if s.tls {
		name += "-tls"
	}
	return name
}

// password of the user; what a connection string must escape is in it.
const password = "pass@word/1"

// served is a running `utr serve`.
type served struct {
	setting
	uri, single, caFile string
	process             *exec.Cmd
	output, errors      *printed
	ended               chan error
	clients             []*mongo.Client
}

// serve starts utr and waits until it is ready for clients.
func serve(t *testing.T, s setting, more ...string) *served {
	t.Helper()
	folder := t.TempDir()
	uriFile := filepath.Join(folder, "uri")
	args := []string{"serve", "--topology", s.topology, "--server-version", s.version, "--uri-file", uriFile}
	server := &served{setting: s, output: &printed{}, errors: &printed{}, ended: make(chan error, 1)}
	if s.user != "" {
		args = append(args, "--user", s.user)
	}
	if s.tls {
		server.caFile = filepath.Join(folder, "ca.pem")
		args = append(args, "--tls", "--ca-file", server.caFile)
	}
	server.process = exec.Command(command, append(args, more...)...)
	server.process.Env = append(os.Environ(), "UTR_PASSWORD="+password)
	// What it prints comes over two pipes, in any order.
	ready, uris := server.errors.await(1), server.output.await(1)
	if s.topology == "sharded" || s.topology == "load-balanced" {
		uris = server.output.await(2)
	}
	server.process.Stdout, server.process.Stderr = server.output, server.errors
	if err := server.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { server.ended <- server.process.Wait() }()
	t.Cleanup(func() { _ = server.process.Process.Kill() })
	late := time.After(patience)
	for _, wait := range []<-chan struct{}{ready, uris} {
		select {
		case <-wait:
		case err := <-server.ended:
			t.Fatalf("utr serve ended with %v\n%s", err, server.errors)
		case <-late:
			t.Fatalf("utr serve was not ready within %s\n%s%s", patience, server.output, server.errors)
		}
	}
	text, err := os.ReadFile(uriFile)
	if err != nil {
		t.Fatal(err)
	}
	server.uri = strings.TrimSpace(string(text))
	server.single = server.trusted(t, server.singleURI(t))
	server.uri = server.trusted(t, server.uri)
	for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
		if s.user != "" && strings.Contains(server.output.String()+server.errors.String(), form) {
			t.Errorf("the password is printed: %s%s", server.output, server.errors)
		}
	}
	return server
}

// trusted takes the certificate out of a connection string: clients get it
// apart, or not at all, to see that they need it.
func (s *served) trusted(t *testing.T, uri string) string {
	t.Helper()
	if !s.tls {
		return uri
	}
	rest, found := strings.CutSuffix(uri, "&tlsCAFile="+s.caFile)
	if !found {
		t.Errorf("the connection string does not name the certificate: %s", s.output)
	}
	return rest
}

// singleURI reads the line "single" of the output, and puts the user in that it
// hides.
func (s *served) singleURI(t *testing.T) string {
	t.Helper()
	for scanner := bufio.NewScanner(strings.NewReader(s.output.String())); scanner.Scan(); {
		single, ok := strings.CutPrefix(scanner.Text(), "single ")
		if !ok {
			continue
		}
		if s.user != "" {
			_, after, _ := strings.Cut(single, "@")
			single = "mongodb://" + url.UserPassword(s.user, password).String() + "@" + after
		}
		return single
	}
	return s.uri
}

// hosts are the addresses in both connection strings.
func (s *served) hosts() []string {
	var hosts []string
	for _, uri := range []string{s.uri, s.single} {
		u := strings.TrimPrefix(uri, "mongodb://")
		u, _, _ = strings.Cut(u, "/?")
		u = strings.TrimSuffix(u[strings.LastIndex(u, "@")+1:], "/")
		hosts = append(hosts, strings.Split(u, ",")...)
	}
	return hosts
}

// stop sends a signal, and wants the process to end well and to leave its
// ports.
func (s *served) stop(t *testing.T, signal os.Signal) {
	t.Helper()
	begin := time.Now()
	if err := s.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("utr serve did not end within %s of %v\n%s", patience, signal, s.errors)
	}
	if code := s.process.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after %v: exit code %d\n%s", signal, code, s.errors)
	}
	if took := time.Since(begin); took > patience/4 {
		t.Errorf("it took %s to stop", took)
	}
	for _, host := range s.hosts() {
		if err := free(host); err != nil {
			t.Errorf("after %v: %v", signal, err)
		}
	}
}

// free says whether one can listen on an address.
func free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// breakCommand makes a command fail on the server for good.
func (s *served) breakCommand(t *testing.T, name string) {
	t.Helper()
	client := s.connect(t, s.single)
	result := client.Database("admin").RunCommand(deadline(t), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{name}}, {Key: "errorCode", Value: 1}}},
	})
	if err := result.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestServeFreesItsPorts stops servers that clients are connected to: one
// watches, one waits for a blocked command.
func TestServeFreesItsPorts(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		for _, topology := range []string{"single", "replicaset", "sharded", "load-balanced"} {
			t.Run(fmt.Sprintf("%s/%v", topology, signal), func(t *testing.T) {
				t.Parallel()
				s := serve(t, setting{topology: topology, version: "8.0"})
				ctx := deadline(t)
				client := s.connect(t, s.single)
				collection := client.Database("ports").Collection("c")
				if _, err := collection.InsertOne(ctx, bson.D{}); err != nil {
					t.Fatal(err)
				}
				blocked := commandOf(t, client, s, "failCommand", bson.D{
					{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 10 * 60 * 1000},
				})
				ended := make(chan error, 1)
				go func() { ended <- collection.FindOne(ctx, bson.D{}).Err() }()
				blocked(t, ended)
				s.stop(t, signal)
				select {
				case err := <-ended:
					if err == nil {
						t.Error("a blocked find succeeded when the server stopped")
					}
				case <-time.After(patience):
					t.Errorf("a blocked find has not ended %s after the server", patience)
				}
			})
		}
	}
}

// commandOf sets a fail point, and gives a function that waits until it has
// struck.
func commandOf(t *testing.T, client *mongo.Client, s *served, name string, data bson.D) func(*testing.T, <-chan error) {
	t.Helper()
	configure := func(mode string, data bson.D) (int32, error) {
		var reply struct{ Count int32 }
		c := bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: mode}, {Key: "data", Value: data}}
		err := client.Database("admin").RunCommand(deadline(t), c).Decode(&reply)
		return reply.Count, err
	}
	before, err := configure("alwaysOn", data)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, ended <-chan error) {
		t.Helper()
		// Setting it again tells how often it has struck.
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			now, err := configure("alwaysOn", data)
			if err != nil {
				t.Fatal(err)
			}
			if now > before {
				return
			}
			select {
			case err := <-ended:
				t.Fatalf("%s: %s has not struck, and the command ended with %v", s, name, err)
			default:
			}
			if time.Now().After(end) {
				t.Fatalf("%s: no %s within %s", s, name, patience)
			}
		}
	}
}

// TestServeOnGivenPorts serves where it was told to, twice in a row.
func TestServeOnGivenPorts(t *testing.T) {
	const servers = 4 // two routers and two balancers
	base := freeRange(t, servers)
	for range 2 {
		s := serve(t, setting{topology: "load-balanced", version: "8.0"}, "--port", strconv.Itoa(base))
		client := s.connect(t, s.uri)
		if err := client.Ping(deadline(t), nil); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("127.0.0.1:%d", base+2); s.hosts()[0] != want {
			t.Errorf("the balancer in front of all routers is at %s, want %s", s.hosts()[0], want)
		}
		s.stop(t, syscall.SIGTERM)
		for n := range servers {
			if err := free(fmt.Sprintf("127.0.0.1:%d", base+n)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestServeSaysThatAPortIsTaken wants an error with the port, and not exit 0.
func TestServeSaysThatAPortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	var out bytes.Buffer
	c := exec.Command(command, "serve", "--topology", "single", "--port", port)
	c.Stdout, c.Stderr = io.Discard, &out
	if err := c.Run(); err == nil {
		t.Error("it ended with exit code 0")
	}
	if !strings.Contains(out.String(), port) {
		t.Errorf("the message does not name port %s: %s", port, out.String())
	}
}

// freeRange finds consecutive ports that no one listens on, below those that
// the system hands out.
func freeRange(t *testing.T, n int) int {
	t.Helper()
search:
	for base := 20000 + os.Getpid()%5000; base < 32000; base += n {
		for i := range n {
			if free(fmt.Sprintf("127.0.0.1:%d", base+i)) != nil {
				continue search
			}
		}
		return base
	}
	t.Fatalf("no %d consecutive free ports", n)
	return 0
}
