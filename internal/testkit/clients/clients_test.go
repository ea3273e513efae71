// Package clients tests the embedded deployment with independent clients: PyMongo, the Node driver and the public API
// of the Go driver. Each client executes steps against `utr serve` in another process. The settings of all clients
// together cover topologies, TLS, authentication, and the oldest and the newest version. With UTR_SOAK=1, every client
// runs in every setting.
//
// Package testkit documents how PyMongo and the Node driver are found.
package clients

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m) }

type setting struct {
	reason, topology, version, user string
	tls                             bool
	client                          string // that runs without UTR_SOAK=1; "" if none
}

var settings = []setting{
	{"default", "single", "8.0", "", false, "PyMongo"},
	{"default", "replicaset", "8.0", "", false, ""},
	{"default", "sharded", "8.0", "", false, "PyMongo"},
	{"default", "load-balanced", "8.0", "", false, "Go"},
	{"SCRAM-SHA-256", "single", "8.0", "ann", false, "Node"},
	{"SCRAM-SHA-256", "replicaset", "8.0", "ann", false, "PyMongo"},
	{"TLS", "replicaset", "8.0", "", true, "Go"},
	{"TLS and SCRAM-SHA-256", "sharded", "8.0", "ann", true, "Go"},
	{"TLS and SCRAM-SHA-256", "load-balanced", "8.0", "ann", true, "Node"},
	{"oldest version that current clients support", "replicaset", "4.4", "", false, "Node"},
	{"oldest version that current clients support", "sharded", "4.4", "", false, ""},
	{"newest version", "replicaset", "9.0", "", false, "PyMongo"},
	{"newest version", "sharded", "9.0", "", false, "Node"},
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

// password contains characters that must be escaped in a connection string.
const password = "pass@word/1"

// served is a running `utr serve`.
type served struct {
	setting
	*utrtest.Server
	uri, single string // without tlsCAFile
}

// serve starts utr and waits until it accepts clients.
func serve(t *testing.T, s setting, more ...string) *served {
	t.Helper()
	args := append([]string{"--topology", s.topology, "--server-version", s.version}, more...)
	if s.user != "" {
		args = append(args, "--user", s.user)
	}
	if s.tls {
		args = append(args, "--tls")
	}
	server := utrtest.NewPlace(t, "UTR_PASSWORD="+password).Serve(args...)
	// Clients get the certificate separately, or not at all, to check that they require it.
	trusted := func(uri string) string {
		rest, found := strings.CutSuffix(uri, "&tlsCAFile="+server.CAFile)
		if found != s.tls {
			t.Errorf("tlsCAFile in the connection string: %v: %s", found, server.Printed)
		}
		return rest
	}
	return &served{s, server, trusted(server.URI), trusted(server.Single)}
}

func (s *served) end(signal os.Signal) {
	s.Signal(signal)
	s.End().Want(0)
}

// fail configures failCommand on one server. hit reports whether it was hit.
func (s *served) fail(t *testing.T, data ...bson.E) (hit func() bool) {
	t.Helper()
	client := s.connect(t, s.single)
	configure := func() int32 {
		var reply struct{ Count int32 }
		c := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
			{Key: "data", Value: bson.D(data)}}
		testkit.Check(t, client.Database("admin").RunCommand(testkit.Context(t), c).Decode(&reply))
		return reply.Count
	}
	before := configure()
	return func() bool { return configure() > before } // the reply contains the number of hits
}

// clientRows are the clients. Each executes the named steps and returns a line for each.
var clientRows = []struct {
	name  string
	steps []string
	do    func(t *testing.T, s *served, names []string) report
}{
	{"PyMongo", stepNames, pymongo},
	{"Node", stepNames, node},
	{"Go", slices.DeleteFunc(slices.Clone(stepNames), func(name string) bool { return goSteps[name] == nil }), goDriver},
}

