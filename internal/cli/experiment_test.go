package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExperiment(t *testing.T) {
	dir := t.TempDir()
	args := []string{"experiment", overload, "--capacity", "50", "--duration", "6s", "--policy", "none", "--policy", "final", "--seed", "3"}
	var outputs []string
	for _, name := range []string{"one", "two"} {
		b := newBench()
		file := func(ending string) string { return filepath.Join(dir, name+ending) }
		if code := b.Main(context.Background(), append(args, "--json", file(".json"), "--html", file(".html"), "--svg", file(".svg"))); code != 0 {
			t.Fatalf("exit code %d: %s", code, b.err.String())
		}
		all := b.out.String()
		for _, ending := range []string{".json", ".html", ".svg"} {
			data, err := os.ReadFile(file(ending))
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		outputs = append(outputs, all)
	}
	if outputs[0] != outputs[1] {
		t.Error("the same command line gave two outputs")
	}
	if !strings.Contains(outputs[0], "seed 3") || strings.Contains(outputs[0], "naive") {
		t.Errorf("printed %s", outputs[0])
	}
	data, err := os.ReadFile(filepath.Join(dir, "one.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Config struct{ CapacityPerSec, Queue, IngressRatePerSec, Seed int }
		Runs   []struct{ Policy string }
	}
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	if c := record.Config; c.CapacityPerSec != 50 || c.Queue != 25 || c.IngressRatePerSec != 50 || c.Seed != 3 || len(record.Runs) != 2 {
		t.Errorf("record %+v", record)
	}
}

// A terminal sees how far the experiment is, and nothing of it is left in the
// end; a pipe sees nothing.
func TestExperimentProgress(t *testing.T) {
	args := []string{"experiment", overload, "--capacity", "50", "--duration", "6s", "--policy", "none"}
	pipe, terminal := newBench(), newBench()
	terminal.Terminal = func() (int, bool) { return 80, true }
	if pipe.Main(context.Background(), args) != 0 || terminal.Main(context.Background(), args) != 0 {
		t.Fatal(pipe.err.String(), terminal.err.String())
	}
	if strings.Contains(pipe.out.String(), "\x1b") {
		t.Errorf("in a pipe: %q", pipe.out.String())
	}
	drawn, rest, found := strings.Cut(terminal.out.String(), "\r\x1b[Koverload:")
	if !strings.Contains(drawn, "none 0%") || !found || "overload:"+rest != pipe.out.String() {
		t.Errorf("on a terminal: %q", terminal.out.String())
	}
}

func TestExperimentUsage(t *testing.T) {
	for _, row := range []struct {
		reason, want string
		args         []string
	}{
		{"which experiment", "overload", nil},
		{"another experiment", "overload", []string{"underload"}},
		{"two", "overload", []string{overload, overload}},
		{"no such policy", "final", []string{overload, "--policy", "hope"}},
		{"no clients", "at least 1", []string{overload, "--clients", "0"}},
		{"more clients than can be", "clients", []string{overload, "--clients", "100000000"}},
		{"too short", "duration", []string{overload, "--duration", "1s"}},
		{"dearer than an operation", "at most 100", []string{overload, "--rejection-cost", "101"}},
		{"a report over a suite", "suite", []string{overload, "--json", "suite.yml"}},
	} {
		b := newBench()
		if code := b.Main(context.Background(), append([]string{"experiment"}, row.args...)); code != ExitUsage || !strings.Contains(b.err.String(), row.want) {
			t.Errorf("%s: exit code %d: %s", row.reason, code, b.err.String())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b := newBench()
	if code := b.Main(ctx, []string{"experiment", overload}); code == 0 || b.out.Len() > 0 {
		t.Errorf("interrupted: exit code %d: %s", code, b.out.String())
	}
}
