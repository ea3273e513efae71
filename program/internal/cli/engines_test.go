package cli

import (
	_ "embed"
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
