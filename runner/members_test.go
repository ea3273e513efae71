package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// fakeMembers replies to hello. hosts has the name and the process of each server,
// such as "a1 b2". An old server, which does not report its process, has process "o". "-" follows a server that accepts
// no writes. Other servers do not respond.
type fakeMembers struct {
	commands
	hosts string
}

func (r *fakeMembers) ask(_ context.Context, address string, _ bson.D) (bson.Raw, error) {
	for _, host := range strings.Fields(r.hosts) {
		switch process := host[1]; {
		case host[0] != address[0]:
		case process == 'o':
			return mustRaw(bson.D{{Key: "ok", Value: 1}}), nil
		default:
			return mustRaw(bson.D{{Key: "ismaster", Value: !strings.HasSuffix(host, "-")},
				{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.ObjectID{process}}}}}), nil
		}
	}
	return nil, errors.New("connection refused")
}

func TestDied(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/died.txt", func(t *testing.T, in string) string {
		head, tests, _ := strings.Cut(in, ": ")
		topology, before, asked := strings.Cut(strings.TrimSuffix(head, " before"), ", ")
		servers := &fakeMembers{hosts: before}
		about := deployment.Description{Topology: deployment.Topology(topology), Version: [3]int{8},
			Hosts: []string{"a:1", "b:1"}}
		s := &site{about: about, commands: servers}
		if asked {
			s.before = s.ask(t.Context(), whoAreYou)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		var results []string
		for now := range strings.SplitSeq(tests, " | ") {
			servers.hosts = strings.TrimSuffix(now, "none")
			testkit.Equal(t, "after an interruption", s.died(over), nil)
			results = append(results, fmt.Sprint(s.died(t.Context())))
		}
		return strings.ReplaceAll(strings.Join(results, " | "), "<nil>", "well")
	})
}

func TestElection(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/election.txt", func(t *testing.T, in string) string {
		seen, now, _ := strings.Cut(in, ", then ")
		s := &site{about: deployment.Description{Hosts: []string{"a:1", "b:1"}}, commands: &fakeMembers{hosts: now}}
		s.before = s.ask(t.Context(), whoAreYou)
		var logs []result.ClientLog
		for client := range strings.SplitSeq(seen, "; ") {
			l := result.ClientLog{Events: []result.Event{{Type: result.ServerDescriptionChanged}}} // without a description
			for change := range strings.SplitSeq(client, ", ") {
				address, kind, _ := strings.Cut(change, " ")
				l.Events = append(l.Events, result.Event{Type: result.ServerDescriptionChanged, Address: address,
					New: &result.TopologyState{Type: kind}})
			}
			logs = append(logs, l)
		}
		return cmp.Or(s.election(logs), "no election")
	})
}
