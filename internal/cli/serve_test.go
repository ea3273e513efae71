package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"go.mongodb.org/mongo-driver/v2/bson"
)

type server struct{ close func() error }

func (server) URI() string       { return "mongodb://user:hunter2@h:1,h:2/?replicaSet=rs" }
func (server) SingleURI() string { return "mongodb://user:hunter2@h:1/" }
func (server) CA() []byte        { return []byte("certificate") }
func (s server) Close() error    { return s.close() }

func TestServe(t *testing.T) {
	b := newBench(t)
	b.ctx = ended(b.ctx)
	closed, asked := false, embedded.Options{}
	var failure error
	b.Serve = func(_ context.Context, o embedded.Options) (Server, error) {
		asked = o
		return server{func() error { closed = true; return failure }}, nil
	}
	dir := t.TempDir()
	ca, named := filepath.Join(dir, "a ca&100%.pem"), "tlsCAFile="+dir+"/a%20ca%26100%25.pem"
	b.expect(t, "everything", envPassword+"=hunter2 serve --topology load-balanced --port 27017 --user user --server-version 6.0 --tls --ca-file '"+ca+
		"' --uri-file uri --set-parameter quiet=true --set-parameter logLevel=2 --set-parameter saslHostName=h=1 "+
		`--set-parameter 'ingressRequestRateLimiterApplicationExemptions={"appNames": ["a"]}'`, 0, "ready after")
	testkit.Equal(t, "printed", b.out.String(), "mongodb://***@h:1,h:2/?replicaSet=rs&"+named+"\nsingle mongodb://***@h:1/?"+named+"\n")
	lacks(t, "standard error", b.err.String(), "hunter2")
	testkit.Equal(t, "closed", closed, true)
	want := embedded.Options{Topology: embedded.LoadBalanced, Version: "6.0", Members: 3, Mongoses: 2, Host: "127.0.0.1", TLS: true,
		Users: []embedded.User{{Name: "user", Password: "hunter2"}}, Ports: []int{27017, 27018, 27019, 27020},
		Parameters: bson.D{{Key: "quiet", Value: true}, {Key: "logLevel", Value: int32(2)}, {Key: "saslHostName", Value: "h=1"},
			{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"a"}}}}}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for path, text := range map[string]string{ca: "certificate", "uri": server{}.URI() + "&" + named + "\n"} {
		info, err := os.Stat(path)
		testkit.Check(t, err)
		testkit.Equal(t, path, fmt.Sprint(info.Mode(), read(t, path)), "-rw-------"+text)
	}
	for line, warned := range map[string]bool{"serve": false, "serve --tls": true, "serve --tls --ca-file ca": false} {
		b.expect(t, line, line, 0, "")
		testkit.Equal(t, line+" warns of a certificate that nobody has", says(b.err.String(), "--ca-file FILE writes it"), warned)
	}
	b.expect(t, "the certificate cannot be written", "serve --tls --ca-file nowhere/ca", ExitBroken, "cannot write what clients need")
	failure = errors.New("stuck")
	b.expect(t, "the deployment does not stop", "serve", ExitBroken, "stopping the deployment: stuck")
	b.Serve, b.ctx = New().Serve, testkit.Context(t)
	for _, parameter := range []string{"ingressRequestRateLimiterEnabled=true", "requireApiVersion"} { // not in 8.0; without a value
		b.expect(t, parameter, "serve --topology single --server-version 8.0 --set-parameter "+parameter, ExitUsage, "")
	}
}

// The programs of a release pass their words on as they are, whatever the path
// of utr is, with the version in the environment.
func TestRelease(t *testing.T) {
	b := newBench(t)
	b.expect(t, "a release", "release dir --server-version 7.0", 0, filepath.Join("dir", "bin")+"\n")
	for _, name := range []string{"mongod", "mongos"} {
		info, err := os.Stat(filepath.Join("dir", "bin", name))
		testkit.Check(t, err)
		testkit.Equal(t, name+" can be executed", info.Mode()&0o111, fs.FileMode(0o111))
	}
	dir := filepath.Join(t.TempDir(), "it's a \"folder\" $HOME")
	self, script := filepath.Join(dir, "utr"), filepath.Join(dir, "mongos")
	write(t, self, "#!/bin/sh\necho \"$UTR_SERVER_VERSION\"\nfor w in \"$@\"; do echo \"$w\"; done\n")
	write(t, script, releaseScript(self, "mongos", "4.4"))
	testkit.Check(t, errors.Join(os.Chmod(self, 0o755), os.Chmod(script, 0o755)))
	out, err := exec.Command(script, "--configdb", "a b", "*").CombinedOutput()
	testkit.Check(t, err)
	testkit.Equal(t, "its words", string(out), "4.4\nmongos\n--configdb\na b\n*\n")
}
