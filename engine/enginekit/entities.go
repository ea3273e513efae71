package enginekit

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/entities"
)

// Named returns the entity of a kind whose id is in a field of a document.
func Named(m *entities.Map, doc bson.Raw, field string, kind entities.Kind) (any, error) {
	id, ok := doc.Lookup(field).StringValueOK()
	if !ok {
		return nil, fmt.Errorf("%s is not the name of an entity", field)
	}
	e, err := m.Get(id)
	if err == nil && e.Kind != kind {
		err = fmt.Errorf("%s: entity %q is not a %s", field, id, kind)
	}
	return e.Value, err
}
