package selection_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/reference/selection"
)

// row is one decision: a topology drawn as text, the question, the answer.
type row struct {
	name          string // the reason for the row
	topology      selection.Topology
	preference    selection.Preference
	deprioritized string // addresses, joined by spaces
	options       func(*selection.Options)
	suitable      string // addresses, in order
	window        string // "" means: the same as suitable
	err           string // part of the error
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// server draws a server. Times are in seconds since an epoch of no meaning.
func server(address string, t selection.ServerType, rtt int, tags ...string) selection.Server {
	s := selection.Server{Address: address, Type: t, RTT: ms(rtt), LastUpdate: at(0), LastWrite: at(0)}
	for _, tag := range tags {
		name, value, _ := strings.Cut(tag, ":")
		if s.Tags == nil {
			s.Tags = map[string]string{}
		}
		s.Tags[name] = value
	}
	return s
}

func at(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }

// written is a server whose last write and last check are known.
func written(s selection.Server, write, update int) selection.Server {
	s.LastWrite, s.LastUpdate = at(write), at(update)
	return s
}

func topology(t selection.TopologyType, servers ...selection.Server) selection.Topology {
	return selection.Topology{Type: t, Servers: servers}
}

func mode(m selection.Mode, sets ...map[string]string) selection.Preference {
	return selection.Preference{Mode: m, TagSets: sets}
}

func stale(m selection.Mode, seconds int64, sets ...map[string]string) selection.Preference {
	return selection.Preference{Mode: m, TagSets: sets, MaxStalenessSeconds: &seconds}
}

type tags = map[string]string

const (
	primary, secondary, nearest = selection.Primary, selection.Secondary, selection.Nearest
	secondaryPreferred          = selection.SecondaryPreferred
)

func write(o *selection.Options)      { o.Operation = selection.Write }
func revision14(o *selection.Options) { o.Revision = selection.ReadPreferences2014() }

// rows are what TestTwin, which draws its questions, cannot ask or says less
// clearly.
func rows() []row {
	set := topology(selection.ReplicaSetWithPrimary,
		server("p", selection.RSPrimary, 5, "dc:ny", "rack:1"),
		server("s1", selection.RSSecondary, 5, "dc:ny", "rack:2"),
		server("s2", selection.RSSecondary, 5, "dc:sf"))
	orphans := topology(selection.ReplicaSetNoPrimary, set.Servers[1:]...)
	idle := topology(selection.ReplicaSetWithPrimary,
		server("a", selection.RSArbiter, 1), server("g", selection.RSGhost, 1), server("o", selection.RSOther, 1),
		server("u", selection.UnknownServer, 1), server("pp", selection.PossiblePrimary, 1),
		server("p", selection.RSPrimary, 5))
	sharded := topology(selection.Sharded,
		server("m1", selection.Mongos, 5), server("m2", selection.Mongos, 20), server("m3", selection.Mongos, 21), server("u", selection.UnknownServer, 1))
	single := func(t selection.ServerType) selection.Topology {
		return topology(selection.Single, server("x", t, 5))
	}
	lagging := topology(selection.ReplicaSetWithPrimary,
		written(server("p", selection.RSPrimary, 5), 100, 100),
		written(server("near", selection.RSSecondary, 5, "t:b"), 20, 100), // 80 + 10 s behind
		written(server("far", selection.RSSecondary, 5, "t:a"), 19, 100))  // 81 + 10 s behind
	laggingOrphans := topology(selection.ReplicaSetNoPrimary,
		written(server("latest", selection.RSSecondary, 5), 100, 500), // an old check does not make it stale here
		written(server("near", selection.RSSecondary, 5), 20, 100),
		written(server("far", selection.RSSecondary, 5), 19, 100))

	return []row{
		{name: "no mode is primary", topology: set, suitable: "p"},
		{name: "primary never falls back to a secondary", topology: orphans, preference: mode(primary)},
		{name: "arbiters, ghosts, others and unknown servers are never candidates", topology: idle, preference: mode(nearest), suitable: "p"},
		{name: "an unknown mode can never be served", topology: set, preference: mode("closest"), err: `"closest"`},
		{name: "an empty set matches all", topology: set, preference: mode(secondary, tags{"dc": "la"}, tags{}), suitable: "s1 s2"},
		{name: "an empty list restricts nothing", topology: set,
			preference: selection.Preference{Mode: selection.Secondary, TagSets: []tags{}}, suitable: "s1 s2"},
		{name: "primary with tags can never be served", topology: set, preference: mode(primary, tags{"dc": "ny"}), err: "tag sets"},
		{name: "primary with an empty tag set is the default", topology: set, preference: mode(primary, tags{}), suitable: "p"},
		{name: "the window reaches exactly 15 ms", topology: sharded, suitable: "m1 m2 m3", window: "m1 m2"},
		{name: "a window without width keeps the nearest",
			topology: sharded, options: func(o *selection.Options) { o.LocalThreshold = 0 }, suitable: "m1 m2 m3", window: "m1"},
		{name: "the window starts at the nearest suitable server, not at the nearest of all",
			topology:   topology(selection.ReplicaSetWithPrimary, server("p", selection.RSPrimary, 1), server("s1", selection.RSSecondary, 100), server("s2", selection.RSSecondary, 110)),
			preference: mode(secondary), suitable: "s1 s2"},
		{name: "tags are applied before the window",
			topology:   topology(selection.ReplicaSetNoPrimary, server("s1", selection.RSSecondary, 1), server("s2", selection.RSSecondary, 100, "dc:ny")),
			preference: mode(nearest, tags{"dc": "ny"}), suitable: "s2"},
		{name: "staleness: the limit itself is fresh", topology: lagging, preference: stale(secondary, 90), suitable: "near"},
		{name: "staleness: one second more lets the other in", topology: lagging, preference: stale(secondary, 91), suitable: "near far"},
		{name: "staleness: the primary has none", topology: lagging, preference: stale(nearest, 90), suitable: "p near"},
		{name: "staleness is applied before tags, so that a later set can serve", topology: lagging,
			preference: stale(secondary, 90, tags{"t": "a"}, tags{"t": "b"}), suitable: "near"},
		{name: "staleness without a primary is measured from the latest write", topology: laggingOrphans,
			preference: stale(secondary, 90), suitable: "latest near"},
		{name: "staleness takes clock differences between checks into account",
			topology: topology(selection.ReplicaSetWithPrimary,
				written(server("p", selection.RSPrimary, 5), 30, 80),
				written(server("s", selection.RSSecondary, 5), 5, 70)), // (70-5)-(80-30)+10 = 25
			preference: stale(secondary, 90), suitable: "s"},
		{name: "-1 sets no maximum", topology: lagging, preference: stale(secondary, -1), suitable: "near far"},
		{name: "nor does it with primary", topology: lagging, preference: stale(primary, -1), suitable: "p"},
		{name: "89 seconds are too few", topology: lagging, preference: stale(secondary, 89), err: "least that a replica set accepts is 90"},
		{name: "0 seconds are too few", topology: lagging, preference: stale(nearest, 0), err: "least"},
		{name: "less than -1 is too few", topology: lagging, preference: stale(nearest, -2), err: "least"},
		{name: "heartbeat and idle write period raise the minimum", topology: lagging, preference: stale(secondary, 129),
			options: func(o *selection.Options) { o.HeartbeatFrequency = 120 * time.Second }, err: "less than heartbeatFrequencyMS 120000"},
		{name: "exactly that minimum is accepted", topology: lagging, preference: stale(secondary, 130),
			options: func(o *selection.Options) { o.HeartbeatFrequency = 120 * time.Second }},
		{name: "the minimum holds without a primary", topology: laggingOrphans, preference: stale(secondary, 89), err: "least"},
		{name: "primary with a maximum can never be served", topology: lagging, preference: stale(primary, 120), err: "maxStalenessSeconds"},
		{name: "a maximum with no mode means primary", topology: lagging, preference: stale("", 120), err: "maxStalenessSeconds"},
		{name: "no minimum on a direct connection", topology: single(selection.RSSecondary), preference: stale(nearest, 1), suitable: "x"},
		{name: "no minimum on a sharded cluster", topology: sharded, preference: stale(nearest, 1), suitable: "m1 m2 m3", window: "m1 m2"},
		{name: "no minimum before the topology is known", topology: topology(selection.Unknown, server("x", selection.UnknownServer, 0)),
			preference: stale(nearest, 1)},
		{name: "more seconds than a duration can hold are no minimum", topology: lagging, preference: stale(secondary, 1<<62), suitable: "near far"},
		{name: "a deprioritized primary still measures staleness", topology: lagging,
			preference: stale(nearest, 90), deprioritized: "p", suitable: "near"},

		{name: "the preference of a write is not judged", topology: set, preference: stale(primary, 1), options: write, suitable: "p"},
		{name: "all deprioritized: they are used again", topology: sharded, deprioritized: "m1 m2 m3", suitable: "m1 m2 m3", window: "m1 m2"},
		{name: "secondaryPreferred: everything deprioritized is as if nothing was", topology: set,
			preference: mode(secondaryPreferred), deprioritized: "p s1 s2", suitable: "s1 s2"},
		{name: "tags choose among what is left, before anything comes back", topology: set,
			preference: mode(nearest, tags{"dc": "sf"}, tags{"dc": "ny"}), deprioritized: "s2", suitable: "p s1"},
		{name: "only the deprioritized server has the tags: it comes back", topology: set,
			preference: mode(nearest, tags{"dc": "sf"}), deprioritized: "s2", suitable: "s2"},
		{name: "an address that is not there changes nothing", topology: set, preference: mode(secondary), deprioritized: "s9", suitable: "s1 s2"},
		{name: "2014: a member that failed is not tried twice", topology: set,
			preference: mode(secondary), deprioritized: "s1 s2", options: revision14},
		{name: "2014: the others are", topology: set, preference: mode(nearest), deprioritized: "p s2", options: revision14, suitable: "s1"},
		{name: "2014: secondaryPreferred ends at the primary", topology: set,
			preference: mode(secondaryPreferred), deprioritized: "s1 s2", options: revision14, suitable: "p"},
		{name: "2014: a maximum staleness is unknown", topology: lagging, preference: stale(secondary, 1), options: revision14, suitable: "near far"},
		{name: "2014: a direct primary read from a secondary is refused",
			topology: single(selection.RSSecondary), options: revision14, err: "direct connection"},
		{name: "2014: a direct secondary read is not", topology: single(selection.RSSecondary),
			preference: mode(secondary), options: revision14, suitable: "x"},
	}
}

func addresses(servers []selection.Server) []string {
	out := []string{}
	for _, s := range servers {
		out = append(out, s.Address)
	}
	return out
}

// TestSelect also changes what it is given back, which is the caller's own.
func TestSelect(t *testing.T) {
	for _, r := range rows() {
		before, deprioritized, o := slices.Clone(r.topology.Servers), strings.Fields(r.deprioritized), selection.Defaults()
		if r.options != nil {
			r.options(&o)
		}
		suitable, err := selection.Suitable(r.topology, r.preference, deprioritized, o)
		window, err2 := selection.Select(r.topology, r.preference, deprioritized, o)
		if bad := new(selection.InvalidError); r.err != "" && (!errors.As(err, &bad) || !errors.As(err2, &bad) || !strings.Contains(err.Error(), r.err)) ||
			r.err == "" && (err != nil || err2 != nil) {
			t.Errorf("%s: errors %v, %v, want %q", r.name, err, err2, r.err)
		}
		if got := strings.Join(addresses(suitable), " "); got != r.suitable {
			t.Errorf("%s: suitable are %q, want %q", r.name, got, r.suitable)
		}
		if got := strings.Join(addresses(window), " "); got != cmp.Or(r.window, r.suitable) {
			t.Errorf("%s: in the window are %q, want %q", r.name, got, cmp.Or(r.window, r.suitable))
		}
		for i := range window {
			window[i].Address = "changed by the caller"
		}
		if diff := gocmp.Diff(before, r.topology.Servers); diff != "" {
			t.Errorf("%s: the topology changed\n%s", r.name, diff)
		}
	}
}

// Every choice of two different servers is met once, and of these the one
// with fewer operations is taken.
func TestPick(t *testing.T) {
	servers := []selection.Server{{Address: "a"}, {Address: "b"}, {Address: "c"}}
	load := map[string]int{"a": 3, "b": 0, "c": 3}
	picked := map[string]int{}
	for i := range 3 {
		for j := range 2 {
			numbers := []int{i, j}
			random := func(n int) int {
				v := numbers[0]
				numbers = numbers[1:]
				if v >= n {
					t.Fatalf("random(%d) asked for, where %d is a choice", n, v)
				}
				return v
			}
			picked[selection.Pick(servers, func(a string) int { return load[a] }, random).Address]++
		}
	}
	// b is in four of the six ordered pairs; the others are a with c.
	if diff := gocmp.Diff(map[string]int{"a": 1, "b": 4, "c": 1}, picked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	one := selection.Pick(servers[2:], func(string) int { return 9 }, func(int) int { t.Fatal("no choice to make"); return 0 })
	if one.Address != "c" {
		t.Errorf("the only server is %s", one.Address)
	}
}
