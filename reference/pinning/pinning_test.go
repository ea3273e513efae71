package pinning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
)

const stories = "testdata/*.txt"

// TestStories plays the stories in testdata: a line that starts with ">" is an input, and the indented line below is
// the decision.
func TestStories(t *testing.T) {
	testkit.PlayStories(t, stories, func(t *testing.T, s testkit.Story) string { return play(t, s.Text, nil) })
}

// inputs are the words of stories.
var inputs = map[string]InputKind{"request": StartRequest, "end": endRequest, "read": Read, "command": Read,
	"answered": Answered, "refused": Refused,
	"broken": Broken, "members": Refreshed}

// play plays a story, with rules changed by change if it is not nil. "revision NAME" selects a revision.
func play(t *testing.T, text string, change func(*[]string)) (transcript string) {
	thread := Thread{Rules: Named(Newest)}
	var members []selection.Server
	changed := func() {
		if change != nil {
			change(&thread.Rules)
		}
	}
	changed()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, ">") {
			continue
		}
		transcript += line
		words := strings.Fields(line)[1:]
		if words[0] == "revision" {
			thread.Rules = Named(words[1])
			changed()
			continue
		}
		in, known := Input{Kind: inputs[words[0]], Members: members}, inputs[words[0]] > 0
		if !known {
			t.Fatalf("unknown input: %s", words[0])
		}
		switch in.Kind {
		case Read:
			in.Preference, in.Random = preferred(words[1:])
			in.Ignores = words[0] == "command"
		case Broken:
			_, in.Random = preferred(words)
		case Refreshed:
			members = drawn(words[1:])
			in.Members = members
		}
		before := fmt.Sprint(thread, in)
		after, d := Next(thread, in)
		if fmt.Sprint(thread, in) != before {
			t.Errorf("%s: Next changed its arguments", line)
		}
		thread = after
		transcript += "    " + d.Action.String()
		if d.Member != "" {
			transcript += " to " + d.Member
		}
		if d.Text != "" {
			transcript += ": " + d.Text
		}
		if d.Refresh {
			transcript += ", and check the set"
		}
		if thread.Pinned != "" {
			transcript += ", pinned to " + thread.Pinned
		}
		transcript += " (" + strings.Join(d.Rules, " ") + ")\n"
	}
	return transcript
}

// drawn reads members: address/type/ping/tags.
func drawn(words []string) (out []selection.Server) {
	types := map[string]selection.ServerType{"primary": selection.RSPrimary, "secondary": selection.RSSecondary,
		"down":       selection.UnknownServer,
		"recovering": selection.RSOther, "arbiter": selection.RSArbiter}
	for _, w := range words {
		part := append(strings.Split(w, "/"), "", "", "")
		ping, _ := strconv.Atoi(part[2])
		out = append(out, selection.Server{Address: part[0], Type: types[part[1]],
			RTT: time.Duration(ping) * time.Millisecond, Tags: tags(part[3])})
	}
	return out
}

func tags(text string) map[string]string {
	out := map[string]string{}
	for _, tag := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '-' }) {
		name, value, _ := strings.Cut(tag, ":")
		out[name] = value
	}
	return out
}

// preferred reads a mode, tag sets ("-" is an empty set), latency=MS and random=NUMBER.
func preferred(words []string) (p Preference, random float64) {
	p = Preference{selection.Preference{Mode: selection.Mode(words[0])}, 15 * time.Millisecond}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "latency":
			n, _ := strconv.Atoi(value)
			p.Latency = time.Duration(n) * time.Millisecond
		case "random":
			random, _ = strconv.ParseFloat(value, 64)
		default:
			p.TagSets = append(p.TagSets, tags(w))
		}
	}
	return p, random
}

// TestEveryRuleHasAStory checks that each rule changes the decisions of a story.
func TestEveryRuleHasAStory(t *testing.T) {
	decisions := func(text string) (out []string) { // without rule IDs
		for line := range strings.Lines(text) {
			out = append(out, line[:max(0, strings.LastIndex(line, " ("))])
		}
		return out
	}
	all := testkit.Stories(t, stories)
	for _, r := range Rules() {
		without := func(ids *[]string) {
			*ids = slices.DeleteFunc(slices.Clone(*ids), func(id string) bool { return id == r.ID })
		}
		if !slices.ContainsFunc(all, func(s testkit.Story) bool {
			return !slices.Equal(decisions(play(t, s.Text, nil)), decisions(play(t, s.Text, without)))
		}) {
			t.Errorf("no story changes without %s: %s", r.ID, r.Statement)
		}
	}
}

