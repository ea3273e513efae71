package runner

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"github.com/unified-test-runner/utr/specs/operations"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/unified-test-runner/utr/runner.(*fakeTest).play"))
}

// TestStories plays each file of testdata: suites, what the deployment is and
// what the engine does, and the transcript of all that happens then.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, sections := split(string(data))
			got := play(t, file, sections)
			if *update {
				var out strings.Builder
				out.WriteString(head)
				for _, s := range sections {
					if s.name != "want" {
						fmt.Fprintf(&out, "-- %s --\n%s", s.name, s.text)
					}
				}
				fmt.Fprintf(&out, "-- want --\n%s", got)
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := ""
			for _, s := range sections {
				if s.name == "want" {
					want = s.text
				}
			}
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

type section struct{ name, text string }

// split takes a story apart at lines such as "-- suite.yml --".
func split(text string) (head string, sections []section) {
	for _, line := range strings.SplitAfter(text, "\n") {
		trimmed := strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(trimmed, "-- ") && strings.HasSuffix(trimmed, " --") && len(trimmed) > 6 {
			sections = append(sections, section{name: trimmed[3 : len(trimmed)-3]})
		} else if len(sections) == 0 {
			head += line
		} else {
			sections[len(sections)-1].text += line
		}
	}
	return head, sections
}

// everything is an engine that serves whatever it is asked for.
func everything() engine.Description {
	about := engine.Description{Name: "scripted", Version: "1", Features: []string{engine.FeatureLogging, engine.FeatureReducedHeartbeats}}
	for _, o := range operations.All() {
		about.Operations = append(about.Operations, string(o.Kind)+"."+o.Name)
	}
	return about
}

// action finds the lines of a transcript that are no notes.
var action = regexp.MustCompile(`^(engine|primary|[a-z]:1|mongodb:\S+) `)

// play runs a story and gives its transcript.
func play(t *testing.T, file string, sections []section) string {
	t.Helper()
	var mu sync.Mutex
	var transcript strings.Builder
	brief := false
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if line := fmt.Sprintf(format, args...); !brief || !action.MatchString(line) {
			transcript.WriteString(line + "\n")
		}
	}
	e := &fakeEngine{about: everything(), say: say}
	about := deployment.Description{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Version: [3]int{8, 0, 4}, Hosts: []string{"a:1", "b:1"}}
	cfg := Config{Engine: e, Timeout: 2 * time.Second}
	d := &fakeDeployment{owned: true, say: say}
	var suites []*specs.Suite
	for _, s := range sections {
		var v *source.Value
		var err error
		if !strings.HasSuffix(s.name, ".yml") && s.name != "want" && s.name != "server" && s.name != "brief" {
			if v, err = source.ParseYAML(file+"/"+s.name, []byte(s.text)); err != nil {
				t.Fatal(err)
			}
		}
		switch s.name {
		case "brief": // the transcript has verdicts alone
			brief = true
		case "deployment":
			describe(t, v, &about, d)
		case "config":
			configure(t, v, &cfg, say)
		case "engine":
			if e.script, err = scriptOf(v); err != nil {
				t.Fatal(err)
			}
		case "server":
			if d.failures, err = failuresOf(s.text); err != nil {
				t.Fatal(err)
			}
		case "want":
		default:
			suite, err := specs.Parse(s.name, []byte(s.text))
			if err != nil {
				t.Fatal(err)
			}
			suites = append(suites, suite)
		}
	}
	d.about = about
	src := &fakeSource{offers: []deployment.Description{about}, start: func(deployment.Description) *fakeDeployment { return d }}
	cfg.Source = src
	cfg.Notify = func(n result.Note) { tell(say, n) }
	r, err := prepare(context.Background(), cfg)
	if err != nil {
		say("error   %s", err)
		return transcript.String()
	}
	r.dial = func(deployment.Deployment) (commands, error) { return d, nil }
	if _, err := r.all(context.Background(), suites); err != nil {
		say("error   %s", err)
	}
	if e.open != 0 {
		t.Errorf("%d tests of the engine were not ended", e.open)
	}
	return transcript.String()
}

