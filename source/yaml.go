package source

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// yamlNodes returns the root of a file with one YAML document.
func yamlNodes(_ limits, file string, data []byte) (root *yaml.Node, err error) {
	defer func() { // versions of the parser have panicked on malformed input
		if p := recover(); p != nil {
			root, err = nil, errorAt(Position{File: file, Line: 1, Column: 1}, "malformed YAML: %v", p)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	switch e := decoder.Decode(&document); {
	case errors.Is(e, io.EOF):
		return nil, errorAt(Position{File: file, Line: 1, Column: 1}, "the file is empty")
	case e != nil:
		return nil, yamlError(file, data, e)
	}
	switch e := decoder.Decode(&more); {
	case errors.Is(e, io.EOF):
	case e != nil:
		return nil, yamlError(file, data, e)
	default:
		return nil, errorAt(Position{File: file, Line: max(1, more.Line), Column: max(1, more.Column)}, "a second YAML document starts here; a suite file holds one")
	}
	return document.Content[0], nil
}

var (
	lineOfError   = regexp.MustCompile(`^yaml: line (\d+): `)
	unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// yamlError adds a position to a parser error. Since the parser does not report
// columns, it is that of the first character of the line.
func yamlError(file string, data []byte, err error) *Error {
	text, line := err.Error(), 1
	if m := lineOfError.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		if at := bytes.Index(data, []byte("*"+m[1])); at >= 0 {
			return errorAt(positionAt(file, data, at), "alias *%s has no anchor before it", m[1])
		}
	}
	lines := bytes.Split(data, []byte("\n"))
	line = max(1, min(line, len(lines)))
	column := 1 + len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " \t"))
	return errorAt(Position{File: file, Line: line, Column: column}, "malformed YAML: %s", text)
}

// yamlReader builds values from nodes. It ignores their types, which partly
// follow YAML 1.1: suites use the core schema of YAML 1.2.
type yamlReader struct {
	limits limits
	file   string
	nodes  int
}

func (r *yamlReader) at(n *yaml.Node) Position {
	return Position{File: r.file, Line: n.Line, Column: n.Column}
}

// value reads a node. Each use of an alias is expanded, so that recursive and exponential aliases exceed the limits.
func (r *yamlReader) value(n *yaml.Node, depth int) (*Value, error) {
	v := &Value{Position: r.at(n)}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if r.nodes++; r.nodes > r.limits.nodes {
		return nil, errorAt(v.Position, "the file has more than %d values once its aliases are expanded", r.limits.nodes)
	}
	if depth > r.limits.depth {
		return nil, errorAt(v.Position, "nested more than %d levels deep", r.limits.depth)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return nil, errorAt(v.Position, "tag %s is not supported", n.Tag)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return v, v.setScalar(n)
	case yaml.SequenceNode:
		v.Kind = Array
		for _, c := range n.Content {
			item, err := r.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
		return v, nil
	default:
		v.Kind = Document
		return v, r.document(v, n, depth)
	}
}

func (r *yamlReader) document(v *Value, n *yaml.Node, depth int) error {
	seen := map[string]Position{} // keys of this document, without merged ones
	index := map[string]int{}     // of keys in Fields
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		content, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		key, merges := "<<", isMerge(k)
		if !merges {
			if key, err = r.key(k); err != nil {
				return err
			}
		}
		if first, duplicate := seen[key]; duplicate {
			return errorAt(r.at(k), "duplicate key %q; it is first given in line %d", key, first.Line)
		}
		seen[key] = r.at(k)
		if merges {
			if err := v.merge(content, index); err != nil {
				return err
			}
			continue
		}
		// A key overrides a merged one in place, as in the tools that write the official JSON twins.
		if _, merged := index[key]; !merged {
			index[key] = len(v.Fields)
			v.Fields = append(v.Fields, Field{})
		}
		v.Fields[index[key]] = Field{key, r.at(k), content}
	}
	return nil
}

// quoted are the styles of scalars that are always strings.
const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style&quoted == 0
}

// merge adds the fields of a document or a list of documents. Existing fields win (YAML 1.1 type "merge").
func (v *Value) merge(from *Value, index map[string]int) error {
	documents := []*Value{from}
	if from.Kind == Array {
		documents = from.Items
	}
	for _, d := range documents {
		if d.Kind != Document {
			return errorAt(d.Position, "only documents can be merged with <<, got a value of type %s", d.Kind)
		}
		for _, f := range d.Fields {
			if _, exists := index[f.Key]; !exists {
				index[f.Key] = len(v.Fields)
				v.Fields = append(v.Fields, f)
			}
		}
	}
	return nil
}

// key returns a key as a JSON string: integers in decimal. It rejects collections
// without reading them, since they may contain themselves.
func (r *yamlReader) key(k *yaml.Node) (string, error) {
	scalar := k
	if k.Kind == yaml.AliasNode {
		scalar = k.Alias
	}
	if scalar.Kind != yaml.ScalarNode {
		kind := map[yaml.Kind]Kind{yaml.SequenceNode: Array, yaml.MappingNode: Document}[scalar.Kind]
		return "", errorAt(r.at(k), "a key must be a string or another scalar, got a value of type %s", kind)
	}
	v, err := r.value(k, 0)
	switch {
	case err != nil:
		return "", err
	case v.Kind == String:
		return v.String, nil
	case v.Kind == Int:
		return strconv.FormatInt(v.Int, 10), nil
	}
	return scalar.Value, nil
}

// The plain scalars of YAML 1.2's core schema (§10.3.2).
var (
	plainNull   = map[string]bool{"": true, "~": true, "null": true, "Null": true, "NULL": true}
	plainBool   = map[string]bool{"true": true, "True": true, "TRUE": true, "false": false, "False": false, "FALSE": false}
	plainBased  = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	plainNumber = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	nonFinite   = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// setScalar reads a scalar by the core schema of YAML 1.2, where timestamps,
// "yes" and numbers with underscores are strings.
func (v *Value) setScalar(n *yaml.Node) error {
	s, inRange := n.Value, true
	switch b, isBool := plainBool[s]; {
	case n.Style&quoted != 0:
		v.Kind, v.String = String, s
	case plainNull[s]:
		v.Kind = Null
	case isBool:
		v.Kind, v.Bool = Bool, b
	case !strings.Contains("+-.0123456789", s[:1]): // most are words
		v.Kind, v.String = String, s
	case plainBased.MatchString(s):
		i, err := strconv.ParseInt(s, 0, 64)
		v.Kind, v.Int, inRange = Int, i, err == nil
	case plainNumber.MatchString(s):
		// Extended JSON v2, "Parsers": integers that do not fit 64 bits become doubles.
		if i, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
			v.Kind, v.Int = Int, i
			return nil
		}
		f, err := strconv.ParseFloat(s, 64)
		v.Kind, v.Float, inRange = Float, f, err == nil
	case nonFinite.MatchString(s):
		return errorAt(v.Position, "%s has no JSON form; write it as {$numberDouble: …}", s)
	default:
		v.Kind, v.String = String, s
	}
	if !inRange {
		return errorAt(v.Position, "number %s is out of range", s)
	}
	return nil
}
