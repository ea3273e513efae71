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

	"github.com/unified-test-runner/utr/deployment/local"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestLocalOffers(t *testing.T) {
	whole := local.Release{Mongod: "/r/mongod", Mongos: "/r/mongos", Version: local.Version{8, 0, 4}}
	bare, old := whole, whole
	bare.Mongos = ""
	old.Version = local.Version{4, 2, 24}
	on, off := true, false
	for _, r := range []struct {
		reason  string
		release local.Release
		options LocalOptions
		want    string // the offers, or after "error: " why there are none
	}{
		{"all that there is, each without and with access control", whole, LocalOptions{}, "replicaset 8.0, replicaset 8.0 auth, sharded 8.0, " +
			"sharded 8.0 auth, load-balanced 8.0, load-balanced 8.0 auth, single 8.0, single 8.0 auth"},
		{"load balancing came with 5.0.7", old, LocalOptions{Auth: &off}, "replicaset 4.2, sharded 4.2, single 4.2"},
		{"sharding needs a mongos", bare, LocalOptions{Auth: &on}, "replicaset 8.0 auth, single 8.0 auth"},
		{"what is asked for and is missing", bare, LocalOptions{Topologies: []Topology{Sharded}},
			"error: a sharded cluster cannot be had: there is no /r/mongos"},
		{"an older one, asked for", old, LocalOptions{Topologies: []Topology{LoadBalanced}},
			"error: version 4.2.24 has no load balancing, which came with 5.0.7"},
		{"a topology that nobody can start", whole, LocalOptions{Topologies: []Topology{"ring"}},
			`error: topology "ring" cannot be started from local binaries`},
		{"one that is asked for", whole, LocalOptions{Topologies: []Topology{Single}, Auth: &off}, "single 8.0"},
	} {
		offers, err := localOffers(r.release, r.options)
		got := make([]string, len(offers))
		for i, o := range offers {
			got[i] = o.about.Name
			testkit.Equal(t, "access control and version", []any{o.about.Auth, o.about.Version}, []any{o.shape.Auth, [3]int(r.release.Version)})
		}
		if err != nil {
			got = []string{"error: " + err.Error()}
		}
		testkit.Equal(t, r.reason, strings.Join(got, ", "), r.want)
	}
}

// envPlay has this test binary play a mongod, as TestPlayMongod.
const envPlay = "UTR_TEST_PLAYS_MONGOD"

// TestPlayMongod is not a test but a mongod: a standalone, whatever its arguments
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

// release gives a folder with a mongod that tells a version, and otherwise does
// what a shell is told. Each start leaves a line in the file starts.
func release(t *testing.T, does string) (dir, starts string) {
	t.Helper()
	dir = t.TempDir()
	starts = filepath.Join(dir, "starts")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo db version v8.0.4; exit; }\necho >>" + starts + "\n" + does + "\n"
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "mongod"), []byte(text), 0o755))
	return dir, starts
}

// standalones is a source of standalones, whose mongod is this test binary.
func standalones(t *testing.T, o LocalOptions) (s *LocalSource, starts string, heard *notes) {
	t.Helper()
	self, err := os.Executable()
	testkit.Check(t, err)
	heard = new(notes)
	o.Where, starts = release(t, fmt.Sprintf("export %s=1\nexec %s -test.run '^TestPlayMongod$' -- \"$@\"", envPlay, self))
	o.Topologies, o.Auth, o.Folder, o.Note = []Topology{Single}, new(bool), t.TempDir(), heard.add
	t.Cleanup(func() { // after the source is closed
		if left := files(t, o.Folder, "*"); len(left) > 0 && !s.keep {
			t.Errorf("left is %v", left)
		}
	})
	return opened[*LocalSource](t)(OpenLocal(t.Context(), o)), starts, heard
}

// Clusters start when they are wanted, are lent again, and are as many as there
// are workers. One that a test broke is made anew, although its server runs. The logs
// of all clusters are kept if somebody wants them, those of broken ones too.
func TestLocalSource(t *testing.T) {
	s, starts, heard := standalones(t, LocalOptions{Jobs: 2})
	if n := lines(starts); n != 0 || s.Offers()[0].Parameters != nil {
		t.Errorf("%d servers were started before anybody wanted one", n)
	}
	for range 3 {
		d := borrow(t, s)
		if !d.Owned() || len(d.Description().Hosts) != 1 {
			t.Errorf("%+v", d.Description())
		}
		reaches(t, "", d.URI())
		s.Release(d, false)
	}
	testkit.Equal(t, "servers for one test after the other", lines(starts), 1)
	one, two := borrow(t, s), borrow(t, s)
	if one == two || lines(starts) != 2 || heard.String() != "" {
		t.Errorf("two workers have %d servers: %s", lines(starts), heard)
	}
	s.Release(one, true)
	three := borrow(t, s)
	testkit.Equal(t, "servers after one is broken", lines(starts), 3)
	testkit.Says(t, heard.String(), "is made anew: "+errDoubtful.Error())
	s.Release(two, false)
	s.Release(three, false)
	s.KeepLogs()
	testkit.Check(t, s.Close())
	kept := 0
	for _, line := range heard.lines {
		if folder, found := strings.CutPrefix(line, "the logs of the servers are in "); found {
			kept++
			testkit.Equal(t, "kept", files(t, folder, "*"), []string{filepath.Join(folder, "mongod.log")})
		}
	}
	testkit.Equal(t, "clusters with logs", kept, 3)
}

