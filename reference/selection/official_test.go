package selection_test

import (
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/reference/selection"
	"gopkg.in/yaml.v3"
)

// The logic tests of the Server Selection and Max Staleness specifications,
// as far as they are at hand: below ../shared/specifications, or wherever
// UTR_SPECIFICATIONS points (a folder that holds server-selection/tests).
func specifications(t *testing.T) []string {
	t.Helper()
	roots := []string{}
	if dir := os.Getenv("UTR_SPECIFICATIONS"); dir != "" {
		roots = append(roots, dir)
	}
	for dir, err := os.Getwd(); err == nil && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			roots = append(roots, filepath.Join(dir, "..", "shared", "specifications"))
			break
		}
	}
	var files []string
	for _, root := range roots {
		for _, sub := range []string{"server-selection/tests/server_selection", "max-staleness/tests", "server-selection/tests/in_window"} {
			_ = filepath.WalkDir(filepath.Join(root, sub), func(path string, d fs.DirEntry, err error) error {
				if err == nil && filepath.Ext(path) == ".yml" {
					files = append(files, path)
				}
				return nil
			})
		}
	}
	if len(files) == 0 {
		t.Skip("official suites not there")
	}
	return files
}

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
	HeartbeatMS int64 `yaml:"heartbeatFrequencyMS"`
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

func names(servers []officialServer) map[string]bool {
	out := map[string]bool{}
	for _, s := range servers {
		out[s.Address] = true
	}
	return out
}

func nameSet(servers []selection.Server) map[string]bool {
	out := map[string]bool{}
	for _, s := range servers {
		out[s.Address] = true
	}
	return out
}

func TestOfficial(t *testing.T) {
	for _, path := range specifications(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f official
			if err := yaml.Unmarshal(text, &f); err != nil {
				t.Fatal(err)
			}
			topology := selection.Topology{Type: selection.TopologyType(f.Topology.Type)}
			for _, s := range f.Topology.Servers {
				var lastWrite int64
				if text := s.LastWrite.Date.Long; text != "" {
					if lastWrite, err = strconv.ParseInt(text, 10, 64); err != nil {
						t.Fatal(err)
					}
				}
				topology.Servers = append(topology.Servers, selection.Server{
					Address: s.Address, Type: selection.ServerType(s.Type), Tags: s.Tags,
					RTT:        time.Duration(s.AvgRTT * float64(time.Millisecond)),
					LastWrite:  time.UnixMilli(lastWrite),
					LastUpdate: time.UnixMilli(s.Update),
				})
			}
			o := selection.Defaults()
			if f.HeartbeatMS != 0 {
				o.HeartbeatFrequency = time.Duration(f.HeartbeatMS) * time.Millisecond
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
			var deprioritized []string
			for _, s := range f.Deprioritized {
				deprioritized = append(deprioritized, s.Address)
			}
			suitable, err := selection.Suitable(topology, p, deprioritized, o)
			var bad *selection.InvalidError
			if f.Error {
				if !errors.As(err, &bad) {
					t.Fatalf("error %v, want an InvalidError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(names(f.Suitable), nameSet(suitable)); diff != "" {
				t.Errorf("suitable (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(names(f.Window), nameSet(selection.InWindow(suitable, o.LocalThreshold))); diff != "" {
				t.Errorf("in the window (-want +got)\n%s", diff)
			}
		})
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
