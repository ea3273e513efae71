package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/net/processtime"
	"github.com/unified-test-runner/utr/result"
)

// member is a server's answer.
type member struct {
	err error // why it does not answer
	// process identifies the process (Server Discovery and Monitoring, "topologyVersion"); zero before 4.4.
	process  bson.ObjectID
	primary  bool // it reports that it accepts writes
	readOnly bool // it reports that it accepts no writes
}

// The commands that the runner sends to servers during a test. They need no user. Suites make isMaster fail, but not
// whatsmyuri.
var (
	answer    = bson.D{{Key: "whatsmyuri", Value: 1}}
	whoAreYou = bson.D{{Key: "isMaster", Value: 1}}
)

// ask sends a command to all servers concurrently.
func (s *site) ask(ctx context.Context, command bson.D) map[string]member {
	ctx, cancel := processtime.Limit(ctx, askEvery, &limitError{"the limit for an answer", askEvery})
	defer cancel()
	members := make([]member, len(s.about.Hosts))
	var asking sync.WaitGroup
	for i, host := range s.about.Hosts {
		asking.Go(func() {
			reply, err := s.commands.ask(ctx, host, command)
			process, _ := reply.Lookup("topologyVersion", "processId").ObjectIDOK()
			writes, known := reply.Lookup("ismaster").BooleanOK()
			members[i] = member{err, process, known && writes, known && !writes}
		})
	}
	asking.Wait()
	all := make(map[string]member)
	for i, host := range s.about.Hosts {
		all[host] = members[i]
	}
	return all
}

// silence returns why a server did not answer, without its address.
func (m member) silence(host string) string {
	return strings.TrimPrefix(m.err.Error(), "dial tcp "+host+": ")
}

// ended reports whether a server's process has ended: nothing listens on its port.
func (s *site) ended(ctx context.Context, host string) bool {
	ctx, cancel := processtime.Limit(ctx, askEvery, &limitError{"the limit for an answer", askEvery})
	defer cancel()
	_, err := s.commands.ask(ctx, host, answer)
	return errors.Is(err, syscall.ECONNREFUSED)
}

// unusable returns why the servers cannot be used: none answered, or none of a replica set is primary.
func (s *site) unusable(now map[string]member) *lostError {
	answers, writes := false, s.about.Topology != deployment.ReplicaSet
	var why []string
	for _, host := range s.about.Hosts {
		m := now[host]
		answers, writes = answers || m.err == nil, writes || m.err == nil && !m.readOnly
		switch {
		case m.err != nil:
			why = append(why, host+": "+m.silence(host))
		case m.readOnly:
			why = append(why, host+" is not primary")
		}
	}
	switch {
	case !answers:
		return &lostError{stopped, strings.Join(why, "; ")}
	case !writes:
		return &lostError{headless, strings.Join(why, "; ")}
	}
	return nil
}

// died returns an error that names the servers that ended or restarted since the last call. The engine is not to blame
// for failures then. died ignores servers that were unreachable before.
func (s *site) died(ctx context.Context) error {
	if s.about.Topology == deployment.LoadBalanced {
		return nil // each answer may be of another server
	}
	before, now := s.before, s.ask(ctx, whoAreYou)
	if ctx.Err() != nil {
		return nil // inconclusive
	}
	s.before = now
	unusable := s.unusable(now)
	var all []string
	for _, host := range s.about.Hosts {
		was, known := before[host]
		switch is := now[host]; {
		case was.err != nil:
		case is.err != nil:
			all = append(all, host+" stopped answering: "+is.silence(host))
			now[host] = was // report it until it is back
		case known && was.process != is.process:
			all = append(all, host+" was restarted")
		}
	}
	if unusable != nil && unusable.what == headless {
		all = append(all, unusable.Error())
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("during the test, %s", strings.Join(all, "; "))
}

// election describes a new primary in the events of a test's clients and in the servers' last answers, or returns "". A
// test can end before its clients discover the new primary.
func (s *site) election(logs []result.ClientLog) string {
	changed := func(from, to string) string {
		return fmt.Sprintf("the primary changed during the test, from %s to %s", from, to)
	}
	for _, l := range logs {
		primary := ""
		for _, e := range l.Events {
			if e.Type != result.ServerDescriptionChanged || e.New == nil || e.New.Type != "RSPrimary" {
				continue
			}
			if primary != "" && e.Address != primary {
				return changed(primary, e.Address)
			}
			primary = e.Address
		}
		if !s.before[primary].readOnly {
			continue // also if no client knew a primary
		}
		for _, host := range s.about.Hosts {
			if s.before[host].primary {
				return changed(primary, host)
			}
		}
	}
	return ""
}