// tell writes a note to the transcript.
func tell(say func(string, ...any), n result.Note) {
	switch n := n.(type) {
	case result.TestStarted:
		say("\ntest    %s", n.Test.Description)
	case result.TestFinished:
		v := n.Verdict
		line := string(v.Status)
		if v.SkipKind != "" {
			line += " by " + string(v.SkipKind)
		}
		if v.Reason != "" {
			reason, _, _ := strings.Cut(v.Reason, "\n")
			line += ": " + reason
		}
		say("%-7s %s", "verdict", line)
		for _, m := range v.Mismatches {
			text := fmt.Sprintf("        %s: %s: %s", m.Position, m.Path, m.Message)
			if m.Want != "" || m.Got != "" {
				text += fmt.Sprintf(" (want %s, got %s)", m.Want, m.Got)
			}
			say("%s", text)
		}
	case result.RunFinished:
		s := n.Summary
		flaky := ""
		if s.Flaky > 0 {
			flaky = fmt.Sprintf(", %d flaky", s.Flaky)
		}
		say("\nrun     %d passed, %d failed, %d skipped, %d broken, %d known failing%s; exit %d",
			s.Passed, s.Failed, s.Skipped, s.Broken, s.KnownFailing, flaky, s.ExitCode())
		for _, p := range s.Problems {
			say("        %s", p)
		}
	}
}

// describe reads the deployment of a story.
func describe(t *testing.T, v *source.Value, about *deployment.Description, d *fakeDeployment) {
	t.Helper()
	for _, f := range v.Fields {
		switch f.Key {
		case "topology":
			about.Topology = deployment.Topology(f.Value.String)
			about.Name = f.Value.String + " 8.0"
		case "hosts":
			about.Hosts = nil
			for _, h := range f.Value.Items {
				about.Hosts = append(about.Hosts, h.String)
			}
		case "auth":
			about.Auth = f.Value.Bool
		case "testCommands":
			about.Parameters = mustRaw(bson.D{{Key: "enableTestCommands", Value: f.Value.Bool}})
		case "owned":
			d.owned = f.Value.Bool
		case "services":
			for _, s := range f.Value.Items {
				id, err := bson.ObjectIDFromHex(s.String)
				if err != nil {
					t.Fatal(err)
				}
				d.services = append(d.services, id)
			}
		default:
			t.Fatalf("%s: a deployment has no %q", f.KeyPosition, f.Key)
		}
	}
}

// configure reads the configuration of a story.
func configure(t *testing.T, v *source.Value, cfg *Config, say func(string, ...any)) {
	t.Helper()
	for _, f := range v.Fields {
		switch f.Key {
		case "reseed":
			cfg.Reseed = Reseed(f.Value.String)
		case "count":
			cfg.Count = int(f.Value.Int)
		case "retries":
			cfg.Retries = int(f.Value.Int)
		case "failFast":
			cfg.FailFast = f.Value.Bool
		case "timeoutMS":
			cfg.Timeout = time.Duration(f.Value.Int) * time.Millisecond
		case "knownFailing":
			list, err := ParseKnownFailing("known.txt", strings.NewReader(f.Value.String))
			if err != nil {
				t.Fatal(err)
			}
			cfg.KnownFailing = list
		case "entities": // tell, or panic
			cfg.Entities = func(test result.TestID, values map[string]bson.RawValue) {
				if f.Value.String == "panic" {
					panic("no entities")
				}
				for _, name := range slices.Sorted(maps.Keys(values)) {
					say("entity  %s of %q: %s", name, test.Description, plain(values[name]))
				}
			}
		case "placeholders":
			cfg.Placeholder = func(path string) (string, bool) {
				p := f.Value.Get(path)
				return textOf(p), p != nil
			}
		default:
			t.Fatalf("%s: a configuration has no %q", f.KeyPosition, f.Key)
		}
	}
}
