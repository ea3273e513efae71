//go:build unix

package deployment

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unified-test-runner/utr/deployment/local"
	"github.com/unified-test-runner/utr/embedded"
)

func TestLocalOffers(t *testing.T) {
	whole := local.Release{Mongod: "/r/mongod", Mongos: "/r/mongos", Version: local.Version{8, 0, 4}}
	bare, old := whole, whole
	bare.Mongos = ""
	old.Version = local.Version{4, 2, 24}
	on, off := true, false
	for _, row := range []struct {
		reason  string
		release local.Release
		options LocalOptions
		want    []string
		err     string
	}{
		{"all that there is, each without and with access control", whole, LocalOptions{}, []string{
			"replicaset 8.0", "replicaset 8.0 auth", "sharded 8.0", "sharded 8.0 auth",
			"load-balanced 8.0", "load-balanced 8.0 auth", "single 8.0", "single 8.0 auth"}, ""},
		{"load balancing came with 5.0.7", old, LocalOptions{Auth: &off}, []string{"replicaset 4.2", "sharded 4.2", "single 4.2"}, ""},
		{"sharding needs a mongos", bare, LocalOptions{Auth: &on}, []string{"replicaset 8.0 auth", "single 8.0 auth"}, ""},
		{"what is asked for and is not there is an error", bare, LocalOptions{Topologies: []Topology{Sharded}}, nil, "there is no /r/mongos"},
		{"an older one, asked for", old, LocalOptions{Topologies: []Topology{LoadBalanced}}, nil, "came with 5.0.7"},
		{"a topology that nobody can start", whole, LocalOptions{Topologies: []Topology{"ring"}}, nil, `"ring" cannot be started`},
		{"one that is asked for", whole, LocalOptions{Topologies: []Topology{Single}, Auth: &off}, []string{"single 8.0"}, ""},
	} {
		offers, err := localOffers(row.release, row.options)
		var got []string
		for _, o := range offers {
			got = append(got, o.about.Name)
			if o.about.Auth != o.shape.Auth || o.about.Version != row.release.Version {
				t.Errorf("%s: %s promises %+v for %+v", row.reason, o.about.Name, o.about, o.shape)
			}
		}
		if d := cmp.Diff(row.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, d)
		}
		if (err != nil) != (row.err != "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: error %v, want %q", row.reason, err, row.err)
		}
	}
}

// envPlay has this test binary play a mongod, as TestPlayMongod.
const envPlay = "UTR_TEST_PLAYS_MONGOD"

