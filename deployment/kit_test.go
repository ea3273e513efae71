package deployment

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/secret"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most parallel tests wait
	goleak.VerifyTestMain(m)
}

var users = []embedded.User{{Name: "u", Password: testkit.Secret}}

// notes collects lines for people.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

// serve starts an embedded deployment that the test takes for somebody else's.
func serve(t testing.TB, o embedded.Options) *embedded.Deployment {
	t.Helper()
	d, err := embedded.Start(t.Context(), o)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func parsed(t testing.TB, text string) uri {
	t.Helper()
	u, err := parseURI(text)
	testkit.Check(t, err)
	return u
}

// opened gives a source that the end of the test closes.
func opened[S Source](t testing.TB) func(s S, err error) S {
	return func(s S, err error) S {
		t.Helper()
		testkit.Check(t, err)
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
}

// borrow gives a deployment of the first offer.
func borrow(t testing.TB, s Source) Deployment {
	t.Helper()
	d, err := s.Acquire(testkit.Context(t), 0)
	testkit.Check(t, err)
	return d
}

func offerNames(s Source) string {
	var names []string
	for _, o := range s.Offers() {
		names = append(names, o.Name)
	}
	return strings.Join(names, ", ")
}

// client is a client of somebody who has nothing to do with the run. It is gone
// before its server may be.
func client(t testing.TB, u uri, do func(*mongo.Client) error) error {
	t.Helper()
	c, err := mongo.Connect(u.client("somebody"))
	testkit.Check(t, err)
	return errors.Join(do(c), c.Disconnect(context.Background()))
}

// runOn runs a command on whichever server a connection string leads to.
func runOn(t testing.TB, u uri, command bson.D) (reply bson.Raw, err error) {
	t.Helper()
	err = client(t, u, func(c *mongo.Client) error {
		reply, err = c.Database("admin").RunCommand(testkit.Context(t), command, options.RunCmd().SetReadPreference(readpref.Nearest())).Raw()
		return err
	})
	return reply, err
}

// reaches reports connection strings through which nothing answers.
func reaches(t testing.TB, api string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		u := parsed(t, text)
		u.api = api
		if _, err := runOn(t, u, bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Errorf("%s: %v", secret.Hide(text), err)
		}
	}
}

// usable reports which of a deployment's connection strings lead nowhere. Those of
// single hosts do behind a load balancer.
func usable(t testing.TB, api string, d Deployment) {
	t.Helper()
	reaches(t, api, d.URI(), d.SingleURI())
	for _, h := range d.Description().Hosts {
		if _, own := d.(*cluster); own || d.Description().Topology != LoadBalanced {
			reaches(t, api, d.DirectURI(h))
		}
	}
}

// openCluster looks at a cluster within the test's patience.
func openCluster(t testing.TB, o ClusterOptions) Source {
	t.Helper()
	return opened[Source](t)(OpenCluster(testkit.Context(t), o))
}

// arm sets failCommand, as a run that was killed leaves it.
func arm(t testing.TB, text string, mode any, commands string, more ...bson.E) {
	t.Helper()
	data := append(bson.D{{Key: "failCommands", Value: strings.Fields(commands)}}, more...)
	_, err := runOn(t, parsed(t, text),
		bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data}})
	testkit.Check(t, err)
}

// files lists what a pattern below a folder matches.
func files(t testing.TB, folder, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	testkit.Check(t, err)
	return found
}

// lines counts the lines of a file, 0 if it is absent.
func lines(path string) int {
	text, _ := os.ReadFile(path)
	return strings.Count(string(text), "\n")
}

// listening accepts one connection, says so, and never answers.
func listening(t *testing.T) (address string, called <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	calls := make(chan struct{})
	go func() {
		if conn, err := l.Accept(); err == nil {
			close(calls)
			<-t.Context().Done()
			_ = conn.Close()
		}
	}()
	return l.Addr().String(), calls
}
