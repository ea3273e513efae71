package selection_test

import (
	"errors"
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
	Address   string
	Type      string
	AvgRTT    float64 `yaml:"avg_rtt_ms"`
	Tags      map[string]string
	Update    int64 `yaml:"lastUpdateTime"`
	LastWrite struct {
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
		TagSets      []map[string]string `yaml:"tag_sets"`
		MaxStaleness *int64              `yaml:"maxStalenessSeconds"`
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

func names(servers []officialServer) string {
	var out []string
	for _, s := range servers {
		out = append(out, s.Address)
	}
	return sorted(out)
}

func sorted(addresses []string) string {
	slices.Sort(addresses)
	return strings.Join(addresses, " ")
}

// TestOfficial holds the logic tests of the Server Selection and Max Staleness
// specifications, as far as they are at hand.
func TestOfficial(t *testing.T) {
	for _, folder := range []string{testkit.Official(t, "server-selection", "tests", "server_selection"),
		testkit.Official(t, "max-staleness", "tests"), testkit.Official(t, "server-selection", "tests", "in_window")} {
		n := 0
		if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".yml" {
				n++
				t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) { testOfficial(t, path) })
			}
			return err
		}); err != nil || n == 0 {
			t.Errorf("%d tests in %s: %v", n, folder, err)
		}
	}
}

func testOfficial(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	var f official
	if err = errors.Join(err, yaml.Unmarshal(text, &f)); err != nil {
		t.Fatal(err)
	}
	topology := selection.Topology{Type: selection.TopologyType(f.Topology.Type)}
	for _, s := range f.Topology.Servers {
		lastWrite, _ := strconv.ParseInt(s.LastWrite.Date.Long, 10, 64)
		topology.Servers = append(topology.Servers, selection.Server{
			Address: s.Address, Type: selection.ServerType(s.Type), Tags: s.Tags, RTT: time.Duration(s.AvgRTT * float64(time.Millisecond)),
			LastWrite: time.UnixMilli(lastWrite), LastUpdate: time.UnixMilli(s.Update),
		})
	}
	o := selection.Defaults()
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
	suitable, err := selection.Suitable(topology, p, strings.Fields(names(f.Deprioritized)), o)
	if bad := new(selection.InvalidError); errors.As(err, &bad) != f.Error || err != nil && !f.Error {
		t.Fatalf("error %v, want an InvalidError: %t", err, f.Error)
	}
	if got, want := sorted(addresses(suitable)), names(f.Suitable); got != want {
		t.Errorf("suitable are %s, want %s", got, want)
	}
	if got, want := sorted(addresses(selection.InWindow(suitable, o.LocalThreshold))), names(f.Window); got != want {
		t.Errorf("in the window are %s, want %s", got, want)
	}
}

// frequencies is the test of choosing within the latency window.
func frequencies(t *testing.T, f official, topology selection.Topology, o selection.Options) {
	r := rand.New(rand.NewPCG(1, 2))
	load := map[string]int{}
	for _, m := range f.Mocked {
		load[m.Address] = m.Count
	}
	seen := map[string]int{}
	for range f.Iterations {
		servers, err := selection.Select(topology, selection.Preference{Mode: selection.Nearest}, nil, o)
		if err != nil || len(servers) == 0 {
			t.Fatal(servers, err)
		}
		seen[selection.Pick(servers, func(a string) int { return load[a] }, r.IntN).Address]++
	}
	for address, want := range f.Outcome.Expected {
		got := float64(seen[address]) / float64(f.Iterations)
		tolerance := f.Outcome.Tolerance
		if want == 0 || want == 1 {
			tolerance = 0
		}
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s was picked with frequency %v, want %v ± %v", address, got, want, tolerance)
		}
	}
}
