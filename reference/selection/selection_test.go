package selection_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

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

// drawn reads a topology.
func drawn(text string) selection.Topology {
	kind, rest, _ := strings.Cut(text, " ")
	out := selection.Topology{Type: selection.TopologyType(kind)}
	for word := range strings.FieldsSeq(rest) {
		part := append(strings.Split(word, "/"), "", "", "")
		number := func(i int) int { n, _ := strconv.Atoi(part[i]); return n }
		out.Servers = append(out.Servers,
			selection.Server{Address: part[0], Type: selection.ServerType(part[1]), RTT: ms(number(2)),
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

// preferred reads a preference: a mode, tag sets ("-" is an empty set, "()" an empty list), and "<" with
// maxStalenessSeconds.
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

// suitable returns the suitable servers, without a latency window.
func suitable(t selection.Topology, p selection.Preference, deprioritized []string,
	o selection.Options) ([]selection.Server, error) {
	o.LocalThreshold = math.MaxInt64
	return selection.Select(t, p, deprioritized, o)
}

// defaults are the options of a read with the default client settings.
var defaults = selection.Options{LocalThreshold: selection.DefaultLocalThreshold, HeartbeatFrequency: 10 * time.Second}

// TestSelect plays the cases that TestTwin, which generates its cases at random, does not reach. It also modifies
// the returned slices, because they belong to the caller.
func TestSelect(t *testing.T) {
	options := map[string]func(*selection.Options){"write": func(o *selection.Options) { o.Write = true },
		"no window": func(o *selection.Options) { o.LocalThreshold = 0 }, "": func(*selection.Options) {},
		"rare heartbeats": func(o *selection.Options) { o.HeartbeatFrequency = 120 * time.Second }}
	testkit.PlayStories(t, "testdata/select.txt", func(t *testing.T, s testkit.Story) (transcript string) {
		var topology selection.Topology
		for line := range strings.Lines(s.Text) {
			if text, ok := strings.CutPrefix(line, "topology "); ok {
				topology = drawn(text)
			}
			if strings.HasPrefix(line, "    ") {
				continue
			}
			transcript += line
			if line[0] != '>' {
				continue
			}
			part := append(strings.Split(strings.TrimSpace(line[1:]), "; "), "", "")
			preference, deprioritized, o := preferred(part[0]), []string(nil), defaults
			if without, ok := strings.CutPrefix(part[1], "without "); ok {
				deprioritized, part = strings.Fields(without), part[1:]
			}
			options[part[1]](&o)
			before := slices.Clone(topology.Servers)
			all, err := suitable(topology, preference, deprioritized, o)
			window, err2 := selection.Select(topology, preference, deprioritized, o)
			if fmt.Sprint(err) != fmt.Sprint(err2) {
				t.Errorf("%s: errors %v, %v", line, err, err2)
			}
			if err != nil {
				transcript += "    error: " + err.Error() + "\n"
				continue
			}
			servers, inside := strings.Join(addresses(all), " "), strings.Join(addresses(window), " ")
			transcript += "    " + cmp.Or(servers, "none")
			if inside != servers {
				transcript += ", and in the window " + inside
			}
			transcript += "\n"
			for i := range window {
				window[i].Address = "changed by the caller"
			}
			testkit.Same(t, line+": the topology changed", topology.Servers, before)
		}
		return transcript
	})
}

// TestPick checks that every ordered pair of servers is chosen once, and that the server with fewer operations wins.
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
					t.Fatalf("random(%d) was called, want a range that includes %d", n, v)
				}
				return v
			}
			picked[selection.Pick(servers, func(a string) int { return load[a] }, random).Address]++
		}
	}
	// b is in four of the six ordered pairs. The other two are a and c.
	testkit.Equal(t, "picked", picked, map[string]int{"a": 1, "b": 4, "c": 1})
	one := selection.Pick(servers[2:], func(string) int { return 9 },
		func(int) int { t.Fatal("no choice to make"); return 0 })
	testkit.Equal(t, "the only server", one.Address, "c")
}

func TestPass(t *testing.T) {
	testkit.PlayStories(t, "testdata/passing.txt", func(t *testing.T, s testkit.Story) string {
		request, _, _ := strings.Cut(s.Text, "\n")
		words := append(strings.Fields(request)[1:], "")
		got, send := selection.Pass(selection.TopologyType(words[0]), selection.ServerType(words[1]),
			mode(selection.Mode(words[2])))
		if !send && got.Mode != "" {
			t.Errorf("a preference that is not sent has mode %s", got.Mode)
		}
		return fmt.Sprintf("%s\n    %s\n", request, testkit.Either(send, string(got.Mode), "nothing"))
	})
}

func TestDocument(t *testing.T) {
	yes := true
	for _, row := range []struct{ reason, preference, want string }{
		{"primary has only a mode", "primary -", `{"mode":"primary"}`},
		{"the mode is camel case", "secondaryPreferred", `{"mode":"secondaryPreferred","hedge":{"enabled":true}}`},
		{"-1 is omitted", "nearest <-1", `{"mode":"nearest","hedge":{"enabled":true}}`},
		{"a number that exceeds an int32 is an int64", "nearest <2147483648",
			`{"mode":"nearest","maxStalenessSeconds":{"$numberLong":"2147483648"},"hedge":{"enabled":true}}`},
		{"all fields", "secondary rack:1,dc:ny - <120",
			`{"mode":"secondary","tags":[{"dc":"ny","rack":"1"},{}],"maxStalenessSeconds":{"$numberInt":"120"},"hedge":{"enabled":true}}`},
	} {
		p := preferred(row.preference)
		p.Hedge = &yes
		got, err := bson.MarshalExtJSON(p.Document(), true, false)
		testkit.Check(t, err)
		testkit.Equal(t, row.reason, string(got), row.want)
	}
	testkit.Equal(t, "without hedge", mode(nearest).Document(), bson.D{{Key: "mode", Value: "nearest"}})
}
