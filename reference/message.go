package reference

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/wire"
)

// parse returns the body of the reply to a request.
func parse(request int32, message []byte) (bson.Raw, error) {
	h, body, err := wire.Split(message)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return wire.Response(request, h, body)
}
