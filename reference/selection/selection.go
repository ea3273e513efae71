package selection

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Options are the client settings and the type of the operation.
type Options struct {
	Write              bool          // the operation writes; runCommand does not
	LocalThreshold     time.Duration // localThresholdMS; 0 keeps only the nearest servers
	HeartbeatFrequency time.Duration // heartbeatFrequencyMS
}

// Select returns the suitable servers within the latency window, in the order of the topology. If it returns no
// servers and no error, the caller waits for the topology to change. An error means that the preference is invalid,
// so waiting is useless.
func Select(t Topology, p Preference, deprioritized []string, o Options) ([]Server, error) {
	return selector{topology: t, preference: p, options: o}.all(deprioritized)
}

// Step is the result of one rule of a selection.
type Step struct {
	Rule    string   // describes the remaining servers
	Servers []Server // in the order of the topology
}

// Explain returns the steps of Select. The last step contains the servers that Select returns. If all suitable
// servers are deprioritized, the steps restart with all servers.
func Explain(t Topology, p Preference, deprioritized []string, o Options) ([]Step, error) {
	var steps []Step
	_, err := selector{topology: t, preference: p, options: o, step: func(rule string, left []Server) {
		steps = append(steps, Step{rule, left})
	}}.all(deprioritized)
	return steps, err
}

// InWindow returns the servers whose average round trip time exceeds the shortest by at most threshold (Server
// Selection, "Filtering suitable servers based on the latency window").
func InWindow(servers []Server, threshold time.Duration) []Server {
	if len(servers) == 0 {
		return nil
	}
	shortest := slices.MinFunc(servers, func(a, b Server) int { return cmp.Compare(a.RTT, b.RTT) }).RTT
	return Filter(servers, func(v Server) bool { return v.RTT-shortest <= threshold })
}

// Pick chooses two of the servers in the latency window at random and returns the one with fewer operations in
// progress (steps 6 and 7 of the algorithm). random(n) returns a number from 0 to n-1; operations returns a server's
// operationCount. The list must not be empty.
func Pick(servers []Server, operations func(address string) int, random func(n int) int) Server {
	if len(servers) == 1 {
		return servers[0]
	}
	i, j := random(len(servers)), random(len(servers)-1)
	if j >= i { // two different servers, every pair equally likely
		j++
	}
	if operations(servers[j].Address) < operations(servers[i].Address) {
		return servers[j]
	}
	return servers[i]
}

// selector applies the rules of one selection to a subset of the servers. It keeps the whole topology, because
// staleness is relative to the primary, even if it is deprioritized.
type selector struct {
	topology   Topology
	preference Preference
	options    Options
	step       func(rule string, left []Server) // if not nil, is called with the result of each rule
}

// leaves passes the result of a rule to step, and returns it.
func (s selector) leaves(left []Server, rule string, args ...any) []Server {
	if s.step != nil {
		s.step(fmt.Sprintf(rule, args...), left)
	}
	return left
}

// all returns the suitable servers within the latency window. Writes ignore the preference.
func (s selector) all(deprioritized []string) ([]Server, error) {
	if s.options.Write {
		s.preference = Preference{}
	}
	p, heartbeat := s.preference, s.options.HeartbeatFrequency
	err := cmp.Or(p.Validate(), p.validateStaleness(s.topology.Type, heartbeat))
	if err != nil {
		return nil, err
	}
	found := s.usable(deprioritized)
	if len(found) == 0 {
		return nil, nil
	}
	return s.leaves(InWindow(found, s.options.LocalThreshold), "within localThresholdMS %d of the nearest of them",
		s.options.LocalThreshold.Milliseconds()), nil
}

// usable returns the suitable servers before the latency window is applied (Server Selection, "Multi-threaded or
// asynchronous server selection", step 3). Deprioritized servers are used only if no other server is suitable.
func (s selector) usable(deprioritized []string) []Server {
	all := s.topology.Servers
	preferred := Filter(all, func(v Server) bool { return !slices.Contains(deprioritized, v.Address) })
	if len(preferred) == len(all) {
		return s.suitable(all)
	}
	if found := s.suitable(s.leaves(preferred, "not deprioritized")); len(found) > 0 {
		return found
	}
	return s.suitable(s.leaves(all, "all, because no other is suitable"))
}

// suitable applies the rules of the topology type.
func (s selector) suitable(servers []Server) []Server {
	switch s.topology.Type {
	case Single:
		return s.leaves(Filter(servers, Server.Available), "available, of any type")
	case LoadBalanced:
		return s.leaves(Filter(servers, OfType(LoadBalancer)), "the load balancer")
	case Sharded:
		return s.leaves(Filter(servers, OfType(Mongos)), "mongoses")
	case ReplicaSetWithPrimary, ReplicaSetNoPrimary:
		return s.members(servers)
	default: // Unknown
		return s.leaves(nil, "none, because the topology is unknown")
	}
}

// members applies the mode. Tags and staleness apply to the primary only in mode nearest.
func (s selector) members(servers []Server) []Server {
	primaries := func() []Server { return s.leaves(Filter(servers, OfType(RSPrimary)), "the primary") }
	secondaries := func() []Server { return s.eligible(s.leaves(Filter(servers, OfType(RSSecondary)), "secondaries")) }
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
		return s.eligible(s.leaves(Filter(servers, OfType(RSPrimary, RSSecondary)), "the primary and secondaries"))
	}
}

// eligible filters candidates by maxStalenessSeconds, and then by the first tag set with any match, so that a later tag
// set is used if all matches of an earlier one are too stale.
func (s selector) eligible(candidates []Server) []Server {
	if most, ok := s.preference.maxStaleness(); ok {
		candidates = s.leaves(Filter(candidates, func(v Server) bool { return s.staleness(v) <= most }),
			"at most maxStalenessSeconds %d stale; the primary is never stale", most/time.Second)
	}
	for i, set := range s.preference.TagSets {
		found := s.leaves(Filter(candidates, func(v Server) bool { return HasTags(v.Tags, set) }),
			"with the tags of set %d", i+1)
		if len(found) > 0 || i == len(s.preference.TagSets)-1 {
			return found
		}
	}
	return candidates
}

// staleness estimates the replication lag of a server (Max Staleness, "Client"). It may be negative.
func (s selector) staleness(v Server) time.Duration {
	if v.Type != RSSecondary {
		return 0
	}
	all := s.topology.Servers
	if i := slices.IndexFunc(all, OfType(RSPrimary)); i >= 0 && s.topology.Type == ReplicaSetWithPrimary {
		p := all[i]
		return v.LastUpdate.Sub(v.LastWrite) - p.LastUpdate.Sub(p.LastWrite) + s.options.HeartbeatFrequency
	}
	latest := slices.MaxFunc(Filter(all, OfType(RSSecondary)),
		func(a, b Server) int { return a.LastWrite.Compare(b.LastWrite) })
	return latest.LastWrite.Sub(v.LastWrite) + s.options.HeartbeatFrequency
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

// OfType returns a predicate that reports whether a server has one of the types.
func OfType(types ...ServerType) func(Server) bool {
	return func(v Server) bool { return slices.Contains(types, v.Type) }
}

// Filter returns a new slice of the servers for which fits returns true.
func Filter(servers []Server, fits func(Server) bool) []Server {
	var out []Server
	for _, v := range servers {
		if fits(v) {
			out = append(out, v)
		}
	}
	return out
}