func TestClients(t *testing.T) {
	for _, client := range clientRows {
		for _, s := range settings {
			if s.client != client.name && os.Getenv("UTR_SOAK") != "1" {
				continue
			}
			t.Run(client.name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				server := serve(t, s)
				got := client.do(t, server, client.steps)
				if err := got.judge(s, client.steps); err != nil {
					t.Errorf("%s: %v", s.reason, err)
				}
				server.end(os.Interrupt)
			})
		}
	}
}

// If a command fails, a client fails at the step that needs it.
func TestClientsNoticeFailures(t *testing.T) {
	for i, row := range []struct{ command, step string }{
		{"distinct", "countAndDistinct"},
		{"listIndexes", "indexes"},
		{"getMore", "getMore"},
	} {
		client := clientRows[i]
		t.Run(client.name+"/"+row.command, func(t *testing.T) {
			t.Parallel()
			s := setting{topology: "replicaset", version: "8.0"}
			server := serve(t, s)
			server.fail(t, bson.E{Key: "failCommands", Value: bson.A{row.command}}, bson.E{Key: "errorCode", Value: 1})
			steps := []string{"connects", row.step}
			got := client.do(t, server, steps)
			if last := got.lines[len(got.lines)-1]; got.judge(s, steps) == nil ||
				!strings.HasPrefix(last, "FAILED "+row.step+": ") {
				t.Errorf("%s always fails, but the client reported %q", row.command, got.lines)
			}
		})
	}
}

// Messages and replies are compressed. A proxy checks this, because clients do not report it.
func TestCompressionIsUsed(t *testing.T) {
	for _, client := range clientRows {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			s := setting{topology: "single", version: "8.0"}
			server := serve(t, s)
			host := utrtest.Hosts(server.uri)[0]
			spy := listen(t, host)
			server.uri = strings.Replace(server.uri, host, spy.address, 1)
			got := client.do(t, server, []string{"compressors"})
			testkit.Check(t, got.judge(s, []string{"compressors"}))
			for id, name := range compressorNames {
				if strings.Contains(got.lackingCompressors(), name) {
					t.Logf("not tested: %s is not installed for this client", name)
				} else if !spy.saw(0, id) || !spy.saw(1, id) {
					t.Errorf("%s: in messages: %v, in replies: %v", name, spy.saw(0, id), spy.saw(1, id))
				}
			}
		})
	}
}

// A signal ends a server with clients, even during a blocked command.
func TestServeEnds(t *testing.T) {
	for topology, signal := range map[string]os.Signal{"replicaset": os.Interrupt, "load-balanced": syscall.SIGTERM} {
		t.Run(fmt.Sprintf("%s/%v", topology, signal), func(t *testing.T) {
			t.Parallel()
			s := serve(t, setting{topology: topology, version: "8.0"})
			hit := s.fail(t, bson.E{Key: "failCommands", Value: bson.A{"find"}}, bson.E{Key: "blockConnection", Value: true},
				bson.E{Key: "blockTimeMS", Value: 10 * testkit.Patience.Milliseconds()})
			collection := s.connect(t, s.single,
				func(o *options.ClientOptions) { o.SetRetryReads(false) }).Database("ends").Collection("c")
			ctx, ended := testkit.Context(t), make(chan error, 1)
			go func() { ended <- collection.FindOne(ctx, bson.D{}).Err() }()
			testkit.Until(t, "the find is blocked", hit)
			s.end(signal)
			if err := testkit.Receive(t, "the end of the find", ended); err == nil {
				t.Error("the blocked find succeeded")
			}
		})
	}
}

// utr serve uses the given ports, twice in a row.
func TestServeOnGivenPorts(t *testing.T) {
	t.Parallel()
	host := utrtest.Address(t)
	for range 2 {
		s := serve(t, setting{topology: "load-balanced", version: "8.0"}, "--host", host, "--port",
			strconv.Itoa(utrtest.Ports))
		testkit.Check(t, s.connect(t, s.uri).Ping(testkit.Context(t), nil))
		balancer := net.JoinHostPort(host, strconv.Itoa(utrtest.Ports+2)) // after two mongoses
		testkit.Equal(t, "load balancer", utrtest.Hosts(s.uri)[0], balancer)
		s.end(syscall.SIGTERM)
	}
}
