package report

import (
	_ "embed"
)

//go:embed record.schema.json
var schema []byte

// Schema is the JSON Schema of one record of the JSON report.
func Schema() []byte { return append([]byte(nil), schema...) }
