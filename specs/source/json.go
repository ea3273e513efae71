package source

import (
	"encoding/json"
	"errors"
)

// jsonNodes returns the root of a JSON document, which is also YAML.
func jsonNodes(l limits, file string, data []byte) (*node, error) {
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(data, new(json.RawMessage)), &syntax) {
		if syntax.Error() == "unexpected end of JSON input" {
			return nil, errorAt(positionAt(file, data, len(data)), "the JSON document is not complete")
		}
		// The offset includes the invalid byte.
		return nil, errorAt(positionAt(file, data, max(0, int(syntax.Offset)-1)), "malformed JSON: %s", syntax)
	}
	return yamlNodes(l, file, data)
}
