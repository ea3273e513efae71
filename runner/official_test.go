package runner_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// verdicts runs suites through the reference engine.
func verdicts(t *testing.T, path string, src deployment.Source, cfg runner.Config) (all []*result.Verdict) {
	t.Helper()
	loaded, err := specs.Load([]string{path}, specs.Options{})
	testkit.Check(t, err)
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	defer e.Close()
	cfg.Engine, cfg.Source = e, src
	cfg.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			all = append(all, f.Verdict)
		}
	}
	if _, err := runner.Run(testkit.Context(t), loaded.Suites, cfg); err != nil {
		t.Fatal(err)
	}
	return all
}

func embedded(t *testing.T, topologies ...deployment.Topology) deployment.Source {
	t.Helper()
	src, err := deployment.OpenEmbedded(testkit.Context(t), deployment.EmbeddedOptions{Topologies: topologies})
	testkit.Check(t, err)
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}

func explain(v *result.Verdict) string {
	var b strings.Builder
	b.WriteString(filepath.Base(v.Test.File) + ": " + v.Test.Description + " on " + v.Test.Deployment + ": " + string(v.Status) + " " + v.Reason)
	for _, m := range v.Mismatches {
		b.WriteString("\n    " + m.Position.String() + " " + m.Path + ": " + m.Message + " (want " + m.Want + ", got " + m.Got + ")")
	}
	return b.String()
}

// Of the format's own tests, each of valid-fail fails, which is no failure of the
// run, and for the reason that its description names; each of valid-pass passes,
// or lacks what it requires.
func TestFormatsOwnTests(t *testing.T) {
	reasons := map[string]string{ // test: what a mismatch has to say
		"operation fails if client field is not specified":                        `missing argument: assertNumberConnectionsCheckedOut needs "client"`,
		"operation fails if connections field is not specified":                   `missing argument: assertNumberConnectionsCheckedOut needs "connections"`,
		"operation fails if client entity does not exist":                         `undefined entity: there is no client named "client1"`,
		"operation fails if number of connections is incorrect":                   "the number of connections checked out by client0 differs",
		"entity-client-apiVersion-unsupported foo":                                "server_will_never_support_this_api_version",
		"entity-database-client-undefined foo":                                    `undefined entity: nothing is named "foo"`,
		"entity-bucket-database-undefined foo":                                    `undefined entity: nothing is named "foo"`,
		"entity-collection-database-undefined foo":                                `undefined entity: nothing is named "foo"`,
		"entity-session-client-undefined foo":                                     `undefined entity: nothing is named "foo"`,
		"iterateUntilDocumentOrError fails if it references a nonexistent entity": `undefined entity: nothing is named "cursor0"`,
		"close fails if it references a nonexistent entity":                       `undefined entity: nothing is named "cursor0"`,
		"malformed operation fails if ignoreResultAndError is true":               `unsupported argument: insertOne does not take "foo"`,
		"Unsupported operation":                                                   `a client has no operation "unsupportedOperation"`,
		"matchAsRoot with nested document does not match":                         "$$matchAsRoot.y: the numbers differ",
		"createFindCursor fails if filter is not specified":                       `missing argument: createFindCursor needs "filter"`,
		"operation errors are not ignored if ignoreResultAndError is false":       "code 11000",
		"Unsupported command":                                                     "code 59 CommandNotFound",
		"Unsupported query operator":                                              "code 2 BadValue",
		"matchAsDocument with non-matching filter":                                "$$matchAsDocument.y: want string, got int",
		"matchAsDocument evaluates special operators":                             "$$matchAsDocument.y: want no value, got one",
		"matchAsDocument does not permit extra fields":                            `unexpected key "y"`,
		"matchAsDocument expects JSON object but given scalar":                    "not a JSON object",
		"matchAsDocument expects JSON object but given array":                     "not a JSON object",
		"matchAsDocument fails to decode Extended JSON":                           "invalid JSON",
		"FindOneAndReplace returnDocument invalid enum value":                     "argument returnDocument must be one of Before, After",
		"FindOneAndUpdate returnDocument invalid enum value":                      "argument returnDocument must be one of Before, After",
	}
	failed, passed := 0, 0
	for _, v := range verdicts(t, testkit.Official(t, "unified-test-format", "tests"), embedded(t), runner.Config{}) {
		text := explain(v)
		switch {
		case v.Status == result.Skipped:
			t.Logf("skipped: %s", text)
		case filepath.Base(filepath.Dir(v.Test.File)) == "valid-fail":
			failed++
			want, found := reasons[v.Test.Description]
			if !found {
				want, found = reasons[v.Test.Suite+" "+v.Test.Description]
			}
			if v.Status != result.KnownFailing || !found || !strings.Contains(text, want) {
				t.Errorf("want a failure that says %q, got %s", want, text)
			}
		case v.Status != result.Passed:
			t.Error(text)
		default:
			passed++
		}
	}
	if failed < 18 || passed < 70 {
		t.Errorf("only %d tests failed and %d passed", failed, passed)
	}
}

// A deployment that somebody else runs serves several workers, one after the
// other; initial data is read rather than made again, with the same verdicts as
// by the letter of the format.
func TestCluster(t *testing.T) {
	source := embedded(t, deployment.Sharded)
	lent, err := source.Acquire(testkit.Context(t), 0)
	testkit.Check(t, err)
	defer source.Release(lent, false)
	cluster, err := deployment.OpenCluster(testkit.Context(t), deployment.ClusterOptions{URI: lent.URI()})
	testkit.Check(t, err)
	defer cluster.Close()
	for _, reseed := range []runner.Reseed{runner.ReseedAuto, runner.ReseedAlways} {
		cfg := runner.Config{Jobs: 4, Count: 2, Reseed: reseed, Timeout: 30 * time.Second}
		for _, v := range verdicts(t, "retryable-reads/sessions.yml", cluster, cfg) {
			if v.Status != result.Passed {
				t.Error(explain(v))
			}
		}
	}
}
