package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/pipeline"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// mapReduce maps the documents of a collection and reduces what they emit.
func (d *Data) mapReduce(s *scope, a *args) (bson.D, error) {
	if _, _, err := d.readConcern(a); err != nil {
		return nil, err
	}
	a.only(" map reduce out query sort limit finalize scope jsMode verbose bypassDocumentValidation collation ")
	name, filter, sort, limit := a.name(), a.document("query"), a.document("sort"), a.count("limit", "Limit")
	vars := a.document("scope")
	opts := query.Options{Now: d.opts.Now(), Collation: a.collation(), Scripts: s.scripts()}
	if a.err != nil {
		return nil, a.err
	}
	if d.opts.NoScripting {
		return nil, command.Errorf(16149, "cannot run map reduce without the js engine")
	}
	functions := map[string]*script.Function{}
	for _, part := range []string{"map", "reduce", "finalize"} {
		f, err := d.function(a, part)
		if err != nil {
			return nil, err
		}
		functions[part] = f
	}
	if a.need("out"); a.err != nil {
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
	run := &mapReducer{functions: functions, stopped: s.stopped, vars: vars, byKey: map[string]int{}}
	docs, err := run.all(hits)
	if err != nil {
		return nil, err
	}
	return d.mapReduceOut(s, a.any("out"), docs)
}

// function is one of the functions of a mapReduce; nil for finalize if it is
// not there.
func (d *Data) function(a *args, name string) (*script.Function, error) {
	var source string
	switch v := a.any(name).(type) {
	case nil:
		if name == "finalize" {
			return nil, nil
		}
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
	vars      bson.D
	keys      []any
	values    []bson.A
	byKey     map[string]int
}

func (m *mapReducer) globals() map[string]any {
	g := map[string]any{}
	for _, v := range m.vars {
		g[v.Key] = v.Value
	}
	g["emit"] = script.Builtin(func(args []any) (any, error) {
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
	return g
}

// all maps documents and reduces what they emit.
func (m *mapReducer) all(hits []found) ([]bson.D, error) {
	g := m.globals()
	for _, h := range hits {
		if _, err := m.functions["map"].Call(m.stopped, h.doc, g); err != nil {
			return nil, err
		}
	}
	delete(g, "emit")
	var out []bson.D
	for i, key := range m.keys {
		v := m.values[i][0]
		var err error
		if len(m.values[i]) > 1 {
			if v, err = m.functions["reduce"].Call(m.stopped, nil, g, key, m.values[i]); err != nil {
				return nil, err
			}
		}
		if f := m.functions["finalize"]; f != nil {
			if v, err = f.Call(m.stopped, nil, g, key, v); err != nil {
				return nil, err
			}
		}
		out = append(out, bson.D{{Key: "_id", Value: key}, {Key: "value", Value: v}})
	}
	order, err := query.CompileOrder(bson.D{{Key: "_id", Value: int32(1)}}, nil)
	query.Sort(out, order, func(d bson.D) bson.D { return d })
	return out, err
}

// mapReduceOut delivers the results where out says.
func (d *Data) mapReduceOut(s *scope, out any, docs []bson.D) (bson.D, error) {
	db, coll := s.req.DB, ""
	switch x := out.(type) {
	case string:
		coll = x
	case bson.D:
		for _, e := range x {
			switch e.Key {
			case "inline":
				list := make(bson.A, len(docs))
				for i := range docs {
					list[i] = docs[i]
				}
				return bson.D{{Key: "results", Value: list}}, nil
			case "replace":
				coll, _ = e.Value.(string)
			case "db":
				db, _ = e.Value.(string)
			case "sharded", "nonAtomic":
			default:
				return nil, command.Errorf(command.CodeNotImplemented, "mapReduce with out.%s is not implemented by the embedded deployment", e.Key)
			}
		}
	default:
		return nil, command.Errorf(13606, "'out' has to be a string or an object")
	}
	if s.req.Server != nil && s.req.Server.Role == command.Secondary {
		return nil, command.Errorf(command.CodeNotWritablePrimary, "not primary")
	}
	h := host{s, s.req.DB, ""}
	if err := h.Out(pipeline.Target{DB: db, Collection: coll}, docs); err != nil {
		return nil, err
	}
	if db != s.req.DB {
		return bson.D{{Key: "result", Value: bson.D{{Key: "db", Value: db}, {Key: "collection", Value: coll}}}}, nil
	}
	return bson.D{{Key: "result", Value: coll}}, nil
}
