package runner_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
)

// Tests of valid-fail fail for the reason that they describe. Tests of valid-pass
// pass, or are skipped.
func TestFormatsOwnTests(t *testing.T) {
	reasons := map[string]string{ // text of a mismatch by test
		"operation fails if client field is not specified":                        "operation assertNumberConnectionsCheckedOut requires argument client",
		"operation fails if connections field is not specified":                   "operation assertNumberConnectionsCheckedOut requires argument connections",
		"operation fails if client entity does not exist":                         `entity "client1" is not defined here; a client is required`,
		"operation fails if number of connections is incorrect":                   "the number of connections checked out by client0 differs",
		"entity-client-apiVersion-unsupported foo":                                "server_will_never_support_this_api_version",
		"entity-database-client-undefined foo":                                    `entity "foo" is not defined here`,
		"entity-bucket-database-undefined foo":                                    `entity "foo" is not defined here`,
		"entity-collection-database-undefined foo":                                `entity "foo" is not defined here`,
		"entity-session-client-undefined foo":                                     `entity "foo" is not defined here`,
		"iterateUntilDocumentOrError fails if it references a nonexistent entity": `entity "cursor0" is not defined here`,
		"close fails if it references a nonexistent entity":                       `entity "cursor0" is not defined here`,
		"malformed operation fails if ignoreResultAndError is true":               "operation insertOne has no argument foo",
		"Unsupported operation":                                                   `a client has no operation "unsupportedOperation"`,
		"matchAsRoot with nested document does not match":                         "$$matchAsRoot.y: the numbers differ",
		"createFindCursor fails if filter is not specified":                       "operation createFindCursor requires argument filter",
		"operation errors are not ignored if ignoreResultAndError is false":       "code 11000",
		"Unsupported command":                                                     "code 59 CommandNotFound",
		"Unsupported query operator":                                              "code 2 BadValue",
		"matchAsDocument with non-matching filter":                                "$$matchAsDocument.y: expected string, got int",
		"matchAsDocument evaluates special operators":                             "$$matchAsDocument.y: expected no value, got one",
		"matchAsDocument does not permit extra fields":                            `unexpected key "y"`,
		"matchAsDocument expects JSON object but given scalar":                    "not a JSON object",
		"matchAsDocument expects JSON object but given array":                     "not a JSON object",
		"matchAsDocument fails to decode Extended JSON":                           "invalid JSON",
		"FindOneAndReplace returnDocument invalid enum value":                     "argument returnDocument must be one of Before, After",
		"FindOneAndUpdate returnDocument invalid enum value":                      "argument returnDocument must be one of Before, After",
	}
	failed, passed := 0, 0
	suites := suitetest.Load(t, testkit.Official(t, "unified-test-format", "tests"))
	for _, v := range suitetest.New(t, deployment.EmbeddedOptions{}).Run(t, suites) {
		switch text := suitetest.Describe(v); {
		case v.Status == result.Skipped:
			t.Logf("%s: %s", filepath.Base(v.Test.File), text)
		case filepath.Base(filepath.Dir(v.Test.File)) == "valid-fail":
			failed++
			want, found := reasons[v.Test.Description]
			if !found {
				want, found = reasons[v.Test.Suite+" "+v.Test.Description]
			}
			if v.Status != result.KnownFailing || !found || !strings.Contains(text, want) {
				t.Errorf("%s: want a failure with %q, got %s", filepath.Base(v.Test.File), want, text)
			}
		case v.Status != result.Passed:
			t.Errorf("%s: %s", filepath.Base(v.Test.File), text)
		default:
			passed++
		}
	}
	if failed < 18 || passed < 70 {
		t.Errorf("only %d tests failed and %d passed", failed, passed)
	}
}
