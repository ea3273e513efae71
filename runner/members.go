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

// member is a server of a deployment as it answered, or did not.
type member struct {
	err error
	// process is drawn anew when the server starts (Server Discovery and
	// Monitoring, "topologyVersion"); zero before 4.4.
	process bson.ObjectID
}

// memberLimit bounds the question to a member that may be gone.
const memberLimit = 2 * time.Second

// members asks every server of the deployment, all at once. Behind a load
// balancer there is nobody to be asked.
func (s *site) members(ctx context.Context) map[string]member {
	if s.about.Topology == deployment.LoadBalanced {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, memberLimit, &limitError{"the limit for an answer", memberLimit})
	defer cancel()
	hello := "hello"
	if s.about.Version[0] < 5 {
		hello = "isMaster"
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	told := make(map[string]member)
	for _, host := range s.about.Hosts {
		all.Go(func() {
			var m member
			var reply bson.Raw
			m.err = retried(ctx, func() (err error) {
				reply, err = s.commands.at(ctx, host, "admin", bson.D{{Key: hello, Value: 1}})
				return err
			})
			m.process, _ = reply.Lookup("topologyVersion", "processId").ObjectIDOK()
			mu.Lock()
			defer mu.Unlock()
			told[host] = m
		})
	}
	all.Wait()
	return told
}

// fallen reports which servers died, or were restarted, since they were
// last asked: what failed meanwhile says nothing of the engine. A server that
// was not there in the first place is not missed.
func (s *site) fallen(ctx context.Context) error {
	before, now := s.before, s.members(ctx)
	if ctx.Err() != nil {
		return nil // it says nothing of the servers
	}
	s.before = now
	var all []string
	for _, host := range s.about.Hosts {
		was, asked := before[host]
		switch is := now[host]; {
		case was.err != nil:
		case is.err != nil:
			all = append(all, fmt.Sprintf("%s stopped answering: %s", host, is.err))
			now[host] = was // it is missed until it is back
		case asked && was.process != is.process:
			all = append(all, host+" was restarted")
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("in the middle of the test, %s", strings.Join(all, "; "))
}

// primaryType is the type of a primary in SDAM events.
const primaryType = "RSPrimary"

// elections reports, by the events of a test's clients that another member became
// primary while it ran, "" if none did.
func elections(logs []result.ClientLog) string {
	for _, l := range logs {
		primary := ""
		for _, e := range l.Events {
			if e.Type != result.ServerDescriptionChanged || e.SDAM == nil || e.SDAM.New == nil || e.SDAM.New.Type != primaryType {
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
