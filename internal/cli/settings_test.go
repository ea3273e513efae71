package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/result"
)

// Settings reach deployment, runner and the command that runs a test again.
func TestSettings(t *testing.T) {
	on, off := true, false
	file := suiteFile(t)
	for _, r := range []struct {
		reason string
		args   []string
		tls    bool
		auth   *bool
		api    string
		again  []string // words of the command that runs a test again
	}{
		{"nothing said", nil, false, nil, "", nil},
		{"TLS", []string{"--tls"}, true, nil, "", []string{"--tls"}},
		{"with access control", []string{"--auth", "on"}, false, &on, "", []string{"--auth", "on"}},
		{"without it", []string{"--auth=off"}, false, &off, "", []string{"--auth", "off"}},
		{"the Stable API", []string{"--server-api", "1"}, false, nil, "1", []string{"--server-api", "1"}},
		{"options", []string{"--uri-option", "compressors=zlib", "--uri-option", "appName=a=b"}, false, nil, "",
			[]string{"--uri-option", "compressors=zlib", "--uri-option", "appName=a=b"}},
	} {
		b := newBench()
		if code := b.Main(t.Context(), append([]string{"run", file}, r.args...)); code != 0 {
			t.Errorf("%s: exit code %d: %s", r.reason, code, b.err.String())
			continue
		}
		got := b.embedded.Auth
		if b.embedded.TLS != r.tls || (got == nil) != (r.auth == nil) || got != nil && *got != *r.auth || b.ran.ServerAPI != r.api {
			t.Errorf("%s: %+v, API %q", r.reason, b.embedded, b.ran.ServerAPI)
		}
		again := b.ran.Rerun(result.TestID{File: file, Description: "x"})
		if !slices.Equal(again[2:2+len(r.again)], r.again) {
			t.Errorf("%s: again by %q", r.reason, again)
		}
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	file := suiteFile(t)
	for _, r := range []struct {
		reason, err string
		args        []string
	}{
		{"TLS is said by the connection string", "--tls chooses an embedded deployment", []string{"--tls", "--uri", "mongodb://h/"}},
		{"so is access control", "--auth chooses an embedded deployment", []string{"--auth", "on", "--uri", "mongodb://h/"}},
		{"no option", "it must be NAME=VALUE", []string{"--uri-option", "zlib"}},
		{"a value that it cannot have", "--uri-option", []string{"--uri-option", "maxPoolSize=many"}},
		{"a version that there is not", "--server-api", []string{"--server-api", "2"}},
		{"a cell on all topologies", "one verdict for each test", []string{"--cell", "c", "--topology", "all"}},
	} {
		b := newBench()
		if code := b.Main(t.Context(), append([]string{"run", file}, r.args...)); code != ExitUsage || !strings.Contains(b.err.String(), r.err) || b.ran != nil {
			t.Errorf("%s: exit code %d: %s", r.reason, code, b.err.String())
		}
	}
}

// A test of a cell is run again by hand, where the environment says nothing of
// the cell's connection string; elsewhere it says the same again.
func TestRerunOfACell(t *testing.T) {
	file := suiteFile(t)
	for _, r := range []struct {
		reason string
		args   []string
		want   bool
	}{
		{"of a cell", []string{"--cell", "c"}, true},
		{"of a run by itself", nil, false},
	} {
		b := newBench()
		b.env[envURI], b.env[envSingleURI] = "mongodb://me:geheim@h1/?loadBalanced=true", "mongodb://me:geheim@h2/?loadBalanced=true"
		if code := b.Main(t.Context(), append([]string{"run", file}, r.args...)); code != 0 {
			t.Fatalf("%s: exit code %d: %s", r.reason, code, b.err.String())
		}
		again := strings.Join(b.ran.Rerun(result.TestID{File: file, Description: "x"}), " ")
		both := strings.Contains(again, "--uri mongodb://***@h1/") && strings.Contains(again, "--single-uri mongodb://***@h2/")
		if both != r.want || strings.Contains(again, "geheim") {
			t.Errorf("%s: %s", r.reason, again)
		}
		if cell := b.ran.Cell; cell != "c" == r.want {
			t.Errorf("%s: the cell is %q", r.reason, cell)
		}
	}
}

// Durations of the cell itself go before those of others; others are better
// than none.
func TestDurationsOfACell(t *testing.T) {
	verdicts := []*result.Verdict{{Test: result.TestID{Description: "x", Cell: "a"}}, {Test: result.TestID{Description: "y", Cell: "b"}}}
	for cell, want := range map[string]int{"a": 1, "c": 2, "": 2} {
		if got := len(ofCell(verdicts, cell)); got != want {
			t.Errorf("%q: %d verdicts, want %d", cell, got, want)
		}
	}
}
