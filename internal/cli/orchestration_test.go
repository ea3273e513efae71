package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
)

// orchestrationBench notes what is asked of an orchestration service.
type orchestrationBench struct {
	*bench
	options deployment.OrchestrationOptions
	opened  bool
}

func newOrchestrationBench(t *testing.T) *orchestrationBench {
	b := &orchestrationBench{bench: newBench()}
	b.env["UTR_STATE_DIR"] = t.TempDir()
	b.Orchestration = func(_ context.Context, o deployment.OrchestrationOptions) (deployment.Source, error) {
		b.options, b.opened = o, true
		for _, c := range o.Clusters {
			for _, secret := range c.Configuration.Secrets() {
				o.Secret(secret)
			}
		}
		return noSource{[]deployment.Description{{Name: "replicaset 8.0", Hosts: []string{"h1:1"}}}}, nil
	}
	return b
}

func (b *orchestrationBench) run(t *testing.T, args ...string) int {
	return b.Main(t.Context(), append([]string{"run", "--orchestration", "http://ann:s3cret@h:8889"}, args...))
}

const minimal = `{"id": "repl0", "members": [{}], "login": "bob", "password": "hunter22"}`

func TestOrchestrationFlags(t *testing.T) {
	file := suiteFile(t)
	dir := t.TempDir()
	mine, secure := filepath.Join(dir, "mine.json"), filepath.Join(dir, "secure.json")
	write(t, mine, minimal)
	write(t, secure, `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`)
	for _, r := range []struct {
		reason   string
		args     []string
		clusters string
		topology deployment.Topology
		each     int
		jobs     int
		all      bool
		files    string // where the last one's authority is
	}{
		{"all kinds by default", []string{file}, "replicaset sharded single", "", 1, 3, false, ""},
		{"one kind", []string{"--topology", "sharded", file}, "sharded", deployment.Sharded, 1, 1, false, ""},
		{"behind a load balancer", []string{"--topology", "load-balanced", "--clusters", "2", file}, "load-balanced", deployment.LoadBalanced, 2, 2, false, ""},
		{"each test on all kinds", []string{"--topology", "all", file}, "replicaset sharded single", "", 1, 3, true, ""},
		{"access control and TLS", []string{"--auth", "on", "--tls", "--topology", "single", file}, "single-auth-tls", deployment.Single, 1, 1, false, "ABSOLUTE_PATH_REPLACEMENT_TOKEN/.evergreen/x509gen/ca.pem"},
		{"chosen ones", []string{"--cluster", "id:a", "--cluster", mine, "--cluster", "sharded-auth", "--clusters", "3", file}, "id:a " + mine + " sharded-auth", "", 3, 9, false, ""},
		{"as many tests at once as one says", []string{"--clusters", "3", "--jobs", "2", file}, "replicaset sharded single", "", 3, 2, false, ""},
		{"certificates", []string{"--cluster", secure, "--orchestration-files", "/files", file}, secure, "", 1, 1, false, "/files/ca.pem"},
	} {
		b := newOrchestrationBench(t)
		b.env[envURI] = "mongodb://elsewhere/"
		if code := b.run(t, r.args...); code != 0 {
			t.Errorf("%s: exit code %d: %s", r.reason, code, b.err.String())
			continue
		}
		var names []string
		for _, c := range b.options.Clusters {
			names = append(names, c.String())
		}
		if got := strings.Join(names, " "); got != r.clusters {
			t.Errorf("%s: clusters %s", r.reason, got)
		}
		o := b.options
		if o.URL != "http://ann:s3cret@h:8889" || o.Topology != r.topology || o.Each != r.each || b.ran.Jobs != r.jobs || b.ran.AllTopologies != r.all {
			t.Errorf("%s: %s, topology %q, %d of each, %d jobs, all %t", r.reason, o.URL, o.Topology, o.Each, b.ran.Jobs, b.ran.AllTopologies)
		}
		if ca := o.Clusters[len(o.Clusters)-1].Configuration.CAFile(); ca != r.files {
			t.Errorf("%s: authority %q", r.reason, ca)
		}
		if o.Ledger == nil || o.Note == nil || o.Secret == nil || o.Lock == nil {
			t.Errorf("%s: nothing would be remembered, told or locked", r.reason)
		}
		if strings.Contains(b.out.String()+b.err.String(), "s3cret") {
			t.Errorf("%s: the service's password is out", r.reason)
		}
		// What is not ours is announced before it is touched.
		if announced := strings.Contains(b.before, "utr drops these collections of the deployment at h1:1: db.coll"); announced != strings.Contains(r.clusters, "id:") {
			t.Errorf("%s: announced: %q", r.reason, b.before)
		}
	}
}

