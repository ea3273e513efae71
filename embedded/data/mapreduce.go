package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// mapReduce maps the documents of a collection and reduces what they emit.
func (d *Data) mapReduce(s *scope, a *args) (bson.D, error) {
	if _, _, err := d.readConcern(a); err != nil {
		return nil, err
	}
	a.only(" map reduce out query sort limit verbose bypassDocumentValidation collation ")
	name, filter, sort, limit := a.name(), a.document("query"), a.document("sort"), a.count("limit", "Limit")
	opts := query.Options{Now: d.opts.Now(), Collation: a.collation(), Scripts: s.scripts()}
	if a.err != nil {
		return nil, a.err
	}
	if d.opts.NoScripting {
		return nil, command.Errorf(16149, "cannot run map reduce without the js engine")
	}
	functions := map[string]*script.Function{}
	for _, part := range []string{"map", "reduce"} {
		f, err := d.function(a, part)
		if err != nil {
			return nil, err
		}
		functions[part] = f
	}
	a.need("out")
	if inline := (bson.D{{Key: "inline", Value: int32(1)}}); a.err == nil && !value.Equal(a.any("out"), inline) {
		return nil, command.Errorf(command.CodeNotImplemented, "mapReduce without out: {inline: 1} is not implemented by the embedded deployment")
	}
	if a.err != nil {
		return nil, a.err
	}
	f, err := query.Compile(filter, opts)
	if err != nil {
		return nil, err
	}
	order, err := query.CompileOrder(sort, opts.Collation)
	if err != nil {
		return nil, err
	}
	c, records := s.records(s.req.DB, name)
	if c != nil && c.isView() {
		return nil, command.Errorf(command.CodeCommandNotSupportedOnView, "Namespace %s is a view, not a collection", c.ns())
	}
	hits, err := search(nil, records, f, 0)
	if err != nil {
		return nil, err
	}
	query.Sort(hits, order, foundDoc)
	if limit > 0 && int64(len(hits)) > limit {
		hits = hits[:limit]
	}
	run := &mapReducer{functions: functions, stopped: s.stopped, byKey: map[string]int{}}
	docs, err := run.all(hits)
	if err != nil {
		return nil, err
	}
	list := make(bson.A, len(docs))
	for i := range docs {
		list[i] = docs[i]
	}
	return bson.D{{Key: "results", Value: list}}, nil
}

// function is one of the functions of a mapReduce.
func (d *Data) function(a *args, name string) (*script.Function, error) {
	var source string
	switch v := a.any(name).(type) {
	case nil:
		return nil, command.Errorf(command.CodeIDLFailedToParse, "BSON field 'mapReduce.%s' is missing but a required field", name)
	case string:
		source = v
	case bson.JavaScript:
		source = string(v)
	case bson.CodeWithScope:
		source = string(v.Code)
	default:
		return nil, command.Errorf(command.CodeTypeMismatch, "'%s' must be of string or code type", name)
	}
	return script.Parse(source)
}

type mapReducer struct {
	functions map[string]*script.Function
	stopped   func() error
	keys      []any
	values    []bson.A
	byKey     map[string]int
}

func (m *mapReducer) globals() map[string]any {
	emit := script.Builtin(func(args []any) (any, error) {
		if len(args) != 2 {
			return nil, command.Errorf(command.CodeJSInterpreterFailure, "emit takes 2 args")
		}
		k := value.Key(args[0])
		i, ok := m.byKey[k]
		if !ok {
			i = len(m.keys)
			m.byKey[k] = i
			m.keys = append(m.keys, args[0])
			m.values = append(m.values, nil)
		}
		m.values[i] = append(m.values[i], args[1])
		return nil, nil
	})
	return map[string]any{"emit": emit}
}

// all maps documents and reduces what they emit.
func (m *mapReducer) all(hits []found) ([]bson.D, error) {
	g := m.globals()
	for _, h := range hits {
		if _, err := m.functions["map"].Call(m.stopped, h.doc, g); err != nil {
			return nil, err
		}
	}
	var out []bson.D
	for i, key := range m.keys {
		v := m.values[i][0]
		var err error
		if len(m.values[i]) > 1 {
			if v, err = m.functions["reduce"].Call(m.stopped, nil, nil, key, m.values[i]); err != nil {
				return nil, err
			}
		}
		out = append(out, bson.D{{Key: "_id", Value: key}, {Key: "value", Value: v}})
	}
	order, err := query.CompileOrder(bson.D{{Key: "_id", Value: int32(1)}}, nil)
	query.Sort(out, order, func(d bson.D) bson.D { return d })
	return out, err
}
