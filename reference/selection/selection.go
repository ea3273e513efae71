package selection

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Operation is what a server is selected for.
type Operation uint8

// The operation types. A generic runCommand counts as a read.
const (
	Read Operation = iota
	Write
)

// Options are the settings of the client and the kind of operation.
type Options struct {
	Operation          Operation
	LocalThreshold     time.Duration // localThresholdMS; 0 is a window without width
	HeartbeatFrequency time.Duration // heartbeatFrequencyMS
}

// Select gives the servers that the operation may be sent to: the suitable
// ones within the latency window, in the order of the topology. None is not an
// error: the caller waits for the topology to change. An error says that the
// preference is not valid, so that waiting would not help.
func Select(t Topology, p Preference, deprioritized []string, o Options) ([]Server, error) {
	return selector{topology: t, preference: p, options: o}.all(deprioritized)
}

// Step is what one rule of a selection leaves.
type Step struct {
	// Rule says which servers remain.
	Rule string
	// Servers are those, in the order of the topology.
	Servers []Server
}

// Explain gives the steps of Select: the last one leaves what Select gives. If no server
// that is not deprioritized is suitable, the steps begin again with all servers.
func Explain(t Topology, p Preference, deprioritized []string, o Options) ([]Step, error) {
	var steps []Step
	_, err := selector{topology: t, preference: p, options: o, step: func(rule string, left []Server) {
		steps = append(steps, Step{rule, left})
	}}.all(deprioritized)
	return steps, err
}

// InWindow keeps the servers whose average round trip time is at most
// threshold above the shortest (Server Selection, "Filtering suitable servers
// based on the latency window").
func InWindow(servers []Server, threshold time.Duration) []Server {
	if len(servers) == 0 {
		return nil
	}
	shortest := slices.MinFunc(servers, func(a, b Server) int { return cmp.Compare(a.RTT, b.RTT) }).RTT
	return Keep(servers, func(v Server) bool { return v.RTT-shortest <= threshold })
}

// Pick chooses one of the servers in the latency window: two at random, and of
// these the one with fewer operations under way (steps 6 and 7 of the
// algorithm). random(n) gives a number from 0 to n-1; operations gives a
// server's operationCount. The list must not be empty.
func Pick(servers []Server, operations func(address string) int, random func(n int) int) Server {
	if len(servers) == 1 {
		return servers[0]
	}
	i, j := random(len(servers)), random(len(servers)-1)
	if j >= i { // two different ones, each pair as likely as any other
		j++
	}
	if operations(servers[j].Address) < operations(servers[i].Address) {
		return servers[j]
	}
	return servers[i]
}

// selector applies the rules of one selection to any part of the servers. It
// keeps the whole topology, since staleness is judged by a primary that may be
// deprioritized itself.
type selector struct {
	topology   Topology
	preference Preference
	options    Options
	// step, if it is not nil, is called with what each rule leaves.
	step func(rule string, left []Server)
}

// leaves reports what a rule leaves.
func (s selector) leaves(left []Server, rule string, args ...any) []Server {
	if s.step != nil {
		s.step(fmt.Sprintf(rule, args...), left)
	}
	return left
}

func (s selector) all(deprioritized []string) ([]Server, error) {
	found, err := s.usable(deprioritized)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return s.leaves(InWindow(found, s.options.LocalThreshold), "at most localThresholdMS %d farther than the nearest of them",
		s.options.LocalThreshold.Milliseconds()), nil
}

// usable gives the suitable servers before the latency window is applied
// (Server Selection, "Multi-threaded or asynchronous server selection", step
// 3). The preference of a write is ignored. Deprioritized servers are used if no
// other is suitable.
func (s selector) usable(deprioritized []string) ([]Server, error) {
	if s.options.Operation == Write {
		s.preference = Preference{}
	}
	if err := s.preference.Validate(); err != nil {
		return nil, err
	}
	if err := s.preference.validateStaleness(s.topology.Type, s.options.HeartbeatFrequency); err != nil {
		return nil, err
	}
	all := s.topology.Servers
	preferred := Keep(all, func(v Server) bool { return !slices.Contains(deprioritized, v.Address) })
	if len(preferred) == len(all) {
		return s.suitable(all), nil
	}
	if found := s.suitable(s.leaves(preferred, "not deprioritized")); len(found) > 0 {
		return found, nil
	}
	return s.suitable(s.leaves(all, "all, because no other is suitable")), nil
}

