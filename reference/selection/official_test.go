package selection_test

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
	"gopkg.in/yaml.v3"
)

type officialServer struct {
	Address, Type string
	AvgRTT        float64 `yaml:"avg_rtt_ms"`
	Tags          tags
	Update        int64 `yaml:"lastUpdateTime"`
	LastWrite     struct {
		Date struct {
			Long string `yaml:"$numberLong"`
		} `yaml:"lastWriteDate"`
	} `yaml:"lastWrite"`
}

type official struct {
	HeartbeatMS int `yaml:"heartbeatFrequencyMS"`
	Topology    struct {
		Type    string
		Servers []officialServer
	} `yaml:"topology_description"`
	Operation  string
	Preference struct {
		Mode         string
		TagSets      []tags `yaml:"tag_sets"`
		MaxStaleness *int64 `yaml:"maxStalenessSeconds"`
	} `yaml:"read_preference"`
	Deprioritized []officialServer `yaml:"deprioritized_servers"`
	Suitable      []officialServer `yaml:"suitable_servers"`
	Window        []officialServer `yaml:"in_latency_window"`
	Error         bool
	Mocked        []struct {
		Address string
		Count   int `yaml:"operation_count"`
	} `yaml:"mocked_topology_state"`
	Iterations int
	Outcome    struct {
		Tolerance float64
		Expected  map[string]float64 `yaml:"expected_frequencies"`
	}
}

func serversOf(official []officialServer) (out []selection.Server) {
	for _, s := range official {
		write, _ := strconv.ParseInt(s.LastWrite.Date.Long, 10, 64)
		out = append(out, selection.Server{Address: s.Address, Type: selection.ServerType(s.Type), Tags: s.Tags,
			RTT: time.Duration(s.AvgRTT * float64(time.Millisecond)), LastWrite: time.UnixMilli(write), LastUpdate: time.UnixMilli(s.Update)})
	}
	return out
}

func sorted(servers []selection.Server) []string {
	return slices.Sorted(slices.Values(addresses(servers)))
}

// TestOfficial holds the logic tests of the Server Selection and Max Staleness
// specifications, as far as they are at hand.
func TestOfficial(t *testing.T) {
	for _, folder := range []string{"server-selection/tests/server_selection", "max-staleness/tests", "server-selection/tests/in_window"} {
		t.Run(folder, func(t *testing.T) {
			n, folder := 0, testkit.Official(t, folder)
			testkit.Check(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
				if err == nil && filepath.Ext(path) == ".yml" {
					n++
					t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) { testOfficial(t, path) })
				}
				return err
			}))
			if n == 0 {
				t.Errorf("no tests in %s", folder)
			}
		})
	}
}

func testOfficial(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	testkit.Check(t, err)
	var f official
	testkit.Check(t, yaml.Unmarshal(text, &f))
	topology, o := selection.Topology{Type: selection.TopologyType(f.Topology.Type), Servers: serversOf(f.Topology.Servers)}, defaults
	if f.HeartbeatMS != 0 {
		o.HeartbeatFrequency = ms(f.HeartbeatMS)
	}
	if f.Operation == "write" {
		o.Operation = selection.Write
	}
	if f.Iterations > 0 {
		frequencies(t, f, topology, o)
		return
	}
	p := selection.Preference{TagSets: f.Preference.TagSets, MaxStalenessSeconds: f.Preference.MaxStaleness}
	if m := f.Preference.Mode; m != "" {
		p.Mode = selection.Mode(strings.ToLower(m[:1]) + m[1:])
	}
	suitable, err := selection.Suitable(topology, p, addresses(serversOf(f.Deprioritized)), o)
	if (err != nil) != f.Error {
		t.Fatalf("error %v, want one: %t", err, f.Error)
	}
	testkit.Equal(t, "suitable", sorted(suitable), sorted(serversOf(f.Suitable)))
	testkit.Equal(t, "in the window", sorted(selection.InWindow(suitable, o.LocalThreshold)), sorted(serversOf(f.Window)))
}

// frequencies is the test of choosing within the latency window.
func frequencies(t *testing.T, f official, topology selection.Topology, o selection.Options) {
	r, load, seen := rand.New(rand.NewPCG(1, 2)), map[string]int{}, map[string]int{}
	for _, m := range f.Mocked {
		load[m.Address] = m.Count
	}
	for range f.Iterations {
		servers, err := selection.Select(topology, mode(nearest), nil, o)
		testkit.Check(t, err)
		seen[selection.Pick(servers, func(a string) int { return load[a] }, r.IntN).Address]++
	}
	for address, want := range f.Outcome.Expected {
		got, tolerance := float64(seen[address])/float64(f.Iterations), f.Outcome.Tolerance
		if want == 0 || want == 1 {
			tolerance = 0
		}
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s was picked with frequency %v, want %v ± %v", address, got, want, tolerance)
		}
	}
}
