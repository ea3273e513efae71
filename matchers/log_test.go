package matchers

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

func TestLogMessages(t *testing.T) {
	messages := map[string]string{
		"begun":    `{"level":"debug","component":"command","data":{"message":"Command started","command":"{\"ping\":1,\"x\":2}"}}`,
		"ended":    `{"level":"debug","component":"command","data":{"message":"Command failed","failure":"x"},"failureredacted":true}`,
		"plain":    `{"level":"debug","component":"command","data":{},"failureredacted":false}`,
		"topology": `{"level":"info","component":"topology","data":{"message":"Changed"}}`,
	}
	wanted := strings.NewReplacer("BEGUN", `{level: debug, component: command, data: {message: Command started}}`,
		"ENDED", `{level: debug, component: command, failureIsRedacted: true, data: {message: Command failed}}`)
	transcript(t, "logs.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		got := make([]result.LogMessage, len(strings.Fields(actual)))
		for i, name := range strings.Fields(actual) {
			testkit.Check(t, bson.Unmarshal(raw(t, messages[name]), &got[i]))
		}
		return New(nil).LogMessages("", yaml(t, wanted.Replace(expected)), got)
	})
}

func TestCollection(t *testing.T) {
	transcript(t, "collections.txt", func(t *testing.T, expected, actual string) []result.Mismatch {
		var got []bson.Raw
		values, err := seen(t, actual).Array().Values()
		testkit.Check(t, err)
		for _, v := range values {
			got = append(got, v.Document())
		}
		return New(nil).Collection("", source.Position{File: "test.yml", Line: 1}, yaml(t, expected).Items, got)
	})
}
