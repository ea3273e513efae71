package cmdline

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestParsed(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/commandlines.txt", func(t *testing.T, in string) string {
		text, err := bson.MarshalExtJSON(Parsed(strings.Fields(in)), false, false)
		testkit.Check(t, err)
		return string(text)
	})
}
