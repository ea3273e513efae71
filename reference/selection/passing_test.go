package selection_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestPass(t *testing.T) {
	testkit.Retell(t, "testdata/passing.txt", func(t *testing.T, s testkit.Story) string {
		asked, _, _ := strings.Cut(s.Text, "\n")
		words := append(strings.Fields(asked)[1:], "")
		got, send := selection.Pass(selection.TopologyType(words[0]), selection.ServerType(words[1]), mode(selection.Mode(words[2])))
		if !send && got.Mode != "" {
			t.Errorf("it is not to be sent, and has mode %s", got.Mode)
		}
		return fmt.Sprintf("%s\n    %s\n", asked, map[bool]string{true: string(got.Mode), false: "nothing"}[send])
	})
}

func TestDocument(t *testing.T) {
	yes := true
	for _, row := range []struct{ reason, preference, want string }{
		{"primary has the mode alone", "primary -", `{"mode":"primary"}`},
		{"the mode is in camel case", "secondaryPreferred", `{"mode":"secondaryPreferred","hedge":{"enabled":true}}`},
		{"-1 is left out", "nearest <-1", `{"mode":"nearest","hedge":{"enabled":true}}`},
		{"what an int32 does not hold stays a long", "nearest <2147483648",
			`{"mode":"nearest","maxStalenessSeconds":{"$numberLong":"2147483648"},"hedge":{"enabled":true}}`},
		{"all fields", "secondary rack:1,dc:ny - <120",
			`{"mode":"secondary","tags":[{"dc":"ny","rack":"1"},{}],"maxStalenessSeconds":{"$numberInt":"120"},"hedge":{"enabled":true}}`},
	} {
		p := preferred(row.preference)
		p.Hedge = &yes
		got, err := bson.MarshalExtJSON(p.Document(), true, false)
		testkit.Check(t, err)
		testkit.Equal(t, row.reason, string(got), row.want)
	}
	testkit.Equal(t, "without hedge", mode(nearest).Document(), bson.D{{Key: "mode", Value: "nearest"}})
}
