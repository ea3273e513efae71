package selection_test

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
)

type tags = map[string]string

const nearest = selection.Nearest

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func at(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }

func mode(m selection.Mode, sets ...tags) selection.Preference {
	return selection.Preference{Mode: m, TagSets: sets}
}

func addresses(servers []selection.Server) []string {
	out := []string{}
	for _, s := range servers {
		out = append(out, s.Address)
	}
	return out
}

// topologies are a type and servers: ADDRESS/TYPE/RTT/TAGS/WRITTEN/CHECKED, where
// times are in seconds since an epoch of no meaning.
var topologies = map[string]string{
	"set":     "ReplicaSetWithPrimary p/RSPrimary/5/dc:ny,rack:1 s1/RSSecondary/5/dc:ny,rack:2 s2/RSSecondary/5/dc:sf",
	"orphans": "ReplicaSetNoPrimary s1/RSSecondary/5/dc:ny,rack:2 s2/RSSecondary/5/dc:sf",
	"idle":    "ReplicaSetWithPrimary a/RSArbiter/1 g/RSGhost/1 o/RSOther/1 u/Unknown/1 pp/PossiblePrimary/1 p/RSPrimary/5",
	"sharded": "Sharded m1/Mongos/5 m2/Mongos/20 m3/Mongos/21 u/Unknown/1",
	"direct":  "Single x/RSSecondary/5",
	"unknown": "Unknown x/Unknown/0",
	"spread":  "ReplicaSetWithPrimary p/RSPrimary/1 s1/RSSecondary/100 s2/RSSecondary/110",
	"far ny":  "ReplicaSetNoPrimary s1/RSSecondary/1 s2/RSSecondary/100/dc:ny",
	// near is 80 + 10 s behind, far 81 + 10
	"lagging": "ReplicaSetWithPrimary p/RSPrimary/5//100/100 near/RSSecondary/5/t:b/20/100 far/RSSecondary/5/t:a/19/100",
	// the old check of the latest does not make it stale
	"lagging orphans": "ReplicaSetNoPrimary latest/RSSecondary/5//100/500 near/RSSecondary/5//20/100 far/RSSecondary/5//19/100",
	// (70-5)-(80-30)+10 = 25
	"clocks": "ReplicaSetWithPrimary p/RSPrimary/5//30/80 s/RSSecondary/5//5/70",
}

// drawn reads a topology.
func drawn(text string) selection.Topology {
	kind, rest, _ := strings.Cut(text, " ")
	out := selection.Topology{Type: selection.TopologyType(kind)}
	for word := range strings.FieldsSeq(rest) {
		part := append(strings.Split(word, "/"), "", "", "")
		number := func(i int) int { n, _ := strconv.Atoi(part[i]); return n }
		out.Servers = append(out.Servers, selection.Server{Address: part[0], Type: selection.ServerType(part[1]), RTT: ms(number(2)),
			Tags: tagged(part[3]), LastWrite: at(number(4)), LastUpdate: at(number(5))})
	}
	return out
}

func tagged(text string) tags {
	out := tags{}
	for _, tag := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '-' }) {
		name, value, _ := strings.Cut(tag, ":")
		out[name] = value
	}
	return out
}

// preferred reads a preference: a mode, sets of tags ("-" is an empty one), and
// "<" with a maximum of staleness. "()" is a list without sets.
func preferred(text string) (p selection.Preference) {
	for i, word := range strings.Split(text, " ") {
		if stale, ok := strings.CutPrefix(word, "<"); ok {
			seconds, _ := strconv.ParseInt(stale, 10, 64)
			p.MaxStalenessSeconds = &seconds
		} else if i == 0 {
			p.Mode = selection.Mode(word)
		} else if word == "()" {
			p.TagSets = []tags{}
		} else {
			p.TagSets = append(p.TagSets, tagged(word))
		}
	}
	return p
}