// suitable applies the rules of the topology type.
func (s selector) suitable(servers []Server) []Server {
	switch s.topology.Type {
	case Single:
		return s.leaves(Keep(servers, Server.Available), "available, whatever its type")
	case LoadBalanced:
		return s.leaves(Keep(servers, OfType(LoadBalancer)), "the load balancer")
	case Sharded:
		return s.leaves(Keep(servers, OfType(Mongos)), "mongoses")
	case ReplicaSetWithPrimary, ReplicaSetNoPrimary:
		return s.members(servers)
	default: // Unknown
		return s.leaves(nil, "none, because the topology is not known")
	}
}

// members applies the modes. The two that prefer are one mode first and
// another as the fallback; tags and staleness never touch the primary there.
func (s selector) members(servers []Server) []Server {
	primaries := func() []Server { return s.leaves(Keep(servers, OfType(RSPrimary)), "the primary") }
	secondaries := func() []Server { return s.eligible(s.leaves(Keep(servers, OfType(RSSecondary)), "secondaries")) }
	switch s.preference.Reads() {
	case Primary:
		return primaries()
	case Secondary:
		return secondaries()
	case PrimaryPreferred:
		if found := primaries(); len(found) > 0 {
			return found
		}
		return secondaries()
	case SecondaryPreferred:
		if found := secondaries(); len(found) > 0 {
			return found
		}
		return primaries()
	default: // Nearest
		return s.eligible(s.leaves(Keep(servers, OfType(RSPrimary, RSSecondary)), "the primary and secondaries"))
	}
}

// eligible filters candidates by staleness first, and then by tag sets, so
// that a later tag set can serve when those of an earlier one are too stale.
func (s selector) eligible(candidates []Server) []Server {
	return s.tagged(s.fresh(candidates))
}

func (s selector) fresh(candidates []Server) []Server {
	most, ok := s.preference.maxStaleness()
	if !ok {
		return candidates
	}
	return s.leaves(Keep(candidates, func(v Server) bool { return s.staleness(v) <= most }),
		"at most maxStalenessSeconds %d stale, the primary never", most/time.Second)
}

// staleness estimates how far a server lags (Max Staleness, "Client"). It can
// be negative for a while.
func (s selector) staleness(v Server) time.Duration {
	if v.Type != RSSecondary {
		return 0
	}
	all := s.topology.Servers
	if i := slices.IndexFunc(all, OfType(RSPrimary)); i >= 0 && s.topology.Type == ReplicaSetWithPrimary {
		p := all[i]
		return v.LastUpdate.Sub(v.LastWrite) - p.LastUpdate.Sub(p.LastWrite) + s.options.HeartbeatFrequency
	}
	var latest time.Time
	for i, o := range Keep(all, OfType(RSSecondary)) {
		if i == 0 || o.LastWrite.After(latest) {
			latest = o.LastWrite
		}
	}
	return latest.Sub(v.LastWrite) + s.options.HeartbeatFrequency
}

// tagged keeps the candidates of the first tag set that matches any.
func (s selector) tagged(candidates []Server) []Server {
	if len(s.preference.TagSets) == 0 {
		return candidates
	}
	for i, set := range s.preference.TagSets {
		found := s.leaves(Keep(candidates, func(v Server) bool { return HasTags(v.Tags, set) }), "with the tags of set %d", i+1)
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// HasTags reports whether a server has every tag of a set.
func HasTags(server, set map[string]string) bool {
	for name, value := range set {
		if v, ok := server[name]; !ok || v != value {
			return false
		}
	}
	return true
}

// OfType accepts servers of some types.
func OfType(types ...ServerType) func(Server) bool {
	return func(v Server) bool { return slices.Contains(types, v.Type) }
}

// Keep copies the servers that fit.
func Keep(servers []Server, fits func(Server) bool) []Server {
	var out []Server
	for _, v := range servers {
		if fits(v) {
			out = append(out, v)
		}
	}
	return out
}
