package selection_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unified-test-runner/utr/reference/selection"
)

// twin is a second implementation of Select. It checks one server at a time.
func twin(t selection.Topology, p selection.Preference, deprioritized []string, o selection.Options) []string {
	serves := func(v selection.Server, among []selection.Server) bool {
		kind := map[selection.TopologyType]selection.ServerType{selection.Sharded: selection.Mongos,
			selection.LoadBalanced: selection.LoadBalancer}
		switch t.Type {
		case selection.Unknown:
			return false
		case selection.Single:
			return v.Type != selection.UnknownServer && v.Type != selection.PossiblePrimary
		case selection.Sharded, selection.LoadBalanced:
			return v.Type == kind[t.Type]
		}
		exists := func(fits func(selection.Server) bool) bool { return slices.ContainsFunc(among, fits) }
		isPrimary := func(w selection.Server) bool { return w.Type == selection.RSPrimary }
		m := p.Mode
		if o.Write || m == "" {
			m = selection.Primary
		}
		candidate := func(w selection.Server) bool {
			return w.Type == selection.RSSecondary || (w.Type == selection.RSPrimary && m == selection.Nearest)
		}
		freshEnough := func(w selection.Server) bool {
			if p.MaxStalenessSeconds == nil || *p.MaxStalenessSeconds < 0 || isPrimary(w) {
				return true
			}
			lag := o.HeartbeatFrequency
			if i := slices.IndexFunc(t.Servers, isPrimary); i >= 0 && t.Type == selection.ReplicaSetWithPrimary {
				b := t.Servers[i]
				lag += w.LastUpdate.Sub(w.LastWrite) - b.LastUpdate.Sub(b.LastWrite)
			} else {
				worst := time.Duration(0)
				for _, x := range t.Servers {
					if x.Type == selection.RSSecondary {
						worst = max(worst, x.LastWrite.Sub(w.LastWrite))
					}
				}
				lag += worst
			}
			return lag <= time.Duration(*p.MaxStalenessSeconds)*time.Second
		}
		bears := func(w selection.Server, set tags) bool {
			n := 0
			for k, x := range w.Tags {
				if y, ok := set[k]; ok && x == y {
					n++
				}
			}
			return n == len(set)
		}
		eligible := func(w selection.Server) bool {
			if !candidate(w) || !freshEnough(w) {
				return false
			}
			if len(p.TagSets) == 0 {
				return true
			}
			for _, set := range p.TagSets {
				if bears(w, set) {
					return true
				}
				if exists(func(x selection.Server) bool { return candidate(x) && freshEnough(x) && bears(x, set) }) {
					return false // an earlier set matches other servers
				}
			}
			return false
		}
		switch m {
		case selection.Primary:
			return isPrimary(v)
		case selection.PrimaryPreferred:
			return isPrimary(v) || (!exists(isPrimary) && eligible(v))
		case selection.SecondaryPreferred:
			return eligible(v) || (isPrimary(v) && !exists(eligible))
		default:
			return eligible(v)
		}
	}
	pass := func(among []selection.Server) []string {
		return addresses(slices.DeleteFunc(slices.Clone(among), func(v selection.Server) bool { return !serves(v, among) }))
	}
	rest := slices.DeleteFunc(slices.Clone(t.Servers),
		func(v selection.Server) bool { return slices.Contains(deprioritized, v.Address) })
	if out := pass(rest); len(out) > 0 {
		return out
	}
	return pass(t.Servers)
}

// random generates a valid selection.
func random(r *rand.Rand) (selection.Topology, selection.Preference, []string, selection.Options) {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	some := func() tags {
		return tagged(one("", "x:1", "x:2", "y:1", "y:2", "x:1,y:1", "x:1,y:2", "x:2,y:1", "x:2,y:2"))
	}
	t := selection.Topology{Type: selection.TopologyType(one("Unknown", "Single", "ReplicaSetNoPrimary",
		"ReplicaSetWithPrimary",
		"ReplicaSetWithPrimary", "ReplicaSetNoPrimary", "ReplicaSetWithPrimary", "Sharded", "LoadBalanced"))}
	var deprioritized []string
	hasPrimary := false
	for i := range 1 + r.IntN(5) {
		s := selection.Server{Address: string(rune('a' + i)), RTT: ms(r.IntN(40)), LastWrite: at(r.IntN(200)),
			LastUpdate: at(200 + r.IntN(30))}
		s.Type = selection.ServerType(one("Unknown", "PossiblePrimary", "Standalone", "Mongos", "RSPrimary", "RSPrimary",
			"RSSecondary",
			"RSSecondary", "RSSecondary", "RSArbiter", "RSOther", "RSGhost", "LoadBalancer"))
		if s.Type == selection.RSPrimary && (hasPrimary || t.Type == selection.ReplicaSetNoPrimary) {
			s.Type = selection.RSSecondary
		}
		hasPrimary = hasPrimary || s.Type == selection.RSPrimary
		s.Tags = some()
		if r.IntN(3) == 0 {
			deprioritized = append(deprioritized, s.Address)
		}
		t.Servers = append(t.Servers, s)
	}
	p := selection.Preference{Mode: selection.Mode(one("", "primary", "primaryPreferred", "secondary",
		"secondaryPreferred", "nearest"))}
	if p.Mode != "" && p.Mode != selection.Primary {
		for range r.IntN(3) {
			p.TagSets = append(p.TagSets, some())
		}
		if r.IntN(2) == 0 {
			seconds := 90 + r.Int64N(120)
			p.MaxStalenessSeconds = &seconds
		}
	}
	o := defaults
	o.Write = r.IntN(2) == 1
	return t, p, deprioritized, o
}

func TestTwin(t *testing.T) {
	for seed := range uint64(50_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		topology, preference, deprioritized, options := random(r)
		if options.Write {
			preference = selection.Preference{}
		}
		got, err := suitable(topology, preference, deprioritized, options)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(twin(topology, preference, deprioritized, options), addresses(got)); diff != "" {
			t.Fatalf("seed %d: %+v %+v without %v (-twin +Select)\n%s", seed, topology, preference, deprioritized, diff)
		}
		window := selection.InWindow(got, options.LocalThreshold)
		steps, err := selection.Explain(topology, preference, deprioritized, options)
		if err != nil || len(steps) == 0 {
			t.Fatalf("seed %d: %d steps, %v", seed, len(steps), err)
		}
		if diff := cmp.Diff(addresses(window), addresses(steps[len(steps)-1].Servers)); diff != "" {
			t.Fatalf("seed %d: %+v: the last step differs (-Select +Explain)\n%s", seed, steps, diff)
		}
		for _, s := range got {
			inside := !slices.ContainsFunc(got, func(o selection.Server) bool { return s.RTT > o.RTT+options.LocalThreshold })
			if inside != slices.ContainsFunc(window, func(o selection.Server) bool { return o.Address == s.Address }) {
				t.Fatalf("seed %d: %s in the window is %v", seed, s.Address, !inside)
			}
		}
	}
}
