package runner_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/shared"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// official gives a path below ../shared/specifications, or skips the test.
func official(t testing.TB, path string) string {
	t.Helper()
	return shared.Path(t, "specifications", path)
}

// verdicts runs suites through the reference engine on embedded deployments.
func verdicts(t testing.TB, path string, cfg runner.Config) ([]*result.Verdict, result.Summary) {
	t.Helper()
	loaded, err := specs.Load([]string{path}, specs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	src, err := deployment.OpenEmbedded(ctx, deployment.EmbeddedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	e, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var all []*result.Verdict
	cfg.Engine, cfg.Source = e, src
	cfg.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			all = append(all, f.Verdict)
		}
	}
	summary, err := runner.Run(ctx, loaded.Suites, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return all, summary
}

func explain(v *result.Verdict) string {
	var b strings.Builder
	b.WriteString(filepath.Base(v.Test.File) + ": " + v.Test.Description + " on " + v.Test.Deployment + ": " + string(v.Status) + " " + v.Reason)
	for _, m := range v.Mismatches {
		b.WriteString("\n    " + m.Position.String() + " " + m.Path + ": " + m.Message + " (want " + m.Want + ", got " + m.Got + ")")
	}
	return b.String()
}

// Each suite of valid-fail fails, and for the reason that its description
// names.
func TestValidFail(t *testing.T) {
	reasons := map[string]string{ // test: what a mismatch has to say
		"operation fails if client field is not specified":                  `missing argument: assertNumberConnectionsCheckedOut needs "client"`,
		"operation fails if connections field is not specified":             `missing argument: assertNumberConnectionsCheckedOut needs "connections"`,
		"operation fails if client entity does not exist":                   `undefined entity: there is no client named "client1"`,
		"operation fails if number of connections is incorrect":             "the number of connections checked out by client0 differs",
		"entity-client-apiVersion-unsupported foo":                          "server_will_never_support_this_api_version",
		"entity-database-client-undefined foo":                              `undefined entity: nothing is named "foo"`,
		"createFindCursor fails if filter is not specified":                 `missing argument: createFindCursor needs "filter"`,
		"operation errors are not ignored if ignoreResultAndError is false": "code 11000",
		"Unsupported command":                                               "code 59 CommandNotFound",
		"Unsupported query operator":                                        "code 2 BadValue",
		"matchAsDocument with non-matching filter":                          "$$matchAsDocument.y: want string, got int",
		"matchAsDocument evaluates special operators":                       "$$matchAsDocument.y: want no value, got one",
		"matchAsDocument does not permit extra fields":                      `unexpected key "y"`,
		"matchAsDocument expects JSON object but given scalar":              "not a JSON object",
		"matchAsDocument expects JSON object but given array":               "not a JSON object",
		"matchAsDocument fails to decode Extended JSON":                     "invalid JSON",
		"FindOneAndReplace returnDocument invalid enum value":               "argument returnDocument must be one of Before, After",
		"FindOneAndUpdate returnDocument invalid enum value":                "argument returnDocument must be one of Before, After",
	}
	all, _ := verdicts(t, official(t, "unified-test-format/tests/valid-fail"), runner.Config{Timeout: 20 * time.Second})
	seen := 0
	for _, v := range all {
		if v.Status == result.Skipped && v.SkipKind == result.SkipRequirement {
			continue // encryption
		}
		seen++
		want, found := reasons[v.Test.Description]
		if !found {
			want, found = reasons[v.Test.Suite+" "+v.Test.Description]
		}
		text := explain(v)
		if v.Status != result.Failed || !found || !strings.Contains(text, want) {
			t.Errorf("want a failure that says %q, got %s", want, text)
		}
	}
	if seen < len(reasons) {
		t.Errorf("%d tests ran, %d are known", seen, len(reasons))
	}
}

// Every suite of valid-pass passes, or lacks what it requires.
func TestValidPass(t *testing.T) {
	all, summary := verdicts(t, official(t, "unified-test-format/tests/valid-pass"), runner.Config{Timeout: 20 * time.Second})
	for _, v := range all {
		switch v.Status {
		case result.Passed:
		case result.Skipped:
			t.Logf("skipped: %s", explain(v))
		default:
			t.Error(explain(v))
		}
	}
	t.Logf("%d passed, %d skipped", summary.Passed, summary.Skipped)
}

// The retryable-reads suites pass on every topology, in any order.
func TestRetryableReads(t *testing.T) {
	seed := int64(1)
	all, summary := verdicts(t, official(t, "retryable-reads/tests/unified"), runner.Config{Timeout: 20 * time.Second, AllTopologies: true, Jobs: 2, Shuffle: &seed})
	for _, v := range all {
		if v.Status != result.Passed && (v.Status != result.Skipped || v.SkipKind != result.SkipRequirement) {
			t.Error(explain(v))
		}
	}
	slices.SortFunc(all, func(a, b *result.Verdict) int { return int(b.Duration - a.Duration) })
	for _, v := range all[:min(5, len(all))] {
		t.Logf("slow: %s %s", v.Duration, explain(v))
	}
	t.Logf("%d passed, %d skipped in %s (%+v)", summary.Passed, summary.Skipped, summary.Duration, summary.Timings)
}
