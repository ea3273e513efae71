package source

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reader builds values from nodes.
type reader struct {
	limits limits
	values chunks[Value]
	name   Value // of the key that is read
}

// chunks allocates the values of a file together. They are released together.
type chunks[T any] struct {
	free  []T
	count int
}

func (c *chunks[T]) next() *T {
	if len(c.free) == 0 {
		c.free = make([]T, min(max(c.count, 8), 128))
	}
	one := &c.free[0]
	c.free = c.free[1:]
	c.count++
	return one
}

// value reads a node. Each use of an alias is expanded, so that recursive and exponential aliases exceed the limits.
func (r *reader) value(n *node, depth int) (*Value, error) {
	v := r.values.next()
	v.Position = n.position
	if n.kind == aliasNode {
		n = n.target
	}
	if r.values.count > r.limits.nodes {
		return nil, errorAt(v.Position, "the file has more than %d values once its aliases are expanded", r.limits.nodes)
	}
	if depth > r.limits.depth {
		return nil, errorAt(v.Position, "nested more than %d levels deep", r.limits.depth)
	}
	switch n.kind {
	case scalarNode:
		if err := v.setScalar(n); err != nil {
			return nil, err
		}
		if math.IsInf(v.Float, 0) || math.IsNaN(v.Float) {
			return nil, errorAt(v.Position, "%s has no JSON form; write it as {$numberDouble: …}", n.value)
		}
		if v.Kind != String && v.Kind != Null {
			v.written = n.value
		}
		return v, nil
	case sequenceNode:
		v.Kind = Array
		if len(n.content) > 0 {
			v.Items = make([]*Value, 0, len(n.content))
		}
		for _, c := range n.content {
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

func (r *reader) document(v *Value, n *node, depth int) error {
	d := fields{Value: v}
	d.Fields = make([]Field, 0, len(n.content)/2)
	for i := 0; i+1 < len(n.content); i += 2 {
		k := n.content[i]
		content, err := r.value(n.content[i+1], depth+1)
		if err != nil {
			return err
		}
		key, merges := "<<", isMerge(k)
		if !merges {
			if key, err = r.key(k); err != nil {
				return err
			}
		}
		at, exists := d.find(key)
		switch {
		case exists && !d.merged[key]:
			return duplicateKey(k, key, d.Fields[at].KeyPosition)
		case key == "<<" && !d.merge.IsZero():
			return duplicateKey(k, key, d.merge)
		case merges:
			d.merge = k.position
			if err := d.mergeWith(content); err != nil {
				return err
			}
			continue
		}
		written := k
		if k.kind == aliasNode {
			written = k.target
		}
		f := Field{key, k.position, content, written.value}
		if exists { // A key overrides a merged one in place, as in the tools that write the official JSON twins.
			d.Fields[at] = f
			delete(d.merged, key)
		} else {
			d.add(f)
		}
	}
	return nil
}

func duplicateKey(k *node, key string, first Position) error {
	return errorAt(k.position, "duplicate key %q; it is first defined on line %d", key, first.Line)
}

func isMerge(k *node) bool { return k.kind == scalarNode && k.value == "<<" && k.style == 0 }

// fields is a document while its fields are read.
type fields struct {
	*Value
	index  map[string]int  // of the keys, once there are many
	merged map[string]bool // the keys that are merged and not overridden
	merge  Position        // of the key <<
}

// find returns the index of a key.
func (d *fields) find(key string) (at int, exists bool) {
	const many = 16
	if len(d.Fields) < many {
		at = slices.IndexFunc(d.Fields, func(f Field) bool { return f.Key == key })
		return at, at >= 0
	}
	if d.index == nil {
		d.index = map[string]int{}
		for i, f := range d.Fields {
			d.index[f.Key] = i
		}
	}
	at, exists = d.index[key]
	return at, exists
}

func (d *fields) add(f Field) {
	if d.index != nil {
		d.index[f.Key] = len(d.Fields)
	}
	d.Fields = append(d.Fields, f)
}

// mergeWith adds the fields of a document or a list of documents. Existing fields win (YAML 1.1 type "merge").
func (d *fields) mergeWith(from *Value) error {
	documents := []*Value{from}
	if from.Kind == Array {
		documents = from.Items
	}
	d.merged = map[string]bool{}
	for _, each := range documents {
		if each.Kind != Document {
			return errorAt(each.Position, "only documents can be merged with <<, got a value of type %s", each.Kind)
		}
		for _, f := range each.Fields {
			if _, exists := d.find(f.Key); !exists {
				d.add(f)
				d.merged[f.Key] = true
			}
		}
	}
	return nil
}

// key returns a key as js-yaml makes it the name of a property: a null, a boolean or a number in its JavaScript form.
// It rejects collections without reading them, since they may contain themselves.
func (r *reader) key(k *node) (string, error) {
	scalar := k
	if k.kind == aliasNode {
		scalar = k.target
	}
	if scalar.kind != scalarNode {
		kind := map[nodeKind]Kind{sequenceNode: Array, mappingNode: Document}[scalar.kind]
		return "", errorAt(k.position, "a key must be a string or another scalar, got a value of type %s", kind)
	}
	v := &r.name
	*v = Value{Position: k.position}
	if err := v.setScalar(scalar); err != nil {
		return "", err
	}
	if strings.IndexByte(v.String, 0) >= 0 {
		return "", errorAt(k.position, "key %q has a zero byte, which BSON does not allow", v.String)
	}
	switch v.Kind {
	case String:
		return v.String, nil
	case Int, Float:
		return javaScriptNumber(v), nil
	}
	return v.JSON(), nil
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
func (v *Value) setScalar(n *node) error {
	s, inRange := n.value, true
	switch b, isBool := plainBool[s]; {
	case n.style != 0:
		v.Kind, v.String = String, s
	case plainNull[s]:
		v.Kind = Null
	case isBool:
		v.Kind, v.Bool = Bool, b
	case !strings.Contains("+-.0123456789", s[:1]): // most are words
		v.Kind, v.String = String, s
	// Extended JSON v2, "Parsers": integers that do not fit 64 bits become doubles.
	case plainBased.MatchString(s):
		i, _ := new(big.Int).SetString(s, 0)
		if i.IsInt64() {
			v.Kind, v.Int = Int, i.Int64()
			return nil
		}
		v.Kind = Float
		v.Float, _ = new(big.Float).SetInt(i).Float64()
		inRange = !math.IsInf(v.Float, 0)
	case plainNumber.MatchString(s):
		if i, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
			v.Kind, v.Int = Int, i
			return nil
		}
		f, err := strconv.ParseFloat(s, 64)
		v.Kind, v.Float, inRange = Float, f, err == nil
	case nonFinite.MatchString(s):
		v.Kind = Float
		v.Float, _ = strconv.ParseFloat(strings.Replace(s, ".", "", 1), 64)
	default:
		v.Kind, v.String = String, s
	}
	if !inRange {
		return errorAt(v.Position, "number %s is out of range", s)
	}
	return nil
}
