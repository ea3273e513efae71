package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// least is how many of the steps of recordings must be equal in everything but messages and the order of fields, how
// many in everything, and how many of a single recording but for those, in percent.
type least struct{ same, equal, each float64 }

// TestScenarios plays the scenarios of 5.0. Each step that differs must be in a list. -v shows these steps, grouped by
// symptom, and -run selects recordings:
//
//	go test ./embedded/internal/replay -v -run TestScenarios/api
func TestScenarios(t *testing.T) {
	files := recordings(t, "scenarios/*", "replica-set", "sharded", "standalone", "writes")
	playScenarios(t, files, "testdata/differences.txt", least{same: 99.3, equal: 98.6})
}

// TestSemantics plays queries and updates of random documents on 5.0, in the same way.
func TestSemantics(t *testing.T) {
	playScenarios(t, recordings(t, "semantics/*"), "testdata/semantics.txt", least{same: 99.8, equal: 95, each: 99})
}

// recordings returns the files of recordings of 5.0.
func recordings(t *testing.T, patterns ...string) (files []string) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(testkit.Recordings(t), "5.0", pattern+".jsonl"))
		testkit.Check(t, err)
		files = append(files, found...)
	}
	return files
}

func playScenarios(t *testing.T, files []string, list string, least least) {
	found := map[string][]string{} // the differing steps by symptom
	same, equal, total, played := 0, 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			played++
			steps := scenario(t, file)
			before := same
			synctest.Test(t, func(t *testing.T) {
				p, topology := newScenario(t, name, steps)
				area, command := strings.TrimSuffix(name, "-"+topology), ""
				for i, s := range steps {
					if i == 0 || s.Scenario != steps[i-1].Scenario {
						if area != name { // each scenario of these has its own connections
							p.conns = map[int]*client{}
						}
						if p.scenario != nil {
							p.scenario(p, s)
						}
					}
					p.minor, p.symptom = nil, "closed"
					if len(s.Send) > len("null") { // a further reply has no command
						command = testkit.Extended[bson.D](t, s.Send)[0].Key
					}
					total++
					diff := p.exceeded(s)
					if len(diff) == len(p.minor) {
						same++
					}
					if len(diff) == 0 {
						equal++
						continue
					}
					symptom := strings.Join([]string{area, topology, command, p.symptom}, " ")
					text := fmt.Sprintf("%s %s", s, s.Send)
					for _, d := range diff {
						text += fmt.Sprintf("\n\t%.700s", d)
					}
					found[symptom] = append(found[symptom], text)
				}
			})
			if percent := 100 * float64(same-before) / float64(len(steps)); percent < least.each {
				t.Errorf("%.2f %% of the steps are equal, want %.1f %%", percent, least.each)
			} else {
				t.Logf("%d steps, %.2f %% equal but for messages and order", len(steps), percent)
			}
		})
	}
	if testing.Verbose() {
		for _, symptom := range slices.Sorted(maps.Keys(found)) {
			t.Logf("== %s -> %d\n%s", symptom, len(found[symptom]), strings.Join(found[symptom], "\n"))
		}
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(total) }
	t.Logf("%d steps, %.2f %% equal but for messages and order, %.2f %% in everything", total, percent(same),
		percent(equal))
	if played < len(files) { // -run selects recordings
		return
	}
	checkList(t, list, found)
	if percent(same) < least.same || percent(equal) < least.equal {
		t.Errorf("want at least %.1f %% and %.1f %%", least.same, least.equal)
	}
}

// newScenario starts the servers of a recording of scenarios.
func newScenario(t *testing.T, name string, steps []step) (_ *player, topology string) {
	kind, topology := server.Standalone, "standalone"
	for suffix, k := range map[string]server.Topology{"replica-set": server.ReplicaSet, "sharded": server.Sharded} {
		if strings.HasSuffix(name, suffix) || name == "writes" && k == server.ReplicaSet {
			kind, topology = k, suffix
		}
	}
	numbered := hosts(t, steps, map[string]int{"standalone": 28300, "replica-set": 28310, "sharded": 28320}[topology])
	for i := 0; kind == server.ReplicaSet && len(numbered) < 3; i++ { // those that the recording does not use
		if next := fmt.Sprintf("%s%d", numbered[0][:len(numbered[0])-1], i+1); !slices.Contains(numbered, next) {
			numbered = append(numbered, next)
		}
	}
	began, arguments := started(t, steps)
	p := setup{version: "5.0", began: began, kind: kind, arguments: arguments,
		settings: bson.D{{Key: "electionTimeoutMillis",
			Value: int32(3000)}}}.start(t, slices.Sorted(slices.Values(numbered))...)
	slices.SortFunc(p.servers, func(a, b *server.Server) int {
		return slices.Index(numbered, a.Address()) - slices.Index(numbered, b.Address())
	})
	for kind == server.ReplicaSet && p.cluster.Primary() != p.servers[0] {
		testkit.Check(t, p.cluster.StepDown())
	}
	if name == "sharded" {
		p.run(pastSession)
	}
	if name == "writes" {
		p.scenario = prepare
	}
	return p, topology
}

// noReason is the heading of lines that UTR_UPDATE=1 adds. Each must move to a section with its reason.
const noReason = "to do"