// TestModesMatchServerSelection checks that an unpinned thread reads from the servers that package selection returns: the
// modes have not changed.
func TestModesMatchServerSelection(t *testing.T) {
	types := []string{"primary", "secondary", "down", "recovering"}
	sets := []string{"", "dc:ny", "dc:ny,rack:1", "dc:sf"}
	n := 0
	for i := range 4 * 4 * 4 * 4 * 4 * 4 {
		digit := func(at int) int { return i >> (2 * at) & 3 }
		members := drawn([]string{"a/" + types[digit(0)] + "/5/" + sets[digit(1)], "b/secondary/20/" + sets[digit(2)], "c/" +
			types[1+digit(3)%3] + "/21/" + sets[digit(4)]})
		for _, mode := range []string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"} {
			words := []string{mode}
			if mode != "primary" {
				words = append(words, [][]string{nil, {"dc:ny"}, {"dc:sf", "dc:ny"}, {"rack:1", "-"}}[digit(5)]...)
			}
			p, _ := preferred(words)
			topology := selection.Topology{Type: selection.ReplicaSetNoPrimary, Servers: members}
			if primary(members) != "" {
				topology.Type = selection.ReplicaSetWithPrimary
			}
			today, err := selection.Select(topology, selection.Preference{Mode: p.Mode, TagSets: p.TagSets}, nil,
				selection.Options{LocalThreshold: p.Latency})
			testkit.Check(t, err)
			var then []string
			for k := range 3 {
				_, d := Next(Thread{Rules: Named(Newest)},
					Input{Kind: Read, Preference: p, Members: members, Random: float64(k) / 3})
				if d.Action == Send && !slices.Contains(then, d.Member) {
					then = append(then, d.Member)
				}
			}
			slices.Sort(then)
			var now []string
			for _, v := range today {
				now = append(now, v.Address)
			}
			if len(now) != 2 { // three random numbers may miss one of two members, but not one of three
				n++
				if diff := cmp.Diff(now, then); diff != "" {
					t.Fatalf("%v of %v (-today +2014)\n%s", words, members, diff)
				}
			}
		}
	}
	if n < 5000 {
		t.Errorf("only %d selections were compared", n)
	}
}

// TestPass shows what is sent to a mongos, and to a member.
func TestPass(t *testing.T) {
	for _, r := range []struct{ reason, preference, mongos, member string }{
		{"the default is primary, which is not sent", "", "nothing", "nothing"},
		{"primary is not sent", "primary", "nothing", "nothing"},
		{"a mongos receives the mode", "nearest", "nearest []", "secondaryPreferred []"},
		{"a mongos receives the tags, a member only the slaveOk bit", "secondary dc:ny", "secondary [map[dc:ny]]",
			"secondaryPreferred []"},
		{"secondaryPreferred is the slaveOk bit", "secondaryPreferred -", "secondaryPreferred []", "secondaryPreferred []"},
		{"secondaryPreferred with tags is sent", "secondaryPreferred dc:ny", "secondaryPreferred [map[dc:ny]]",
			"secondaryPreferred []"},
	} {
		for mongos, want := range map[bool]string{true: r.mongos, false: r.member} {
			preference, _ := preferred(strings.Split(r.preference, " "))
			p, send := Pass(preference.Preference, mongos)
			testkit.Equal(t, fmt.Sprint(r.reason, ", to a mongos: ", mongos),
				testkit.Either(send, fmt.Sprint(p.Mode, " ", p.TagSets), "nothing"), want)
		}
	}
}

func TestObeys(t *testing.T) {
	for want, commands := range map[bool][]string{
		true: {"inline mapReduce", `{"mapReduce": "c", "out": {"inline": 1}}`,
			"aggregate", `{"aggregate": "c", "pipeline": [{"$match": {}}]}`},
		false: {"mapReduce into a collection", `{"mapReduce": "c", "out": "d"}`, "an empty document", `{}`,
			"aggregate with $out", `{"aggregate": "c", "pipeline": [{"$match": {}}, {"$out": "d"}]}`},
	} {
		for c := range slices.Chunk(commands, 2) {
			testkit.Equal(t, c[0], Obeys(testkit.Extended[bson.D](t, c[1])), want)
		}
	}
	for want, names := range map[bool]string{
		true: "find group collStats dbStats count distinct geoNear geoSearch geoWalk text parallelCollectionScan",
		// ping is not listed, though a secondary could run it
		false: `ping insert reIndex compact validate listCollections listIndexes listDatabases getMore serverStatus isMaster
			dbHash dataSize create drop createIndexes update delete findAndModify eval Count mapreduce`,
	} {
		for name := range strings.FieldsSeq(names) {
			testkit.Equal(t, name, Obeys(bson.D{{Key: name, Value: "c"}}), want)
		}
	}
}
