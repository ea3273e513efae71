package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// roll answers hello for each host: with the process that it is, or not at all.
type roll struct {
	commands
	processes map[string]byte // 0: it does not answer
}

func (r *roll) at(_ context.Context, address, _ string, command any) (bson.Raw, error) {
	if r.processes[address] == 0 {
		return nil, errors.New("connection refused")
	}
	id := bson.ObjectID{r.processes[address]}
	if id[0] == 'o' { // old servers do not tell
		return mustRaw(bson.D{{Key: "ok", Value: 1}}), nil
	}
	return mustRaw(bson.D{{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: id}}}}), nil
}

// Which servers are missed after a test that failed, and which are not.
func TestFallen(t *testing.T) {
	type state = map[string]byte
	for _, r := range []struct {
		reason    string
		unknown   bool // nobody asked before the first test
		before    state
		after     []state // after each of several tests
		want      []string
		balancers bool
	}{
		{"all is as it was", false, state{"a:1": 1, "b:1": 2}, []state{{"a:1": 1, "b:1": 2}}, []string{""}, false},
		{"one died", false, state{"a:1": 1, "b:1": 2}, []state{{"a:1": 1}}, []string{"in the middle of the test, b:1 stopped answering: connection refused"}, false},
		{"one died, and nobody had asked before", true, nil, []state{{"a:1": 1}}, []string{"b:1 stopped answering"}, false},
		{"both died", false, state{"a:1": 1, "b:1": 2}, []state{{}}, []string{"a:1 stopped answering: connection refused; b:1 stopped answering"}, false},
		{"one was started anew", false, state{"a:1": 1, "b:1": 2}, []state{{"a:1": 1, "b:1": 3}}, []string{"b:1 was started anew"}, false},
		{"nobody had asked before: any process is the first", true, nil, []state{{"a:1": 1, "b:1": 3}}, []string{""}, false},
		{"one was never there", false, state{"a:1": 1}, []state{{"a:1": 1}}, []string{""}, false},
		{"one that was not there is there now", false, state{"a:1": 1}, []state{{"a:1": 1, "b:1": 2}}, []string{""}, false},
		{"one that died is missed until it is back, which is told once", false, state{"a:1": 1, "b:1": 2},
			[]state{{"a:1": 1}, {"a:1": 1}, {"a:1": 1, "b:1": 3}, {"a:1": 1, "b:1": 3}},
			[]string{"b:1 stopped", "b:1 stopped", "b:1 was started anew", ""}, false},
		{"servers that do not tell their process", false, state{"a:1": 'o', "b:1": 'o'}, []state{{"a:1": 'o', "b:1": 'o'}}, []string{""}, false},
		{"nobody can be asked behind a load balancer", false, state{"a:1": 1}, []state{{}}, []string{""}, true},
	} {
		t.Run(r.reason, func(t *testing.T) {
			about := deployment.Description{Topology: deployment.ReplicaSet, Version: [3]int{8, 0, 0}, Hosts: []string{"a:1", "b:1"}}
			if r.balancers {
				about.Topology = deployment.LoadBalanced
			}
			servers := &roll{processes: r.before}
			s := &site{about: about, commands: servers}
			if !r.unknown {
				s.before = s.members(context.Background())
			}
			over, cancel := context.WithCancel(context.Background())
			cancel()
			for i, now := range r.after {
				servers.processes = now
				if err := s.fallen(over); err != nil {
					t.Errorf("an interruption says nothing of the servers: %v", err)
				}
				got := ""
				if err := s.fallen(context.Background()); err != nil {
					got = err.Error()
				}
				if (got == "") != (r.want[i] == "") || !strings.Contains(got, r.want[i]) {
					t.Errorf("after test %d: %q, want %q", i+1, got, r.want[i])
				}
			}
		})
	}
}

// An election is told by what the clients of the test have seen.
func TestElections(t *testing.T) {
	seen := func(changes ...string) result.ClientLog {
		var l result.ClientLog
		for _, c := range changes {
			address, kind, _ := strings.Cut(c, " ")
			l.Events = append(l.Events, result.Event{Type: result.ServerDescriptionChanged, Address: address,
				SDAM: &result.SDAMEvent{New: &result.TopologyState{Type: kind}}})
		}
		return l
	}
	for _, r := range []struct {
		reason string
		logs   []result.ClientLog
		want   string
	}{
		{"nothing is seen", nil, ""},
		{"one primary", []result.ClientLog{seen("a:1 RSPrimary", "b:1 RSSecondary")}, ""},
		{"an error makes it unknown for a while", []result.ClientLog{seen("a:1 RSPrimary", "a:1 Unknown", "a:1 RSPrimary")}, ""},
		{"another one", []result.ClientLog{seen("a:1 RSPrimary", "a:1 RSSecondary", "b:1 RSPrimary")}, "from a:1 to b:1"},
		{"one client saw the one, another the other", []result.ClientLog{seen("a:1 RSPrimary"), seen("b:1 RSPrimary")}, ""},
		{"the second client saw it", []result.ClientLog{seen(), seen("a:1 RSPrimary", "b:1 RSPrimary")}, "from a:1 to b:1"},
		{"an event without a description", []result.ClientLog{{Events: []result.Event{{Type: result.ServerDescriptionChanged}}}}, ""},
	} {
		got := elections(r.logs)
		if (got == "") != (r.want == "") || !strings.HasSuffix(got, r.want) {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}
