package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// mapReduce implements mapReduce with inline results.
func mapReduce(s *scope, a *args) action {
	a.readConcern(s)
	a.only(" map reduce out query verbose ") // verbose has no effect
	a.flag("verbose")
	a.Refuse(s.d.opts.NoScripting, 16149, "cannot run map reduce without the js engine")
	name, m := a.name(), &mapReducer{stopped: s.stopped, mapper: a.function("map"), reducer: a.function("reduce"), byKey: map[string]int{}}
	if out, ok := a.any("out").(bson.D); !ok || len(out) != 1 || out[0].Key != "inline" {
		a.Fail(command.CodeNotImplemented, "mapReduce with out: %s is not implemented by the embedded deployment", value.Text(a.any("out")))
	}
	f := a.filter("query", query.Options{Scripts: s.scripts()})
	return func() (bson.D, error) {
		c, records := s.records(s.req.DB, name)
		if c != nil && c.isView() {
			return nil, onView(c)
		}
		docs, err := f.Select(documentsIn(records))
		if err != nil {
			return nil, err
		}
		results, err := m.run(docs)
		return bson.D{{Key: "results", Value: results}}, err
	}
}

func (a *args) function(key string) *script.Function {
	a.need(key)
	source, ok := a.any(key).(string)
	if code, isCode := a.any(key).(bson.JavaScript); isCode {
		source, ok = string(code), true
	}
	a.Refuse(!ok, command.CodeTypeMismatch, "'%s' must be of string or code type", key)
	f, err := script.Parse(source)
	a.Note(err)
	return f
}

type mapReducer struct {
	mapper, reducer *script.Function
	stopped         func() error
	keys            []any
	values          []bson.A
	byKey           map[string]int // positions in keys and values
}

func (m *mapReducer) emit(args []any) (any, error) {
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
}

// run maps documents and reduces the emitted values.
func (m *mapReducer) run(docs []bson.D) (bson.A, error) {
	for _, doc := range docs {
		if _, err := m.mapper.Call(m.stopped, doc, map[string]script.Builtin{"emit": m.emit}); err != nil {
			return nil, err
		}
	}
	out := bson.A{}
	for i, key := range m.keys {
		v := m.values[i][0]
		if len(m.values[i]) > 1 {
			var err error
			if v, err = m.reducer.Call(m.stopped, nil, nil, key, m.values[i]); err != nil {
				return nil, err
			}
		}
		out = append(out, bson.D{{Key: "_id", Value: key}, {Key: "value", Value: v}})
	}
	return out, nil
}
