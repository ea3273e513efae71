package cli

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// failing is a suite whose second test has a fail point, with a mode and an error that tests fill in.
//
//go:embed testdata/failing.yml
var failing string

// Every report shows backoff delays, with and without sleeping.
func TestBackoffInReports(t *testing.T) {
	b := realBench(t)
	write(t, "x.yml", strings.NewReplacer("MODE", "alwaysOn", "ERROR",
		"errorCode: 462, errorLabels: [SystemOverloadedError, RetryableError]").Replace(failing))
	const line = `attempt \d: back off \S+ [\d.]+ ms \[[^\]]*B6\]`
	for _, backoff := range []string{"real", "none"} {
		b.expect(t, backoff, "run -v --run not --backoff "+backoff+" --json json --junit junit x.yml", 1, "")
		for _, r := range []struct {
			report, text, want string
			times              int
		}{
			{"text", b.out.String(), line, 2}, {"JSON", testkit.Read(t, "json"), `"action":"back off"[^}]*"delayMS":[\d.]+`, 2},
			{"JUnit", testkit.Read(t, "junit"), line, 2},
			{"the command that runs it again", b.out.String(), `utr run [^\n]*--backoff ` + backoff, 1},
		} {
			testkit.Equal(t, r.report+" has --backoff "+backoff,
				len(regexp.MustCompile(r.want).FindAllString(r.text, -1)), r.times)
		}
	}
}

// Flags reach the experiment, and its reports are written. A terminal shows progress and clears it at the end.
func TestExperiment(t *testing.T) {
	const line = "experiment overload --capacity 50 --duration 6s --policy none --policy final --seed 0 --json json --html html --svg svg"
	b := newBench(t)
	b.expect(t, "in a pipe", line, 0, "seed 0")
	plain := b.out.String()
	lacks(t, "in a pipe", plain, "naive", "\x1b")
	testkit.Contains(t, testkit.Read(t, "html"), "<html")
	testkit.Contains(t, testkit.Read(t, "svg"), "<svg")
	var record struct {
		Config struct{ CapacityPerSec, Queue, IngressRatePerSec, Seed int }
		Runs   []struct{ Policy string }
	}
	testkit.Check(t, json.Unmarshal([]byte(testkit.Read(t, "json")), &record))
	testkit.Equal(t, "the record", fmt.Sprint(record), "{{50 25 50 0} [{none} {final}]}")
	b.Terminal = func() (int, bool) { return 80, true }
	b.expect(t, "on a terminal", line, 0, "none 0%")
	_, rest, _ := strings.Cut(b.out.String(), "\r\x1b[Koverload:")
	testkit.Equal(t, "on a terminal", "overload:"+rest, plain)
}

// A program adds an engine, and runs suites with it by its name. Some names are not allowed.
func TestAddEngine(t *testing.T) {
	b := realBench(t)
	mine := func() (engine.Engine, error) { return driver.New(), nil }
	testkit.Check(t, b.AddEngine("mine", mine))
	write(t, "x.yml", strings.NewReplacer("MODE", "alwaysOn", "ERROR", "errorCode: 2").Replace(failing))
	b.expect(t, "a run", "run --engine mine --run same x.yml --run both --skip not", 0, "1 passed")
	b.expect(t, "no policies", "run --engine mine --policy current x.yml", ExitUsage,
		"policies are for the engine reference, not for mine")
	for _, r := range []struct {
		reason, name, says string
		open               func() (engine.Engine, error)
	}{
		{"a built-in name", "driver", `there is already an engine "driver"`, mine},
		{"a name that was added", "mine", `there is already an engine "mine"`, mine},
		{"a name with other characters", "my:engine", "must consist of letters", mine},
		{"no name", "", "must consist of letters", mine},
		{"no New", "other", "has no New", nil},
	} {
		t.Run(r.reason, func(t *testing.T) { testkit.ErrorContains(t, b.AddEngine(r.name, r.open), r.says) })
	}
}
