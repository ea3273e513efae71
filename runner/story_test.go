package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStories runs each file of testdata: suites, a description of deployment and
// engine, and the resulting transcript.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			story, _, found := strings.Cut(testkit.Read(t, file), "-- want --\n")
			if !found {
				t.Fatal("the story lacks -- want --")
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, story) })
			testkit.Golden(t, file, story+"-- want --\n"+got)
		})
	}
}

// action matches lines of a transcript that are not notes.
var action = regexp.MustCompile(`^(engine|primary|[a-z]:1|mongodb:\S+) `)

// header matches lines such as "-- suite.yml --".
var header = regexp.MustCompile(`(?m)^-- (.+) --\n`)

// play runs a story and returns the transcript.
func play(t *testing.T, story string) string {
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
	ctx, cancel := context.WithCancel(t.Context())
	e := &fakeEngine{say: say, interrupt: cancel, release: make(chan struct{})}
	defer close(e.release)
	d := &fakeDeployment{owned: true, say: say,
		about: deployment.Description{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Version: [3]int{8, 0, 4},
			Hosts: []string{"a:1", "b:1"}}}
	cfg := Config{Engine: e, Timeout: 2 * time.Second, Notify: func(n result.Note) { transcribe(say, n) }}
	var suites []*specs.Suite
	heads := header.FindAllStringSubmatchIndex(story, -1)
	for i, h := range heads {
		end := len(story)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		var err error
		switch name, text := story[h[2]:h[3]], story[h[1]:end]; name {
		case "brief": // notes only
			brief = true
		case "deployment":
			err = d.describe(text)
		case "config":
			err = configure(&cfg, e, text)
		case "engine":
			e.script, err = scriptOf(text)
		case "server":
			d.failures, err = failuresOf(text)
		default:
			suites = append(suites, parseFile(t, name, text))
		}
		if err != nil {
			t.Fatalf("%s: %v", story[h[2]:h[3]], err)
		}
	}
	r, err := onFakes(cfg, &fakeSource{offers: []deployment.Description{d.about},
		start: func(deployment.Description) *fakeDeployment { return d }})
	if err == nil {
		_, err = r.all(ctx, suites)
	}
	if err != nil {
		say("error   %s", err)
	}
	if e.open != 0 {
		t.Errorf("%d tests of the engine were not ended", e.open)
	}
	return transcript.String()
}

// onFakes prepares a run with a fake engine, source and connections.
func onFakes(cfg Config, src *fakeSource) (*run, error) {
	if cfg.Engine == nil {
		cfg.Engine = &fakeEngine{}
	}
	if src.offers == nil {
		src.offers = []deployment.Description{{Name: "replicaset 8.0", Topology: deployment.ReplicaSet,
			Hosts: []string{"a:1"}}}
	}
	if src.start == nil {
		src.start = func(about deployment.Description) *fakeDeployment { return &fakeDeployment{about: about, owned: true} }
	}
	cfg.Source = src
	r, err := prepare(context.Background(), cfg)
	if err == nil {
		r.dial = func(d deployment.Deployment) (commands, error) { return d.(*fakeDeployment), nil }
	}
	return r, err
}

// transcribe writes a note to the transcript.
func transcribe(say func(string, ...any), n result.Note) {
	switch n := n.(type) {
	case result.TestStarted:
		say("\ntest    %s", n.Test.Description)
	case result.TestFinished:
		v := n.Verdict
		line := strings.TrimSuffix(fmt.Sprintf("%s by %s", v.Status, v.SkipKind), " by ")
		if reason, stack, _ := strings.Cut(v.Reason, "\n"); reason != "" {
			line += ": " + reason + testkit.Either(strings.Contains(stack, "(*fakeTest).play"), ", with the stack", "")
		}
		say("%-7s %s", "verdict", line)
		for _, m := range v.Mismatches {
			say("%s", strings.TrimSuffix(fmt.Sprintf("        %s: %s: %s (want %s, got %s)", m.Position, m.Path, m.Message,
				m.Want, m.Got), " (want , got )"))
		}
		for _, w := range v.Warnings {
			say("        warning: %s", w)
		}
	case result.RunFinished:
		s := n.Summary
		line := fmt.Sprintf("%d passed, %d failed, %d skipped, %d broken, %d known failing, %d flaky; exit %d",
			s.Passed, s.Failed, s.Skipped, s.Broken, s.KnownFailing, s.Flaky, s.ExitCode())
		say("\nrun     %s", strings.Replace(line, ", 0 flaky", "", 1))
		for _, b := range s.Breaks {
			say("        %s broke: %s", b.Subject(), b.Reason)
		}
		for _, p := range s.Problems {
			say("        %s", p)
		}
	}
}

// scriptOf parses the script of an engine, a list of steps.
func scriptOf(text string) (map[string][]step, error) {
	var steps []step
	err := strictly(text, &steps)
	script := make(map[string][]step)
	for _, s := range steps {
		script[s.On] = append(script[s.On], s)
	}
	return script, err
}

// describe parses the deployment of a story.
func (d *fakeDeployment) describe(text string) error {
	parsed := struct {
		Topology     deployment.Topology
		Hosts        []string
		Owned        bool
		TestCommands *bool
		None         string // error of Acquire
		Services     []bson.ObjectID
		Busy         int // how often $currentOp returns a command, -1 for always
		Version      int // major
	}{Topology: d.about.Topology, Hosts: d.about.Hosts, Owned: true, Version: 8}
	err := strictly(text, &parsed)
	d.about.Name, d.about.Topology, d.about.Hosts = string(parsed.Topology)+" 8.0", parsed.Topology, parsed.Hosts
	d.about.Version[0] = parsed.Version
	d.owned, d.services, d.busy = parsed.Owned, parsed.Services, parsed.Busy
	if parsed.TestCommands != nil {
		d.about.Parameters = mustRaw(bson.D{{Key: "enableTestCommands", Value: *parsed.TestCommands}})
	}
	if parsed.None != "" {
		d.none = errors.New(parsed.None)
	}
	return err
}

// configure parses the configuration of a story.
func configure(cfg *Config, e *fakeEngine, text string) error {
	var parsed struct {
		Reseed            Reseed
		Count, Retries    int
		FailFast          bool
		Timeout           time.Duration
		KnownFailing      string
		ServerAPI, Schema string // Schema is the engine's schema version
		Serves            []string
		Lacks             map[string]string
		Logs              []result.Monitor // events of the engine
	}
	if err := strictly(text, &parsed); err != nil {
		return err
	}
	cfg.Reseed, cfg.Count, cfg.Retries, cfg.FailFast, cfg.ServerAPI = parsed.Reseed, parsed.Count, parsed.Retries, parsed.FailFast, parsed.ServerAPI
	e.schema, e.serves, e.lacks, e.logs = parsed.Schema, parsed.Serves, parsed.Lacks, parsed.Logs
	if parsed.Timeout != 0 {
		cfg.Timeout = parsed.Timeout
	}
	var err error
	cfg.KnownFailing, err = ParseKnownFailing("known.txt", strings.NewReader(parsed.KnownFailing))
	return err
}