// TestSelect has what TestTwin, which draws its questions, cannot ask or says less
// clearly. It also changes what it is given back, which is the caller's own.
func TestSelect(t *testing.T) {
	options := map[string]func(*selection.Options){"write": func(o *selection.Options) { o.Operation = selection.Write },
		"2014":      func(o *selection.Options) { o.Revision = selection.ReadPreferences2014() },
		"no window": func(o *selection.Options) { o.LocalThreshold = 0 }, "": func(*selection.Options) {},
		"rare heartbeats": func(o *selection.Options) { o.HeartbeatFrequency = 120 * time.Second }}
	for _, row := range []struct {
		reason, topology, preference, deprioritized, options string
		want                                                 string // suitable servers, "|" and those in the window unless all are; "!" and an error
	}{
		{"no mode is primary", "set", "", "", "", "p"},
		{"primary never falls back to a secondary", "orphans", "primary", "", "", ""},
		{"arbiters, ghosts, others and unknown servers are never candidates", "idle", "nearest", "", "", "p"},
		{"an unknown mode can never be served", "set", "closest", "", "", `!"closest"`},
		{"an empty set matches all", "set", "secondary dc:la -", "", "", "s1 s2"},
		{"an empty list restricts nothing", "set", "secondary ()", "", "", "s1 s2"},
		{"primary with tags can never be served", "set", "primary dc:ny", "", "", "!tag sets"},
		{"primary with an empty tag set is the default", "set", "primary -", "", "", "p"},
		{"the window reaches exactly 15 ms", "sharded", "", "", "", "m1 m2 m3|m1 m2"},
		{"a window without width keeps the nearest", "sharded", "", "", "no window", "m1 m2 m3|m1"},
		{"the window starts at the nearest suitable server, not at the nearest of all", "spread", "secondary", "", "", "s1 s2"},
		{"tags are applied before the window", "far ny", "nearest dc:ny", "", "", "s2"},
		{"staleness: the limit itself is fresh", "lagging", "secondary <90", "", "", "near"},
		{"staleness: one second more lets the other in", "lagging", "secondary <91", "", "", "near far"},
		{"staleness: the primary has none", "lagging", "nearest <90", "", "", "p near"},
		{"staleness is applied before tags, so that a later set can serve", "lagging", "secondary t:a t:b <90", "", "", "near"},
		{"staleness without a primary is measured from the latest write", "lagging orphans", "secondary <90", "", "", "latest near"},
		{"staleness takes clock differences between checks into account", "clocks", "secondary <90", "", "", "s"},
		{"-1 sets no maximum", "lagging", "secondary <-1", "", "", "near far"},
		{"nor does it with primary", "lagging", "primary <-1", "", "", "p"},
		{"89 seconds are too few", "lagging", "secondary <89", "", "", "!least that a replica set accepts is 90"},
		{"0 seconds are too few", "lagging", "nearest <0", "", "", "!least"},
		{"less than -1 is too few", "lagging", "nearest <-2", "", "", "!least"},
		{"heartbeat and idle write period raise the minimum", "lagging", "secondary <129", "", "rare heartbeats", "!less than heartbeatFrequencyMS 120000"},
		{"exactly that minimum is accepted", "lagging", "secondary <130", "", "rare heartbeats", ""},
		{"the minimum holds without a primary", "lagging orphans", "secondary <89", "", "", "!least"},
		{"primary with a maximum can never be served", "lagging", "primary <120", "", "", "!maxStalenessSeconds"},
		{"a maximum with no mode means primary", "lagging", " <120", "", "", "!maxStalenessSeconds"},
		{"no minimum on a direct connection", "direct", "nearest <1", "", "", "x"},
		{"no minimum on a sharded cluster", "sharded", "nearest <1", "", "", "m1 m2 m3|m1 m2"},
		{"no minimum before the topology is known", "unknown", "nearest <1", "", "", ""},
		{"more seconds than a duration can hold are no minimum", "lagging", "secondary <4611686018427387904", "", "", "near far"},
		{"a deprioritized primary still measures staleness", "lagging", "nearest <90", "p", "", "near"},
		{"the preference of a write is not judged", "set", "primary <1", "", "write", "p"},
		{"all deprioritized: they are used again", "sharded", "", "m1 m2 m3", "", "m1 m2 m3|m1 m2"},
		{"secondaryPreferred: everything deprioritized is as if nothing was", "set", "secondaryPreferred", "p s1 s2", "", "s1 s2"},
		{"tags choose among what is left, before anything comes back", "set", "nearest dc:sf dc:ny", "s2", "", "p s1"},
		{"only the deprioritized server has the tags: it comes back", "set", "nearest dc:sf", "s2", "", "s2"},
		{"an address that is not there changes nothing", "set", "secondary", "s9", "", "s1 s2"},
		{"2014: a member that failed is not tried twice", "set", "secondary", "s1 s2", "2014", ""},
		{"2014: the others are", "set", "nearest", "p s2", "2014", "s1"},
		{"2014: secondaryPreferred ends at the primary", "set", "secondaryPreferred", "s1 s2", "2014", "p"},
		{"2014: a maximum staleness is unknown", "lagging", "secondary <1", "", "2014", "near far"},
		{"2014: a direct primary read from a secondary is refused", "direct", "", "", "2014", "!direct connection"},
		{"2014: a direct secondary read is not", "direct", "secondary", "", "2014", "x"},
	} {
		topology, o, deprioritized := drawn(topologies[row.topology]), selection.Defaults(), strings.Fields(row.deprioritized)
		before := slices.Clone(topology.Servers)
		options[row.options](&o)
		suitable, err := selection.Suitable(topology, preferred(row.preference), deprioritized, o)
		window, err2 := selection.Select(topology, preferred(row.preference), deprioritized, o)
		if text, fails := strings.CutPrefix(row.want, "!"); fails {
			if bad := new(selection.InvalidError); !errors.As(err, &bad) || !errors.As(err2, &bad) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: errors %v, %v", row.reason, err, err2)
			}
			continue
		} else if err != nil || err2 != nil {
			t.Errorf("%s: errors %v, %v", row.reason, err, err2)
		}
		want, inside, _ := strings.Cut(row.want, "|")
		testkit.Equal(t, row.reason+": suitable", strings.Join(addresses(suitable), " "), want)
		testkit.Equal(t, row.reason+": in the window", strings.Join(addresses(window), " "), cmp.Or(inside, want))
		for i := range window {
			window[i].Address = "changed by the caller"
		}
		if diff := gocmp.Diff(before, topology.Servers); diff != "" {
			t.Errorf("%s: the topology changed\n%s", row.reason, diff)
		}
	}
}

// Every choice of two different servers is met once, and of these the one
// with fewer operations is taken.
func TestPick(t *testing.T) {
	servers := []selection.Server{{Address: "a"}, {Address: "b"}, {Address: "c"}}
	load, picked := map[string]int{"a": 3, "b": 0, "c": 3}, map[string]int{}
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
	testkit.Equal(t, "picked", picked, map[string]int{"a": 1, "b": 4, "c": 1})
	one := selection.Pick(servers[2:], func(string) int { return 9 }, func(int) int { t.Fatal("no choice to make"); return 0 })
	testkit.Equal(t, "the only server", one.Address, "c")
}
