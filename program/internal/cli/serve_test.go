package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
)

type server struct{ close func() error }

func (server) URI() string       { return "mongodb://user:hunter2@h:1,h:2/?replicaSet=rs" }
func (server) SingleURI() string { return "mongodb://user:hunter2@h:1/" }
func (server) CA() []byte        { return []byte("certificate") }
func (s server) Close() error    { return s.close() }

func TestServe(t *testing.T) {
	b := newBench(t)
	b.ctx = canceled(b.ctx)
	closed, asked := false, embedded.Options{}
	var failure error
	b.Serve = func(_ context.Context, o embedded.Options) (Server, error) {
		asked = o
		return server{func() error { closed = true; return failure }}, nil
	}
	dir := t.TempDir()
	ca, named := filepath.Join(dir, "a ca&100%.pem"), "tlsCAFile="+dir+"/a%20ca%26100%25.pem"
	b.expect(t, "everything", envPassword+
		"=hunter2 serve --topology load-balanced --port 27017 --user user --server-version 6.0 --tls --ca-file '"+ca+
		"' --uri-file uri --set-parameter quiet=true --set-parameter logLevel=2 --set-parameter saslHostName=h=1 "+
		`--set-parameter 'ingressRequestRateLimiterApplicationExemptions={"appNames": ["a"]}'`, 0, "ready after")
	testkit.Equal(t, "printed", b.out.String(),
		"mongodb://***@h:1,h:2/?replicaSet=rs&"+named+"\nsingle mongodb://***@h:1/?"+named+"\n")
	lacks(t, "standard error", b.err.String(), "hunter2")
	testkit.Equal(t, "closed", closed, true)
	want := embedded.Options{Topology: embedded.LoadBalanced, Version: "6.0", Members: 3, Mongoses: 2,
		Host: "127.0.0.1", TLS: true,
		Users: []embedded.User{{Name: "user", Password: "hunter2"}}, Ports: []int{27017, 27018, 27019, 27020},
		Parameters: bson.D{{Key: "quiet", Value: true}, {Key: "logLevel", Value: int32(2)},
			{Key: "saslHostName", Value: "h=1"},
			{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"a"}}}}}}
	testkit.Same(t, "options", asked, want)
	for path, text := range map[string]string{ca: "certificate", "uri": server{}.URI() + "&" + named + "\n"} {
		info, err := os.Stat(path)
		testkit.Check(t, err)
		testkit.Equal(t, path, fmt.Sprint(info.Mode(), testkit.Read(t, path)), "-rw-------"+text)
	}
	for line, warned := range map[string]bool{"serve": false, "serve --tls": true, "serve --tls --ca-file ca": false} {
		b.expect(t, line, line, 0, "")
		testkit.Equal(t, line+" warns that clients lack the certificate",
			says(b.err.String(), "--ca-file FILE writes it"), warned)
	}
	b.expect(t, "the certificate cannot be written", "serve --tls --ca-file nowhere/ca", ExitBroken,
		"cannot write a file for clients")
	failure = errors.New("stuck")
	b.expect(t, "the deployment does not stop", "serve", ExitBroken, "stopping the deployment: stuck")
	b.Serve, b.ctx = New().Serve, testkit.Context(t)
	for _, parameter := range []string{"ingressRequestRateLimiterEnabled=true", "requireApiVersion"} {
		// not in 8.0; without a value
		b.expect(t, parameter, "serve --topology single --server-version 8.0 --set-parameter "+parameter, ExitUsage, "")
	}
}

// Without a command, another application connects.
func TestPipeWaits(t *testing.T) {
	b := newBench(t)
	write(t, "ping.yml", "steps: [{expect: {ping: 1}, reply: {}}]")
	out, in := io.Pipe()
	b.Stdout = in
	code := make(chan int, 1)
	go func() { code <- b.Main(context.Background(), []string{"pipe", "ping.yml"}) }()
	uri := make([]byte, 100)
	n, err := out.Read(uri)
	testkit.Check(t, err)
	client, err := mongo.Connect(options.Client().ApplyURI(strings.TrimSpace(string(uri[:n]))))
	testkit.Check(t, err)
	testkit.Check(t, client.Database("admin").RunCommand(testkit.Context(t), bson.D{{Key: "ping", Value: 1}}).Err())
	testkit.Equal(t, "the exit code", testkit.Receive(t, "the command ends", code), 0)
	testkit.Equal(t, "the messages", b.err.String(), "ping.yml:1:18: ping: reply\n")
	testkit.Check(t, client.Disconnect(t.Context()))
}

// A file for clients is readable only by its owner, and replaced at once: programs that wait for it never read a part.
// A pipe is written to.
func TestFilesForClients(t *testing.T) {
	name := filepath.Join(t.TempDir(), "uri")
	testkit.Check(t, os.WriteFile(name, []byte("earlier"), 0o644))
	earlier, err := os.Open(name)
	testkit.Check(t, err)
	defer func() { _ = earlier.Close() }()
	testkit.Check(t, os.WriteFile(name+reportfile.Partial, []byte("of a killed process"), 0o644))
	testkit.Check(t, writeForClients(name, []byte("now")))
	about, err := os.Stat(name)
	testkit.Check(t, err)
	before, err := io.ReadAll(earlier)
	testkit.Check(t, err)
	testkit.Equal(t, "the text, the permissions, the text of the earlier file",
		fmt.Sprint(testkit.Read(t, name), about.Mode(), string(before)), "now-rw-------earlier")
	_, err = os.Stat(name + reportfile.Partial)
	testkit.Equal(t, "a part is left", errors.Is(err, fs.ErrNotExist), true)
	testkit.Check(t, writeForClients(os.DevNull, []byte("now")))
	about, err = os.Stat(os.DevNull)
	testkit.Check(t, err)
	testkit.Equal(t, "a device is replaced", about.Mode().IsRegular(), false)
}
