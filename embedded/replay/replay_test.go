package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// difference is an answer that differs from the recorded one, and may.
type difference struct {
	recording, scenario string
	steps               []int
	reason              string
}

// TestReplay plays the recordings of 4.9 against deployments of that version.
func TestReplay(t *testing.T) {
	for _, r := range []struct {
		name    string
		options embedded.Options
		theirs  []string
	}{
		{"replica-set", embedded.Options{Topology: embedded.ReplicaSet, Members: 3},
			[]string{"localhost:27117", "localhost:27118", "localhost:27119"}},
		{"sharded", embedded.Options{Topology: embedded.Sharded, Mongoses: 2}, []string{"localhost:27217"}},
		{"standalone", embedded.Options{}, []string{"localhost:27400"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			steps := lines[step](t, r.name+".jsonl")
			r.options.Version = "4.9"
			r.options.NoScripting = true // as the recorded servers were
			d := start(t, r.options)
			p := &player{t: t, hosts: d.Hosts(), conns: map[int]*client{}, same: map[any]any{}, offset: map[string]int64{}, theirs: r.theirs}
			p.live(pasts[r.name])
			report(t, r.name, steps, p)
		})
	}
}

// pasts are what the real servers had seen before their recordings began, as
// far as the answers show it: a collection of an earlier recording, and the
// sessions of earlier clients.
var pasts = map[string][]string{
	"replica-set": {
		`{"create": "w", "$db": "utr_recording"}`,
		`{"find": "past", "lsid": {"id": {"$binary": {"base64": "AAAAAAAAQACAAAAAAAAAAA==", "subType": "04"}}}, "$db": "past"}`,
	},
	"standalone": {
		`{"find": "past", "lsid": {"id": {"$binary": {"base64": "AAAAAAAAQACAAAAAAAAAAA==", "subType": "04"}}}, "$db": "past"}`,
	},
}

// live lets a server see commands, on a connection of their own.
func (p *player) live(commands []string) {
	const own = -1
	for _, c := range commands {
		p.play(step{Connection: own, Send: json.RawMessage(c)})
		if _, err := p.conns[own].receive(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// report plays all steps, and then makes a subtest of each scenario.
func report(t *testing.T, recording string, steps []step, p *player) {
	var order []string
	found := map[string]map[int][]string{}
	for _, s := range steps {
		if found[s.Scenario] == nil {
			order = append(order, s.Scenario)
			found[s.Scenario] = map[int][]string{}
		}
		found[s.Scenario][s.Step] = p.play(s)
	}
	for _, scenario := range order {
		t.Run(scenario, func(t *testing.T) {
			allowed := allowedIn(recording, scenario)
			equal, shown := 0, map[int]string{}
			for _, s := range steps {
				if s.Scenario == scenario {
					shown[s.Step] = fmt.Sprintf("%.300s", s.Send)
				}
			}
			for number := range len(found[scenario]) {
				number++
				diff := found[scenario][number]
				reason, may := allowed[number]
				switch {
				case len(diff) > 0 && !may:
					t.Errorf("step %d %s\n\t%s", number, shown[number], strings.Join(diff, "\n\t"))
				case len(diff) == 0 && may:
					t.Errorf("step %d is equal now, and stands in the table of differences: %s", number, reason)
				case len(diff) == 0:
					equal++
				}
			}
			t.Logf("%d of %d answers equal", equal, len(found[scenario]))
		})
	}
	for _, d := range slices.Concat(protocolDifferences, dataDifferences) {
		if d.recording == recording && found[d.scenario] == nil {
			t.Errorf("no scenario %q, which stands in the table of differences", d.scenario)
		}
	}
}

func allowedIn(recording, scenario string) map[int]string {
	out := map[int]string{}
	for _, d := range slices.Concat(protocolDifferences, dataDifferences) {
		if d.recording == recording && d.scenario == scenario {
			for _, n := range d.steps {
				out[n] = d.reason
			}
		}
	}
	return out
}
