package result

import "go.mongodb.org/mongo-driver/v2/bson"

// Span is a tracing span of a client (OpenTelemetry specification). Spans are listed in the order in which they began,
// so a span follows its parent.
type Span struct {
	ID         string
	Parent     string // the ID of a span before it in the list; a span with any other parent is a root
	Name       string
	Attributes bson.Raw // including the attributes of a recorded exception
}
