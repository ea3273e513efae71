// Package clients proves the embedded deployment with clients that no one here
// wrote: PyMongo, the Node driver and the public API of the Go driver. Each of
// them goes through the same steps against `utr serve` in a process of its own,
// in every topology, with SCRAM-SHA-256 and TLS, and in several versions.
//
// PyMongo and the Node driver are found through UTR_PYTHON (a python that can
// import pymongo; python3 is tried without it) and UTR_NODE_PATH (the folder
// that the package mongodb is in). Where they are not, their tests are skipped
// and say so; .ci/run installs both.
package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a step that waits for something outside the test may
// take, however busy the machine is.
const patience = 60 * time.Second

// command is the path of utr, built once for all tests.
var command string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "utr-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	command = filepath.Join(folder, "utr")
	build := exec.Command("go", "build", "-o", command, "github.com/unified-test-runner/utr/cmd/utr")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build utr: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// settings are the deployments that every client has to get along with.
var settings = []setting{
	{reason: "every topology as it comes", topology: "single", version: "8.0"},
	{reason: "every topology as it comes", topology: "replicaset", version: "8.0"},
	{reason: "every topology as it comes", topology: "sharded", version: "8.0"},
	{reason: "every topology as it comes", topology: "load-balanced", version: "8.0"},
	{reason: "SCRAM-SHA-256 alone", topology: "single", version: "8.0", user: "ann"},
	{reason: "SCRAM-SHA-256 on all members", topology: "replicaset", version: "8.0", user: "ann"},
	{reason: "TLS alone", topology: "replicaset", version: "8.0", tls: true},
	{reason: "TLS and SCRAM-SHA-256 on all routers", topology: "sharded", version: "8.0", user: "ann", tls: true},
	{reason: "TLS and SCRAM-SHA-256 behind a load balancer", topology: "load-balanced", version: "8.0", user: "ann", tls: true},
	{reason: "the oldest version that the clients of today accept", topology: "replicaset", version: "4.4"},
	{reason: "the oldest version that the clients of today accept, with routers", topology: "sharded", version: "4.4"},
	{reason: "the newest version", topology: "replicaset", version: "9.0"},
	{reason: "the newest version", topology: "sharded", version: "9.0"},
}

// clientRows are the clients. Each does the steps of names, all without any,
// and gives what it printed: a line for each step, as judge reads them.
var clientRows = []struct {
	name string
	do   func(t *testing.T, s *served, names ...string) report
}{
	{"PyMongo", pymongo},
	{"Node", node},
	{"Go", goDriver},
}

func TestClients(t *testing.T) {
	for _, client := range clientRows {
		for _, s := range settings {
			t.Run(client.name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				server := serve(t, s)
				got := client.do(t, server)
				if err := got.judge(s); err != nil {
					t.Errorf("%s: %v\n%s", s.reason, err, got.everything())
				}
				for step, why := range got.skipped {
					if step == "compressors" { // others are said by the setting
						t.Logf("not all compressors: %s", why)
					}
				}
				server.stop(t, os.Interrupt)
			})
		}
	}
}

// less compares versions such as 4.2 and 8.0, whose parts have one digit.
func less(a, b string) bool { return a < b }

// TestClientsNoticeFailures breaks one command of a server for good: each
// client must fail, and at the step that needs the command.
func TestClientsNoticeFailures(t *testing.T) {
	for _, row := range []struct{ command, step string }{
		{"distinct", "countAndDistinct"},
		{"listIndexes", "indexes"},
		{"commitTransaction", "transactions"},
	} {
		for _, client := range clientRows {
			t.Run(client.name+"/"+row.command, func(t *testing.T) {
				t.Parallel()
				s := setting{topology: "replicaset", version: "8.0"}
				server := serve(t, s)
				server.breakCommand(t, row.command)
				got := client.do(t, server, "connects", row.step)
				err := got.judge(s, "connects", row.step)
				if err == nil || !strings.Contains(err.Error(), row.step) {
					t.Errorf("%s fails always, and the client says %v\n%s", row.command, err, got.everything())
				}
				server.stop(t, os.Interrupt)
			})
		}
	}
}

// TestCompressionIsUsed looks at what goes over the wire, which no client
// tells.
func TestCompressionIsUsed(t *testing.T) {
	for _, client := range clientRows {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			s := setting{topology: "single", version: "8.0"}
			server := serve(t, s)
			spy := listen(t, server.hosts()[0])
			spied := *server
			spied.uri = strings.Replace(server.uri, server.hosts()[0], spy.address(), 1)
			got := client.do(t, &spied, "compressors")
			if err := got.judge(s, "compressors"); err != nil {
				t.Fatalf("%v\n%s", err, got.everything())
			}
			asked, answered := spy.compressors()
			for id, name := range compressorNames {
				if strings.Contains(got.skipped["compressors"], name) {
					t.Logf("%s is not installed for this client", name)
					continue
				}
				if !slices.Contains(asked, id) || !slices.Contains(answered, id) {
					t.Errorf("%s: used in messages %v, in replies %v", name, asked, answered)
				}
			}
			server.stop(t, os.Interrupt)
		})
	}
}

// deadline bounds all that one client does.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}
