package enginekit

import (
	"testing"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestNamed(t *testing.T) {
	var m Test
	testkit.Check(t, m.Entities.Add(entities.Entity{ID: "a", Kind: entities.Session, Value: 1}))
	doc := testkit.Raw(t, testkit.D("it", "a", "other", "b", "number", 1))
	got, err := m.named(doc, "it", entities.Session)
	testkit.Equal(t, "an entity", []any{got, err}, []any{any(1), nil})
	for _, field := range []string{"other", "number", "absent"} {
		_, err := m.named(doc, field, entities.Session)
		testkit.ErrorContains(t, err)
	}
	_, err = m.named(doc, "it", entities.Client) // of another kind
	testkit.ErrorContains(t, err)
}
