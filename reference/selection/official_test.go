package selection_test

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
)

// official holds the expected results of a test file. ParseCase reads the rest.
type official struct {
	Suitable []struct{ Address string } `yaml:"suitable_servers"`
	Window   []struct{ Address string } `yaml:"in_latency_window"`
	Error    bool
	Mocked   []struct {
		Address string
		Count   int `yaml:"operation_count"`
	} `yaml:"mocked_topology_state"`
	Iterations int
	Outcome    struct {
		Tolerance float64
		Expected  map[string]float64 `yaml:"expected_frequencies"`
	}
}

func expected(servers []struct{ Address string }) (out []string) {
	for _, s := range servers {
		out = append(out, s.Address)
	}
	slices.Sort(out)
	return out
}

func sorted(servers []selection.Server) []string {
	return slices.Sorted(slices.Values(addresses(servers)))
}

// TestOfficial runs the logic tests of the Server Selection and Max Staleness specifications, if they are available.
func TestOfficial(t *testing.T) {
	for _, folder := range []string{"server-selection/tests/server_selection", "max-staleness/tests",
		"server-selection/tests/in_window"} {
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
	c, err := selection.ParseCase(text)
	testkit.Check(t, err)
	if f.Iterations > 0 {
		frequencies(t, f, c)
		return
	}
	servers, err := suitable(c.Topology, c.Preference, c.Deprioritized, c.Options)
	if (err != nil) != f.Error {
		t.Fatalf("error %v, want one: %t", err, f.Error)
	}
	testkit.Equal(t, "suitable", sorted(servers), expected(f.Suitable))
	testkit.Equal(t, "in the window", sorted(selection.InWindow(servers, c.Options.LocalThreshold)), expected(f.Window))
}

// frequencies tests how often Pick chooses each server in the latency window.
func frequencies(t *testing.T, f official, c selection.Case) {
	r, load, seen := rand.New(rand.NewPCG(1, 2)), map[string]int{}, map[string]int{}
	for _, m := range f.Mocked {
		load[m.Address] = m.Count
	}
	for range f.Iterations {
		servers, err := selection.Select(c.Topology, mode(nearest), nil, c.Options)
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
