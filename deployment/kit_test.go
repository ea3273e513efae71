package deployment

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// envMongod makes this test binary act as a mongod: a standalone.
const envMongod = "UTR_TEST_MONGOD"

func TestMain(m *testing.M) {
	if os.Getenv(envMongod) != "" {
		port, _ := strconv.Atoi(os.Args[slices.Index(os.Args, "--port")+1])
		if _, err := embedded.Start(context.Background(), embedded.Options{Ports: []int{port}, Version: "8.0"}); err != nil {
			fmt.Println(err)
			os.Exit(48)
		}
		select {} // until it is killed
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most parallel tests only wait
	goleak.VerifyTestMain(m)
}

// document parses extended JSON. An empty text is an empty document.
func document[D bson.D | bson.Raw](t testing.TB, text string) (doc D) {
	t.Helper()
	if text != "" {
		doc = testkit.Extended[D](t, text)
	}
	return doc
}

// stories runs the stories of a file in testdata. A story has a line with its name, optionally one with its setting,
// and its steps.
func stories(t *testing.T, name string, play func(t *testing.T, setting, steps string)) {
	t.Helper()
	text := testkit.Read(t, "testdata/"+name+".txt")
	for story := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		reason, steps, _ := strings.Cut(story, "\n")
		setting, found := strings.CutPrefix(steps, "- ")
		if found {
			setting, steps, _ = strings.Cut(setting, "\n")
		}
		fill := strings.NewReplacer("SECRET", testkit.Secret, `\n`, "\n", "\n", ";")
		t.Run(strings.TrimPrefix(reason, "# "), func(t *testing.T) { play(t, fill.Replace(setting), fill.Replace(steps)) })
	}
}

// notes collects messages.
type notes struct{ testkit.Buffer }

func (n *notes) add(line string) { _, _ = n.Write([]byte(line + "\n")) }

// serve starts an embedded deployment that the test treats as an existing one.
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

// runOn runs a command on the server that a connection string selects, with a separate client.
func runOn(t testing.TB, u uri, database string, command bson.D) bson.Raw {
	t.Helper()
	c, err := mongo.Connect(u.client("another client"))
	testkit.Check(t, err)
	defer func() { _ = c.Disconnect(context.Background()) }()
	o := options.RunCmd().SetReadPreference(readpref.Nearest())
	reply, err := c.Database(database).RunCommand(testkit.Context(t), command, o).Raw()
	testkit.Check(t, err)
	return reply
}

// usable checks that a server is reachable with each connection string of a deployment, except with the strings of single
// hosts behind a load balancer.
func usable(t testing.TB, api string, d Deployment) {
	t.Helper()
	texts := []string{d.URI(), d.SingleURI()}
	for _, h := range d.Description().Hosts {
		if !d.Owned() || d.Description().Topology != LoadBalanced {
			texts = append(texts, d.DirectURI(h))
		}
	}
	for _, text := range texts {
		u := parsed(t, text)
		u.api = api
		runOn(t, u, "admin", bson.D{{Key: "ping", Value: 1}})
	}
}

func files(t testing.TB, folder, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	testkit.Check(t, err)
	return found
}

// lines counts the lines of a file, 0 if it does not exist.
func lines(path string) int {
	text, _ := os.ReadFile(path)
	return strings.Count(string(text), "\n")
}

// listening accepts one connection, closes called, and never answers.
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
