// Package pipeline runs aggregation pipelines over documents.
package pipeline

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/query"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Host gives a pipeline access to the deployment.
type Host interface {
	// Read returns the documents of a collection of the same database ($lookup).
	Read(collection string) ([]bson.D, error)
	// Source returns the documents of a stage that does not read the collection, such as $collStats.
	Source(stage string, arg any) ([]bson.D, error)
	// Out replaces the documents of a collection. Merge merges documents into one. db "" is the pipeline's database.
	Out(db, collection string, docs []bson.D) error
	Merge(m Merge, docs []bson.D) error
}

// Pipeline is a parsed pipeline. It may be used concurrently.
type Pipeline struct {
	stages []stage
	// Source is the name of a first stage that produces the documents, such as $collStats. It is empty if the
	// pipeline reads the collection.
	Source    string
	sourceArg any
	Writes    string        // $out or $merge if the pipeline ends in one
	Text      *query.Filter // $match with $text, with which it begins; or nil
}

// stage transforms documents. It must not change them in place.
type stage func(h Host, docs []bson.D) ([]bson.D, error)

// sources are the stages that produce documents. They must be the first stage.
var sources = []string{"$collStats", "$currentOp", "$listLocalSessions", "$indexStats", "$planCacheStats", "$documents",
	"$changeStream", "$listSearchIndexes"}

// transforms are the stages that map each document to one document. Pipeline updates allow only these.
var transforms = []string{"$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith"}

// Transforms reports whether a stage maps each document to one document.
func Transforms(stage string) bool { return slices.Contains(transforms, stage) }

type parser struct {
	opts     query.Options
	position int           // of the stage
	planned  bool          // a server executes all stages before as find
	text     *query.Filter // see Pipeline
	fault.First
}

// Compile parses a pipeline. Errors are *fault.Error with the server's codes and messages.
func Compile(list bson.A, o query.Options) (*Pipeline, error) {
	if err := CheckNames(list, o.Wire); err != nil {
		return nil, err
	}
	p := &parser{opts: o, planned: true}
	out := &Pipeline{}
	for i, item := range list {
		name, arg := item.(bson.D)[0].Key, item.(bson.D)[0].Value
		writes := name == "$out" || name == "$merge"
		switch {
		case slices.Contains(sources, name):
			p.Refuse(i != 0, 40602, "%s is only valid as the first stage in a pipeline.", name)
			out.Source, out.sourceArg = name, arg
			continue
		case writes && i != len(list)-1:
			p.Fail(40601, "%s can only be the final stage in the pipeline", name)
		case writes:
			out.Writes = name
		}
		p.position = i
		out.stages = append(out.stages, parsers[name](p, arg))
		p.planned = p.planned && slices.Contains([]string{"$match", "$sort", "$limit", "$skip"}, name)
	}
	out.Text = p.text
	return out, p.Err
}

// CompileUpdate parses a pipeline that updates documents.
func CompileUpdate(list bson.A, o query.Options) (*Pipeline, error) {
	p, err := Compile(list, o)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if name := item.(bson.D)[0].Key; !Transforms(name) {
			return nil, fault.Errorf(fault.InvalidOptions, "%s is not allowed to be used within an update", name)
		}
	}
	return p, nil
}

// found returns the options of a stage with a filter or an order. A server may execute the stage as find.
func (p *parser) found(filter, order bson.D) query.Options {
	if p.planned {
		return p.opts.InSlots(filter, order)
	}
	return p.opts
}

// CheckNames returns an error if a stage has an unknown name or the wrong form.
func CheckNames(list bson.A, wire int) error {
	for _, item := range list {
		d, ok := item.(bson.D)
		var name string
		if len(d) == 1 {
			name = d[0].Key
		}
		switch {
		case !ok:
			return fault.Errorf(fault.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		case len(d) != 1:
			return fault.Errorf(40323, "A pipeline stage specification object must contain exactly one field.")
		case !fault.Exists("stage", name, wire):
			return fault.Errorf(40324, "Unrecognized pipeline stage name: '%s'", name)
		}
		if err := fault.Refusal("stage", name, wire); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the pipeline over the documents of its collection, which it does not change. It calls load only if the
// pipeline reads the collection.
func (p *Pipeline) Run(h Host, load func() ([]bson.D, error)) ([]bson.D, error) {
	if p.Source != "" {
		load = func() ([]bson.D, error) { return h.Source(p.Source, p.sourceArg) }
	}
	docs, err := load()
	if err != nil {
		return nil, err
	}
	return p.Apply(h, docs)
}

// Apply runs the stages over documents.
func (p *Pipeline) Apply(h Host, docs []bson.D) ([]bson.D, error) {
	for _, s := range p.stages {
		var err error
		if docs, err = s(h, docs); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// each returns a stage that applies a function to each document.
func (p *parser) each(f func(bson.D) (bson.D, error)) stage {
	return func(_ Host, docs []bson.D) ([]bson.D, error) {
		out := make([]bson.D, len(docs))
		made := volume{opts: p.opts}
		for i, d := range docs {
			r, err := f(d)
			if err == nil {
				err = made.add(r)
			}
			if err != nil {
				return nil, err
			}
			out[i] = r
		}
		return out, nil
	}
}

// maxVolume limits the output of a stage, in bytes, much like the server's memory limits.
const maxVolume = 128 << 20

// volume is the size of a stage's output.
type volume struct {
	opts  query.Options
	bytes int
}

// add adds a document. It fails if the output or the document is too large, or the command is over.
func (v *volume) add(doc bson.D) error {
	n := value.Size(doc)
	v.bytes += n
	switch {
	case n > value.MaxBuilt:
		return fault.Errorf(fault.BSONObjectTooLarge,
			"BSONObj size is invalid: a stage builds more than %d bytes for a document", value.MaxBuilt)
	case v.bytes > maxVolume:
		return fault.Errorf(fault.QueryExceededMemoryLimitNoDiskUseAllowed, "a stage builds more than %d bytes", maxVolume)
	}
	return v.opts.Over()
}

// document returns the argument of a stage that must be a document.
func (p *parser) document(arg any, code int32, otherwise string) bson.D {
	d, ok := arg.(bson.D)
	p.Refuse(!ok, code, "%s", otherwise)
	return d
}