// checkList compares the steps that differ with a list: each symptom must match a line of it, which has a reason and
// the number of these steps. With UTR_UPDATE=1 it changes the numbers, adds lines, and removes those that match
// nothing.
func checkList(t *testing.T, file string, found map[string][]string) {
	cases := testkit.Cases(t, file)
	counts, unlisted := map[string]int{}, map[string]int{}
	for _, symptom := range slices.Sorted(maps.Keys(found)) {
		i := slices.IndexFunc(cases, func(c testkit.Case) bool { return matches(c.In, symptom) })
		if i < 0 {
			words := strings.SplitN(symptom, " ", 3)
			unlisted["* * "+words[2]] += len(found[symptom])
			continue
		}
		counts[cases[i].In] += len(found[symptom])
	}
	testkit.PlayCases(t, file, func(_ *testing.T, pattern string) string { return strconv.Itoa(counts[pattern]) })
	for _, c := range cases {
		if c.Reason == "" || c.Reason == noReason {
			t.Errorf("%s has no reason in %s", c.In, file)
		}
	}
	added := ""
	for _, pattern := range slices.Sorted(maps.Keys(unlisted)) {
		added += fmt.Sprintf("%s -> %d\n", pattern, unlisted[pattern])
	}
	if os.Getenv("UTR_UPDATE") != "" {
		text, err := os.ReadFile(file)
		testkit.Check(t, err)
		text = regexp.MustCompile(`(?m)^.* -> 0\n`).ReplaceAll(text, nil)
		if added != "" {
			added = "# " + noReason + "\n" + added
		}
		testkit.Check(t, os.WriteFile(file, append(text, added...), 0o644))
	} else if added != "" {
		t.Errorf("these steps differ and are not in %s (-v shows them):\n%s", file, added)
	}
}

// matches reports whether each of the first four words of a symptom, the last of which includes the rest, matches the
// pattern. In it, * stands for any text, and a comma separates alternatives.
func matches(pattern, symptom string) bool {
	words := strings.SplitN(symptom, " ", 4)
	for i, p := range strings.SplitN(pattern, " ", 4) {
		if !slices.ContainsFunc(strings.Split(p, ","), func(p string) bool { ok, _ := path.Match(p, words[i]); return ok }) {
			return false
		}
	}
	return true
}

// scenario reads a recording of scenarios. In it, the shard's replica set has another name and address, and the servers
// are Percona's build of 5.0.0, which adds psmdbVersion to buildInfo and ratelimit to profile. Ours is the latest 5.0.
func scenario(t *testing.T, file string) (steps []step) {
	text, err := os.ReadFile(file)
	testkit.Check(t, err)
	text = []byte(strings.NewReplacer("sh0/127.0.0.1:38132", "rs0/localhost:27310", `"sh0"`, `"s0"`, `"setName": "rs"`,
		`"setName": "rs0"`,
		"rs0s/127.0.0.1:28340", "rs0/localhost:27310", "127.0.0.1:28340", "localhost:27310",
		`"port": {"$numberInt": "28340"}`, `"port": {"$numberInt": "27310"}`,
		`"version": "5.0.0"`, `"version": "5.0.31"`, versionArray(0), versionArray(31), `"psmdbVersion": "5.0.0", `, "",
		`"ratelimit": {"$numberInt": "1"}, `, "").Replace(string(text)))
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var s step
		testkit.Check(t, json.Unmarshal(in.Bytes(), &s))
		if s.Connection == 0 { // each server has one
			s.Connection = 1 + s.Server
		}
		steps = append(steps, s)
	}
	testkit.Check(t, in.Err())
	return steps
}

func versionArray(patch int) string {
	return fmt.Sprintf(`[{"$numberInt": "5"}, {"$numberInt": "0"}, {"$numberInt": "%d"}, {"$numberInt": "0"}]`, patch)
}

// started returns when a recording began, the time of its first cluster time, and the command line of the servers.
func started(t *testing.T, steps []step) (began int64, arguments []string) {
	for _, s := range steps {
		if s.Reply == nil {
			continue
		}
		doc := testkit.Extended[bson.D](t, s.Reply.Doc)
		if at := value.As[bson.Timestamp](value.As[bson.D](doc, "$clusterTime"), "clusterTime"); began == 0 {
			began = int64(at.T)
		}
		if words := value.As[bson.A](doc, "argv"); arguments == nil {
			for _, word := range words {
				arguments = append(arguments, word.(string))
			}
		}
	}
	return cmp.Or(began, 1795725200), arguments
}

// hosts returns the addresses of the servers by their numbers. Server 0 is the primary. Those that no reply shows have
// the recorded ports, from the first one on.
func hosts(t *testing.T, steps []step, first int) []string {
	var known []string
	for _, s := range steps {
		for s.Server >= len(known) {
			known = append(known, fmt.Sprintf("127.0.0.1:%d", first+len(known)))
		}
		if s.Reply != nil && bytes.Contains(s.Reply.Doc, []byte(`"me"`)) {
			if me := value.As[string](testkit.Extended[bson.D](t, s.Reply.Doc), "me"); me != "" {
				known[s.Server] = me
			}
		}
	}
	return known
}
