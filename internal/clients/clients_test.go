// Package clients proves the embedded deployment with clients that no one here
// wrote: PyMongo, the Node driver and the public API of the Go driver. Each of
// them takes its steps against `utr serve` in a process of its own. Here each
// has settings that together cover topologies, TLS, authentication, and the
// oldest and the newest version; /soak/clients has every client in every setting.
//
// testkit says how PyMongo and the Node driver are found.
package clients

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

func TestMain(m *testing.M) { utrtest.Main(m) }

// everyClient is a variable that has every client run in every setting.
const everyClient = "UTR_TEST_EVERY_CLIENT"

// setting is one deployment to serve.
type setting struct {
	reason, topology, version, user string
	tls                             bool
	client                          string // that runs here; none but in the soak if empty
}

// settings are the deployments that every client has to get along with.
var settings = []setting{
	{"every topology as it comes", "single", "8.0", "", false, "PyMongo"},
	{"every topology as it comes", "replicaset", "8.0", "", false, ""},
	{"every topology as it comes", "sharded", "8.0", "", false, "PyMongo"},
	{"every topology as it comes", "load-balanced", "8.0", "", false, "Go"},
	{"SCRAM-SHA-256 alone", "single", "8.0", "ann", false, "Node"},
	{"SCRAM-SHA-256 on all members", "replicaset", "8.0", "ann", false, "PyMongo"},
	{"TLS alone", "replicaset", "8.0", "", true, "Go"},
	{"TLS and SCRAM-SHA-256 on all routers", "sharded", "8.0", "ann", true, "Go"},
	{"TLS and SCRAM-SHA-256 behind a load balancer", "load-balanced", "8.0", "ann", true, "Node"},
	{"the oldest version that the clients of today accept", "replicaset", "4.4", "", false, "Node"},
	{"the oldest version that the clients of today accept, with routers", "sharded", "4.4", "", false, ""},
	{"the newest version", "replicaset", "9.0", "", false, "PyMongo"},
	{"the newest version", "sharded", "9.0", "", false, "Node"},
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
	*utrtest.Server
	uri, single string // without the name of the certificate
}

// serve starts utr and waits until it is ready for clients.
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
	// Clients get the certificate apart, or not at all, to see that they need it.
	trusted := func(uri string) string {
		rest, found := strings.CutSuffix(uri, "&tlsCAFile="+server.CAFile)
		if found != s.tls {
			t.Errorf("does the connection string name the certificate? %v: %s", found, server.Printed)
		}
		return rest
	}
	return &served{s, server, trusted(server.URI), trusted(server.Single)}
}

// end sends a signal and expects the process to end well.
func (s *served) end(signal os.Signal) {
	s.Signal(signal)
	s.End().Want(0)
}

// fail sets failCommand on one server.
func (s *served) fail(t *testing.T, data ...bson.E) (struck func() bool) {
	t.Helper()
	client := s.connect(t, s.single)
	configure := func() int32 {
		var reply struct{ Count int32 }
		c := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D(data)}}
		testkit.Check(t, client.Database("admin").RunCommand(testkit.Context(t), c).Decode(&reply))
		return reply.Count
	}
	before := configure()
	return func() bool { return configure() > before } // setting it again says how often it has struck
}

// clientRows are the clients. Each takes the steps that are named, and gives
// what it printed: a line for each step, as judge reads them.
var clientRows = []struct {
	name  string
	steps []string
	do    func(t *testing.T, s *served, names []string) report
}{
	{"PyMongo", stepNames, pymongo},
	{"Node", stepNames, node},
	{"Go", goStepNames(), goDriver},
}

func TestClients(t *testing.T) {
	for _, client := range clientRows {
		for _, s := range settings {
			if s.client != client.name && os.Getenv(everyClient) == "" {
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

// A client fails, and at the step that needs it, when one command of a server
// is broken.
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
			if last := got.lines[len(got.lines)-1]; got.judge(s, steps) == nil || !strings.HasPrefix(last, "FAILED "+row.step+": ") {
				t.Errorf("%s fails always, and the client says %q", row.command, got.lines)
			}
		})
	}
}

// What goes over the wire is compressed, which no client says.
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
					t.Logf("not proved: %s is not installed for this client", name)
				} else if !spy.saw(0, id) || !spy.saw(1, id) {
					t.Errorf("%s: used in messages: %v, in replies: %v", name, spy.saw(0, id), spy.saw(1, id))
				}
			}
		})
	}
}

// A signal ends servers that clients are connected to, one of which waits for a
// blocked command.
func TestServeEnds(t *testing.T) {
	for topology, signal := range map[string]os.Signal{"replicaset": os.Interrupt, "load-balanced": syscall.SIGTERM} {
		t.Run(fmt.Sprintf("%s/%v", topology, signal), func(t *testing.T) {
			t.Parallel()
			s := serve(t, setting{topology: topology, version: "8.0"})
			struck := s.fail(t, bson.E{Key: "failCommands", Value: bson.A{"find"}}, bson.E{Key: "blockConnection", Value: true},
				bson.E{Key: "blockTimeMS", Value: 10 * testkit.Patience.Milliseconds()})
			collection := s.connect(t, s.single, noRetry).Database("ends").Collection("c")
			ctx, ended := testkit.Context(t), make(chan error, 1)
			go func() { ended <- collection.FindOne(ctx, bson.D{}).Err() }()
			testkit.Until(t, "the find is blocked", struck)
			s.end(signal)
			if err := testkit.Receive(t, "the end of the find", ended); err == nil {
				t.Error("a blocked find succeeded when the server stopped")
			}
		})
	}
}

// It serves on the ports that it is given, twice in a row.
func TestServeOnGivenPorts(t *testing.T) {
	t.Parallel()
	host := utrtest.Address(t)
	for range 2 {
		s := serve(t, setting{topology: "load-balanced", version: "8.0"}, "--host", host, "--port", strconv.Itoa(utrtest.Ports))
		testkit.Check(t, s.connect(t, s.uri).Ping(testkit.Context(t), nil))
		// The balancer in front of all routers comes after the two of them.
		balancer := net.JoinHostPort(host, strconv.Itoa(utrtest.Ports+2))
		testkit.Equal(t, "the balancer in front of all routers", utrtest.Hosts(s.uri)[0], balancer)
		s.end(syscall.SIGTERM)
	}
}
