package specs_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// Official files in invalid are rejected, files of other formats are skipped, and all others load. Files in valid-fail
// have the expected warnings. Every operation is known. The soak compares JSON twins.
func TestOfficialSuites(t *testing.T) {
	root := testkit.Official(t)
	loaded, err := specs.Load([]string{root}, specs.Options{Twins: os.Getenv("UTR_SOAK") == "1"})
	testkit.Check(t, err)
	formats := filepath.Join(root, "unified-test-format/tests")
	for _, file := range loaded.Rejected {
		if filepath.Dir(file) != filepath.Join(formats, "invalid") && filepath.Base(file) != "schemaVersion-unsupported.yml" {
			t.Errorf("rejected: %s", file)
		}
	}
	invalid, err := filepath.Glob(filepath.Join(formats, "invalid/*.yml"))
	if err != nil || len(loaded.Rejected) < len(invalid) || len(invalid) < 100 {
		t.Errorf("%d of %d invalid suites are rejected: %v", len(loaded.Rejected), len(invalid), err)
	}
	// If their folder is named, the errors are reported. All of them are errors of the schema.
	_, err = specs.Load([]string{filepath.Join(formats, "invalid")}, specs.Options{})
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("loading the invalid suites returns %v", err)
	}
	for _, e := range all.Unwrap() {
		var invalid *specs.InvalidError
		if !errors.As(e, &invalid) {
			t.Errorf("%v", e)
			continue
		}
		for _, p := range invalid.Problems {
			if p.Position.Line == 0 || p.Position.Column == 0 || p.Message == "" || p.Rule == "" {
				t.Errorf("problem without position or message: %#v", p)
			}
			if p.Rule == "parse" {
				t.Errorf("not rejected by the schema: %v", p)
			}
		}
	}

	// The rules that files in valid-fail violate. Other files fail only when they run.
	expected := map[string][]string{
		"entity-bucket-database-undefined.yml":           {"undefined-entity", "vacuous"},
		"entity-collection-database-undefined.yml":       {"undefined-entity", "vacuous"},
		"entity-findCursor.yml":                          {"undefined-entity"},
		"entity-session-client-undefined.yml":            {"undefined-entity", "vacuous"},
		"ignoreResultAndError-malformed.yml":             {"missing-argument", "unknown-argument", "vacuous"},
		"kmsProviders-missing_azure_kms_credentials.yml": {"kms-credentials", "vacuous"},
		"kmsProviders-no_kms.yml":                        {"vacuous"},
		"operation-unsupported.yml":                      {"unknown-operation"},
		"assertNumberConnectionsCheckedOut.yml":          {"missing-argument", "undefined-entity"},
		"entity-client-apiVersion-unsupported.yml":       {"api-version", "vacuous"},
		"entity-database-client-undefined.yml":           {"undefined-entity", "vacuous"},
		"entity-findCursor-malformed.yml":                {"missing-argument"},
		"kmsProviders-missing_aws_kms_credentials.yml":   {"kms-credentials", "vacuous"},
		"kmsProviders-missing_gcp_kms_credentials.yml":   {"kms-credentials", "vacuous"},
		"returnDocument-enum-invalid.yml":                {"argument-value"},
	}
	tests, names := 0, map[string]bool{}
	for _, s := range loaded.Suites {
		tests += len(s.Tests)
		for _, test := range s.Tests {
			for _, o := range test.Operations {
				names[o.Name] = true
				if len(operations.KindsWith(o.Name)) == 0 && !s.MustFail {
					t.Errorf("%s: operation %s is unknown", o.Position, o.Name)
				}
			}
		}
		var rules []string
		for _, w := range s.Warnings {
			rules = append(rules, w.Rule)
			if w.Severity != specs.Warning || w.Position.Line == 0 || w.Path == "" {
				t.Errorf("incomplete warning: %#v", w)
			}
		}
		slices.Sort(rules)
		rules = slices.Compact(rules)
		switch filepath.Base(filepath.Dir(s.File)) {
		case "valid-fail":
			if !s.MustFail {
				t.Errorf("%s: MustFail is false", s.File)
			}
			if want := expected[filepath.Base(s.File)]; !slices.Equal(rules, want) {
				t.Errorf("%s: warnings %v, want %v", s.File, rules, want)
			}
		case "valid-pass":
			// Some of these only check that entities can be created.
			if len(rules) > 0 && !slices.Equal(rules, []string{"vacuous"}) {
				t.Errorf("%s: %v", s.File, s.Warnings)
			}
		default:
			if len(rules) > 0 {
				t.Errorf("%s: %v", s.File, s.Warnings)
			}
		}
		if len(s.Tests) != len(s.Root.Get("tests").Items) {
			t.Errorf("%s: %d tests were decoded", s.File, len(s.Tests))
		}
		if _, err := s.Root.BSON(); err != nil {
			t.Errorf("%s: %v", s.File, err)
		}
	}
	if tests < 1000 || len(names) < 70 {
		t.Errorf("only %d tests with %d operations were found", tests, len(names))
	}
	// No file of another format has a key that only suites have.
	for _, file := range loaded.Others {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(filepath.Base(file), "schema-") &&
			regexp.MustCompile(`(?m)^ ?.?.?(schemaVersion|createEntities|runOnRequirements)`).Match(text) {
			t.Errorf("skipped: %s %v", file, err)
		}
	}
}
