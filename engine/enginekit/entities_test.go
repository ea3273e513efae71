package enginekit

import (
	"testing"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestNamed(t *testing.T) {
	var m entities.Map
	testkit.Check(t, m.Add(entities.Entity{ID: "a", Kind: entities.Session, Value: 1}))
	doc := testkit.Raw(t, testkit.D("it", "a", "other", "b", "number", 1))
	got, err := Named(&m, doc, "it", entities.Session)
	testkit.Equal(t, "an entity", []any{got, err}, []any{any(1), nil})
	for _, field := range []string{"other", "number", "absent"} {
		_, err := Named(&m, doc, field, entities.Session)
		testkit.ErrorContains(t, err)
	}
	_, err = Named(&m, doc, "it", entities.Client) // of another kind
	testkit.ErrorContains(t, err)
}