func TestOrchestrationUsage(t *testing.T) {
	file := suiteFile(t)
	dir := t.TempDir()
	nothing, secure := filepath.Join(dir, "nothing.json"), filepath.Join(dir, "secure.json")
	write(t, nothing, `{"password": "hunter22"}`)
	write(t, secure, `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`)
	for _, r := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"no URL", []string{"--orchestration", "h:8889"}, "--orchestration: it must begin with http:// or https://"},
		{"an empty one", []string{"--orchestration="}, "--orchestration: it must begin with"},
		{"no service", []string{"--cluster", "single"}, "--cluster goes with --orchestration"},
		{"no service to make so many", []string{"--clusters", "2"}, "--clusters goes with --orchestration"},
		{"two places", []string{"--orchestration", "http://h", "--uri", "mongodb://h"}, "--orchestration and --uri both say where to run"},
		{"two places again", []string{"--orchestration", "http://h", "--local", "/r"}, "both say where to run"},
		{"an embedded version", []string{"--orchestration", "http://h", "--server-version", "8.0"}, "--server-version chooses an embedded deployment"},
		{"members of an embedded set", []string{"--orchestration", "http://h", "--members", "5"}, "--members chooses an embedded deployment"},
		{"access control, twice", []string{"--orchestration", "http://h", "--cluster", "single", "--auth", "on"}, "--auth goes without --cluster"},
		{"a misspelled preset", []string{"--orchestration", "http://h", "--cluster", "replicset"}, "there is no such preset or file; did you mean replicaset?"},
		{"no file", []string{"--orchestration", "http://h", "--cluster", "./nowhere.json"}, "nowhere.json: no such file"},
		{"no configuration", []string{"--orchestration", "http://h", "--cluster", nothing}, "it is no configuration of mongo-orchestration"},
		{"an empty id", []string{"--orchestration", "http://h", "--cluster", "id:"}, "it needs the id of a cluster"},
		{"certificates that are nowhere", []string{"--orchestration", "http://h", "--cluster", secure}, "say by --orchestration-files DIR"},
		{"no cluster at all", []string{"--orchestration", "http://h", "--clusters", "0"}, "it must be at least 1"},
	} {
		b := newOrchestrationBench(t)
		if code := b.Main(t.Context(), append(append([]string{"run"}, r.args...), file)); code != ExitUsage || b.opened {
			t.Errorf("%s: exit code %d, opened %t", r.reason, code, b.opened)
		}
		if said := b.err.String(); !strings.Contains(said, r.want) || strings.Contains(said, "hunter22") {
			t.Errorf("%s: %s", r.reason, said)
		}
	}
}

// A test is run again on a cluster like that of before; the password of the
// service is left for the reader to put in.
func TestOrchestrationRerun(t *testing.T) {
	b := newOrchestrationBench(t)
	if code := b.run(t, "--cluster", "single", "--cluster", "id:x", "--orchestration-version", "8.0", suiteFile(t)); code != 0 {
		t.Fatal(b.err.String())
	}
	got := strings.Join(b.ran.Rerun(result.TestID{File: "f.yml", Description: "d", Deployment: "single 8.0"}), " ")
	want := `utr run --orchestration http://ann:***@h:8889 --orchestration-version 8.0 --cluster single --cluster id:x --topology single --run ^f\.yml: d$ f.yml`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// What is told of clusters while a run goes on has no password.
func TestOrchestrationNotes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.json")
	write(t, file, minimal)
	b := newOrchestrationBench(t)
	b.during = func() { b.options.Note("mongodb://bob:hunter22@h is out, hunter22 as well") }
	if code := b.run(t, "--cluster", file, suiteFile(t)); code != 0 {
		t.Fatal(b.err.String())
	}
	if said := b.err.String(); !strings.Contains(said, "utr: mongodb://***@h is out, *** as well\n") {
		t.Errorf("%q", said)
	}
}

func TestSecretsThatTurnUp(t *testing.T) {
	r := newRedactor("mongodb://ann:first@h/")
	const text = "first abc p@ss w/o%rd p%40ss%20w%2Fo%25rd p%40ss+w%2Fo%25rd p@ss%20w%2Fo%25rd xx"
	if got := r.text(text); got != strings.Replace(text, "first", "***", 1) {
		t.Errorf("%q", got)
	}
	r.also("p@ss w/o%rd")
	r.also("xx") // in ordinary words
	r.also("")
	if got := r.text(text); got != "*** abc *** *** *** *** xx" {
		t.Errorf("%q", got)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			r.also("another")
		}
	}()
	for range 100 {
		if got := r.text("first"); got != "***" {
			t.Fatal(got)
		}
	}
	<-done
	if got := r.text("another p@ss w/o%rd"); got != "*** ***" {
		t.Errorf("%q", got)
	}
}