// A release without a mongos does less, and that is said.
func TestLocalSourceTellsOfLack(t *testing.T) {
	dir, _ := release(t, "exit 1")
	const lack = "a sharded cluster cannot be had: there is no "
	for _, r := range []struct {
		reason     string
		topologies []Topology
		said       bool
	}{{"all that there is", nil, true}, {"nothing that needs one", []Topology{Single}, false}} {
		heard := new(notes)
		opened[*LocalSource](t)(OpenLocal(t.Context(), LocalOptions{Where: dir, Topologies: r.topologies, Note: heard.add}))
		testkit.Equal(t, r.reason, strings.Contains(heard.String(), lack), r.said)
	}
}

// What is started to learn parameters serves the first test, and goes without one
// as well.
func TestLocalSourceLearns(t *testing.T) {
	for _, taken := range []bool{true, false} {
		s, starts, _ := standalones(t, LocalOptions{Parameters: true})
		if v, err := s.Offers()[0].Parameters.LookupErr("enableTestCommands"); err != nil || !v.Boolean() || len(s.Offers()[0].AuthMechanisms) == 0 {
			t.Errorf("the offer has %v, %v for enableTestCommands, and %v", v, err, s.Offers()[0].AuthMechanisms)
		}
		if taken {
			d := borrow(t, s)
			if d.Description().Parameters == nil || lines(starts) != 1 {
				t.Errorf("%d servers were started", lines(starts))
			}
			s.Release(d, false)
		}
	}
}

// A cluster with a server that died is not lent again, whether it was lent or idle
// then; people hear why.
func TestLocalSourceReplacesTheDead(t *testing.T) {
	s, starts, heard := standalones(t, LocalOptions{})
	for _, lent := range []bool{true, false} {
		d := borrow(t, s)
		reaches(t, "", d.URI())
		if !lent {
			s.Release(d, false)
		}
		process, err := os.FindProcess(d.(*localCluster).Processes()[0])
		testkit.Check(t, err)
		testkit.Check(t, process.Kill())
		testkit.Until(t, "the death is noticed", func() bool { return Died(d) != nil })
		if lent {
			s.Release(d, false)
		}
	}
	d := borrow(t, s)
	reaches(t, "", d.URI())
	s.Release(d, false)
	testkit.Equal(t, "servers", lines(starts), 3)
	testkit.Equal(t, "people hear of the dead", strings.Count(heard.String(), "mongod ended: signal: killed"), 2)
}

// A release that cannot start is tried twice and no more, and everybody hears the
// reason at once.
func TestLocalSourceGivesUp(t *testing.T) {
	dir, starts := release(t, "echo Illegal option; exit 2")
	o := LocalOptions{Where: dir, Topologies: []Topology{Single}, Folder: t.TempDir()}
	s := opened[*LocalSource](t)(OpenLocal(t.Context(), o))
	for range 3 {
		_, err := s.Acquire(testkit.Context(t), 0)
		testkit.Fails(t, err, "Illegal option")
	}
	testkit.Equal(t, "starts", lines(starts), 2)
	testkit.Check(t, s.Close())
	testkit.Equal(t, "logs of failed starts", len(files(t, o.Folder, "*/mongod.log")), 1)
	o.Parameters = true
	_, err := OpenLocal(t.Context(), o)
	testkit.Fails(t, err, "Illegal option")
}

// A release that does not come up is given up at the end of the source, at once.
func TestLocalSourceClosesWhileStarting(t *testing.T) {
	dir, starts := release(t, "exec sleep 600")
	folder := t.TempDir()
	s := opened[*LocalSource](t)(OpenLocal(t.Context(), LocalOptions{Where: dir, Topologies: []Topology{Single}, Folder: folder}))
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() { _, err := s.Acquire(ctx, 0); got <- err }()
	testkit.Until(t, "the server is started", func() bool { return lines(starts) > 0 })
	cancel()
	if err := testkit.Receive(t, "the end of the wait", got); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	testkit.Check(t, s.Close())
	testkit.Equal(t, "left", files(t, folder, "*"), []string{})
}
