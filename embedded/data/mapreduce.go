package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

func (d *Data) mapReduce(s *scope, a *args) (bson.D, error) {
	return nil, command.Errorf(139, "not yet")
}
