package runner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

type member struct {
	err error // why it is unreachable
	// process identifies the process (Server Discovery and Monitoring, "topologyVersion"); zero before 4.4.
	process bson.ObjectID
}

const memberLimit = 2 * time.Second

// members sends hello to every server concurrently. It returns nil behind a load balancer.
func (s *site) members(ctx context.Context) map[string]member {
	if s.about.Topology == deployment.LoadBalanced {
		return nil
	}
	ctx, cancel := limited(ctx, memberLimit, "the limit for an answer")
	defer cancel()
	hello := "hello"
	if s.about.Version[0] < 5 {
		hello = "isMaster"
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	states := make(map[string]member)
	for _, host := range s.about.Hosts {
		all.Go(func() {
			reply, err := retried(ctx, func() (bson.Raw, error) {
				return s.commands.at(ctx, host, "admin", bson.D{{Key: hello, Value: 1}})
			})
			process, _ := reply.Lookup("topologyVersion", "processId").ObjectIDOK()
			mu.Lock()
			defer mu.Unlock()
			states[host] = member{err, process}
		})
	}
	all.Wait()
	return states
}

// died returns an error that names the servers which died or restarted since the last call: failures are then not the
// engine's fault. It ignores servers that were unreachable before.
func (s *site) died(ctx context.Context) error {
	before, now := s.before, s.members(ctx)
	if ctx.Err() != nil {
		return nil // inconclusive
	}
	s.before = now
	var all []string
	for _, host := range s.about.Hosts {
		was, known := before[host]
		switch is := now[host]; {
		case was.err != nil:
		case is.err != nil:
			all = append(all, fmt.Sprintf("%s stopped answering: %s", host, is.err))
			now[host] = was // report it until it is back
		case known && was.process != is.process:
			all = append(all, host+" was restarted")
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("during the test, %s", strings.Join(all, "; "))
}

// elections reports a new primary in the events of a test's clients, or "".
func elections(logs []result.ClientLog) string {
	for _, l := range logs {
		primary := ""
		for _, e := range l.Events {
			if e.Type != result.ServerDescriptionChanged || e.New == nil || e.New.Type != "RSPrimary" {
				continue
			}
			if primary != "" && e.Address != primary {
				return fmt.Sprintf("the primary changed during the test, from %s to %s", primary, e.Address)
			}
			primary = e.Address
		}
	}
	return ""
}
