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

// roll answers hello: its fields are hosts and the process that each one is, such
// as "a1 b2". Other hosts do not answer, and "ao" is too old to say its process.
type roll struct {
	commands
	hosts string
}

func (r *roll) at(_ context.Context, address, _ string, _ any) (bson.Raw, error) {
	for _, host := range strings.Fields(r.hosts) {
		switch process := host[1]; {
		case host[0] != address[0]:
		case process == 'o':
			return mustRaw(bson.D{{Key: "ok", Value: 1}}), nil
		default:
			return mustRaw(bson.D{{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.ObjectID{process}}}}}), nil
		}
	}
	return nil, errors.New("connection refused")
}

// Which servers are missed after a test that failed, and which are not.
func TestFallen(t *testing.T) {
	set, balancers := deployment.ReplicaSet, deployment.LoadBalanced
	for _, r := range []struct {
		reason      string
		on          deployment.Topology
		before      string // "?": nobody asked before the first test
		after, want string // after each of several tests
	}{
		{"all is as it was", set, "a1 b2", "a1 b2", ""},
		{"one died", set, "a1 b2", "a1", "in the middle of the test, b:1 stopped answering: connection refused"},
		{"one died, and nobody had asked before", set, "?", "a1", "b:1 stopped answering"},
		{"both died", set, "a1 b2", "", "a:1 stopped answering: connection refused; b:1 stopped answering"},
		{"one was started anew", set, "a1 b2", "a1 b3", "b:1 was started anew"},
		{"nobody had asked before: any process is the first", set, "?", "a1 b3", ""},
		{"one was never there", set, "a1", "a1", ""},
		{"one that was not there is there now", set, "a1", "a1 b2", ""},
		{"one that died is missed until it is back, which is reported once", set, "a1 b2",
			"a1 | a1 | a1 b3 | a1 b3", "b:1 stopped | b:1 stopped | b:1 was started anew | "},
		{"servers that do not report their process", set, "ao bo", "ao bo", ""},
		{"nobody can be asked behind a load balancer", balancers, "a1", "", ""},
	} {
		servers := &roll{hosts: r.before}
		s := &site{about: deployment.Description{Topology: r.on, Version: [3]int{8, 0, 0}, Hosts: []string{"a:1", "b:1"}}, commands: servers}
		if r.before != "?" {
			s.before = s.members(context.Background())
		}
		over, cancel := context.WithCancel(context.Background())
		cancel()
		want := strings.Split(r.want, " | ")
		for i, now := range strings.Split(r.after, " | ") {
			servers.hosts = now
			if err := s.fallen(over); err != nil {
				t.Errorf("%s: an interruption says nothing of the servers: %v", r.reason, err)
			}
			err := s.fallen(context.Background())
			if (err == nil) != (want[i] == "") || err != nil && !strings.Contains(err.Error(), want[i]) {
				t.Errorf("%s: after test %d: %v, want %q", r.reason, i+1, err, want[i])
			}
		}
	}
}

// An election is known by what the clients of the test have seen.
func TestElections(t *testing.T) {
	for _, r := range []struct{ reason, seen, want string }{ // what each client has seen
		{"nothing is seen", "", ""},
		{"one primary", "a RSPrimary, b RSSecondary", ""},
		{"an error makes it unknown for a while", "a RSPrimary, a Unknown, a RSPrimary", ""},
		{"another one", "a RSPrimary, a RSSecondary, b RSPrimary", "from a to b"},
		{"one client saw the one, another the other", "a RSPrimary; b RSPrimary", ""},
		{"the second client saw it", "; a RSPrimary, b RSPrimary", "from a to b"},
	} {
		var logs []result.ClientLog
		for client := range strings.SplitSeq(r.seen, "; ") {
			l := result.ClientLog{Events: []result.Event{{Type: result.ServerDescriptionChanged}}} // without a description
			for change := range strings.SplitSeq(client, ", ") {
				address, kind, _ := strings.Cut(change, " ")
				l.Events = append(l.Events, result.Event{Type: result.ServerDescriptionChanged, Address: address,
					SDAM: &result.SDAMEvent{New: &result.TopologyState{Type: kind}}})
			}
			logs = append(logs, l)
		}
		if got := elections(logs); (got == "") != (r.want == "") || !strings.HasSuffix(got, r.want) {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}