// TestPlayMongod is no test but a mongod: a standalone, whatever its arguments
// say.
func TestPlayMongod(t *testing.T) {
	if os.Getenv(envPlay) == "" {
		t.Skip("played by other tests")
	}
	args := flag.Args()
	at := slices.Index(args, "--port")
	port, err := strconv.Atoi(args[at+1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(context.Background(), embedded.Options{Ports: []int{port}, Version: "8.0"}); err != nil {
		fmt.Println(err)
		os.Exit(48)
	}
	select {} // until it is killed
}

// standaloneRelease gives a folder with a mongod that can be a standalone. Each
// start leaves a line in the file starts.
func standaloneRelease(t *testing.T) (dir, starts string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	starts = filepath.Join(dir, "starts")
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && { echo db version v8.0.4; exit; }\necho >>%s\n"+
		"export %s=1\nexec %s -test.run '^TestPlayMongod$' -- \"$@\"\n", starts, envPlay, self)
	if err := os.WriteFile(filepath.Join(dir, "mongod"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, starts
}

func lines(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func openStandalones(t *testing.T, o LocalOptions) (s *LocalSource, starts string, told *notes) {
	t.Helper()
	told = new(notes)
	off := false
	o.Where, starts = standaloneRelease(t)
	o.Topologies, o.Auth, o.Folder, o.Note = []Topology{Single}, &off, t.TempDir(), told.add
	s, err := OpenLocal(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if files, _ := filepath.Glob(filepath.Join(o.Folder, "*")); len(files) > 0 && !s.keep {
			t.Errorf("left is %v", files)
		}
	})
	return s, starts, told
}

// Clusters start when they are wanted, are handed out again, and are as many as
// there are workers.
func TestLocalSourceIsLazy(t *testing.T) {
	s, starts, told := openStandalones(t, LocalOptions{Jobs: 2})
	if n := lines(t, starts); n != 0 || s.Offers()[0].Parameters != nil {
		t.Errorf("%d servers were started before anybody wanted one", n)
	}
	for range 3 {
		d, err := s.Acquire(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Owned() || len(d.Description().Hosts) != 1 {
			t.Errorf("%+v", d.Description())
		}
		if err := ping(t, d.URI()); err != nil {
			t.Error(err)
		}
		s.Release(d, false)
	}
	if n := lines(t, starts); n != 1 {
		t.Errorf("%d servers were started for one test after the other", n)
	}
	one, err := s.Acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if one == two || lines(t, starts) != 2 {
		t.Errorf("two workers at once have %d servers", lines(t, starts))
	}
	s.Release(one, false)
	s.Release(two, false)
	if told.String() != "" {
		t.Errorf("all is well, and yet: %s", told)
	}
}

// A release without a mongos does less, and that is said.
func TestLocalSourceTellsOfLack(t *testing.T) {
	dir, _ := standaloneRelease(t)
	for _, row := range []struct {
		topologies []Topology
		told       bool
	}{{nil, true}, {[]Topology{Single}, false}} {
		told := new(notes)
		s, err := OpenLocal(t.Context(), LocalOptions{Where: dir, Topologies: row.topologies, Note: told.add})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(told.String(), "a sharded cluster cannot be had: there is no "); got != row.told {
			t.Errorf("topologies %v: told %q", row.topologies, told)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is asked to learn parameters serves the first test.
func TestLocalSourceLearns(t *testing.T) {
	s, starts, _ := openStandalones(t, LocalOptions{Parameters: true})
	if v, err := s.Offers()[0].Parameters.LookupErr("enableTestCommands"); err != nil || !v.Boolean() {
		t.Errorf("the offer tells %v, %v of enableTestCommands", v, err)
	}
	if len(s.Offers()[0].AuthMechanisms) == 0 {
		t.Error("the offer tells no authentication mechanisms")
	}
	d, err := s.Acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Description().Parameters == nil || lines(t, starts) != 1 {
		t.Errorf("%d servers were started", lines(t, starts))
	}
	s.Release(d, false)
}

// Nobody took what was started to be asked: it goes as well.
func TestLocalSourceLearnsForNobody(t *testing.T) {
	openStandalones(t, LocalOptions{Parameters: true})
}

// A cluster with a server that died is not handed out again, whether it was
// lent or idle then; people are told why.
func TestLocalSourceReplacesTheDead(t *testing.T) {
	s, starts, told := openStandalones(t, LocalOptions{})
	kill := func(d Deployment) {
		c := d.(*localCluster)
		processes := c.Processes()
		if len(processes) != 1 {
			t.Fatalf("the processes are %v", processes)
		}
		process, err := os.FindProcess(processes[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		deadline := time.After(20 * time.Second)
		for c.Dead() == nil {
			select {
			case <-deadline:
				t.Fatal("the death of a server is not noticed within 20 s")
			case <-time.After(time.Millisecond):
			}
		}
	}
	first, err := s.Acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	kill(first)
	s.Release(first, false)
	second, err := s.Acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(t, second.URI()); err != nil {
		t.Error(err)
	}
	s.Release(second, false)
	kill(second)
	third, err := s.Acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(t, third.URI()); err != nil {
		t.Error(err)
	}
	s.Release(third, false)
	if n := lines(t, starts); n != 3 {
		t.Errorf("%d servers were started", n)
	}
	if n := strings.Count(told.String(), "mongod ended: signal: killed"); n != 2 {
		t.Errorf("people were told:\n%s", told)
	}
}

// A cluster that a test broke is made anew, although all servers run.
func TestLocalSourceReplacesTheBroken(t *testing.T) {
	s, starts, told := openStandalones(t, LocalOptions{})
	for range 2 {
		d, err := s.Acquire(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Release(d, true)
	}
	if d, err := s.Acquire(t.Context(), 0); err != nil {
		t.Error(err)
	} else {
		s.Release(d, false)
	}
	if n := lines(t, starts); n != 3 || !strings.Contains(told.String(), errDoubtful.Error()) {
		t.Errorf("%d servers were started, and people were told:\n%s", n, told)
	}
}

// The logs of all clusters are kept if somebody wants them, those of broken
// ones too.
func TestLocalSourceKeepsLogs(t *testing.T) {
	s, _, told := openStandalones(t, LocalOptions{})
	for _, broken := range []bool{true, false} {
		d, err := s.Acquire(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Release(d, broken)
	}
	s.KeepLogs()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var kept int
	for _, line := range strings.Split(told.String(), "\n") {
		if folder, found := strings.CutPrefix(line, "the logs of the servers are in "); found {
			kept++
			if files, _ := filepath.Glob(filepath.Join(folder, "*")); len(files) != 1 || filepath.Base(files[0]) != "mongod.log" {
				t.Errorf("in %s are %v", folder, files)
			}
		}
	}
	if kept != 2 {
		t.Errorf("people were told:\n%s", told)
	}
}

// pretender is a release whose mongod tells a version, and otherwise does what a
// shell is told. The file starts has a line for each time.
func pretender(t *testing.T, does string) (release, starts string) {
	t.Helper()
	release = t.TempDir()
	starts = filepath.Join(release, "starts")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo db version v8.0.4; exit; }\necho >>" + starts + "\n" + does + "\n"
	if err := os.WriteFile(filepath.Join(release, "mongod"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return release, starts
}

// A release that cannot start is tried twice and no more, and the reason is
// given to everybody at once.
func TestLocalSourceGivesUp(t *testing.T) {
	dir, starts := pretender(t, "echo Illegal option; exit 2")
	folder := t.TempDir()
	s, err := OpenLocal(t.Context(), LocalOptions{Where: dir, Topologies: []Topology{Single}, Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Acquire(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "Illegal option") {
			t.Errorf("got %v", err)
		}
	}
	if n := lines(t, starts); n != 2 {
		t.Errorf("it was started %d times", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if kept, _ := filepath.Glob(filepath.Join(folder, "*", "mongod.log")); len(kept) != 1 {
		t.Errorf("the logs of failed starts are %v: want those of the last one", kept)
	}
	if _, err := OpenLocal(t.Context(), LocalOptions{Where: dir, Topologies: []Topology{Single}, Folder: folder, Parameters: true}); err == nil ||
		!strings.Contains(err.Error(), "Illegal option") {
		t.Errorf("asking it for parameters: %v", err)
	}
}

// A release that does not come up is given up at the end of the source, at
// once.
func TestLocalSourceClosesWhileStarting(t *testing.T) {
	dir, starts := pretender(t, "sleep 600")
	folder := t.TempDir()
	s, err := OpenLocal(t.Context(), LocalOptions{Where: dir, Topologies: []Topology{Single}, Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for lines(t, starts) == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := s.Acquire(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*")); len(files) > 0 {
		t.Errorf("left is %v", files)
	}
}

// mortal is a deployment whose server died.
type mortal struct{ Deployment }

var errDeath = errors.New("it ended")

func (mortal) Dead() error { return errDeath }

// A death is known, also through what adds options to connection strings; of
// deployments that know nothing of it, none is.
func TestDied(t *testing.T) {
	for _, row := range []struct {
		reason string
		d      Deployment
		want   error
	}{
		{"one that knows", mortal{}, errDeath},
		{"with options", optionDeployment{Deployment: mortal{}}, errDeath},
		{"one that does not know", &cluster{}, nil},
		{"that with options", optionDeployment{Deployment: &cluster{}}, nil},
		{"none", nil, nil},
	} {
		if got := Died(row.d); got != row.want {
			t.Errorf("%s: got %v", row.reason, got)
		}
	}
}
