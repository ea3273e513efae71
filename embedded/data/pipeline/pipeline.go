// Package pipeline runs aggregation pipelines over documents. What lies
// outside of the documents, such as other collections, it asks of a Host.
package pipeline

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Host is where a pipeline runs.
type Host interface {
	// Read gives the documents of a collection ($lookup, $merge).
	Read(ctx context.Context, db, collection string) ([]bson.D, error)
	// Source gives the documents of a stage that makes its own, such as
	// $collStats.
	Source(ctx context.Context, stage string, arg any) ([]bson.D, error)
	// Out replaces a collection by documents.
	Out(ctx context.Context, db, collection string, docs []bson.D) error
	// Merge merges documents into a collection.
	Merge(ctx context.Context, m *Merge, docs []bson.D) error
}

// Options are what a pipeline depends on besides itself.
type Options struct {
	DB        string
	Let       bson.D
	Now       time.Time
	Collation *query.Collation
}

func (o Options) query() query.Options {
	return query.Options{Let: o.Let, Now: o.Now, Collation: o.Collation}
}

// Pipeline is a parsed pipeline. It may be used concurrently.
type Pipeline struct {
	stages []stage
	// Source is the name of a first stage that makes documents itself, such
	// as $collStats; empty if the collection does.
	Source    string
	sourceArg any
	// Writes is $out or $merge if the pipeline ends in one.
	Writes string
	// Target is the namespace that $out or $merge writes.
	TargetDB, Target string
}

// stage turns documents into others. It must not change them in place.
type stage func(ctx context.Context, h Host, docs []bson.D) ([]bson.D, error)

// maker parses the argument of a stage.
type maker func(arg any, o Options, depth int) (stage, error)

// sources are the stages that make documents; all must come first.
var sources = map[string]bool{
	"$collStats": true, "$indexStats": true, "$currentOp": true, "$listLocalSessions": true, "$listSessions": true,
	"$documents": true, "$changeStream": true, "$planCacheStats": true, "$listSampledQueries": true, "$shardedDataDistribution": true,
	"$listSearchIndexes": true,
}

// Compile parses a pipeline. Errors are *command.Error with the server's
// codes and texts.
func Compile(list bson.A, o Options) (*Pipeline, error) { return compile(list, o, 0) }

func compile(list bson.A, o Options, depth int) (*Pipeline, error) {
	if depth > 20 {
		return nil, command.Errorf(command.CodeViewDepthLimitExceeded, "Maximum number of nested sub-pipelines exceeded. Limit is 20")
	}
	p := &Pipeline{}
	makers := makers()
	for i, item := range list {
		d, ok := item.(bson.D)
		if !ok {
			return nil, command.Errorf(command.CodeTypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		if len(d) != 1 {
			return nil, command.Errorf(40323, "A pipeline stage specification object must contain exactly one field.")
		}
		name, arg := d[0].Key, d[0].Value
		if sources[name] {
			if i != 0 {
				return nil, command.Errorf(40602, "%s is only valid as the first stage in a pipeline.", name)
			}
			p.Source, p.sourceArg = name, arg
			continue
		}
		m, ok := makers[name]
		if !ok {
			return nil, command.Errorf(40324, "Unrecognized pipeline stage name: '%s'", name)
		}
		if name == "$out" || name == "$merge" {
			if i != len(list)-1 {
				return nil, command.Errorf(40601, "%s can only be the final stage in the pipeline", name)
			}
			p.Writes = name
			var err error
			if p.TargetDB, p.Target, err = target(name, arg, o); err != nil {
				return nil, err
			}
		}
		s, err := m(arg, o, depth)
		if err != nil {
			return nil, err
		}
		p.stages = append(p.stages, s)
	}
	return p, nil
}

// Run runs the pipeline over the documents of its collection, which it leaves
// alone; load is not called if a source makes the documents.
func (p *Pipeline) Run(ctx context.Context, h Host, load func() ([]bson.D, error)) ([]bson.D, error) {
	var docs []bson.D
	var err error
	if p.Source != "" {
		docs, err = h.Source(ctx, p.Source, p.sourceArg)
	} else {
		docs, err = load()
	}
	if err != nil {
		return nil, err
	}
	return p.Apply(ctx, h, docs)
}

// Apply runs the stages over documents.
func (p *Pipeline) Apply(ctx context.Context, h Host, docs []bson.D) ([]bson.D, error) {
	for _, s := range p.stages {
		var err error
		if docs, err = s(ctx, h, docs); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// transforms are the stages that pipeline updates and change streams allow.
var transforms = map[string]bool{
	"$addFields": true, "$set": true, "$project": true, "$unset": true, "$replaceRoot": true, "$replaceWith": true,
}

// Named refuses a pipeline with a stage of an unknown name.
func Named(list bson.A) error {
	for _, item := range list {
		d, ok := item.(bson.D)
		if !ok {
			return command.Errorf(command.CodeTypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		if len(d) != 1 {
			return command.Errorf(40323, "A pipeline stage specification object must contain exactly one field.")
		}
		if _, known := makers()[d[0].Key]; !known && !transforms[d[0].Key] && !sources[d[0].Key] {
			return command.Errorf(40324, "Unrecognized pipeline stage name: '%s'", d[0].Key)
		}
	}
	return nil
}

// CompileUpdate parses a pipeline update.
func CompileUpdate(list bson.A, o Options) (func(bson.D) (bson.D, error), error) {
	if err := Named(list); err != nil {
		return nil, err
	}
	for _, item := range list {
		if name := item.(bson.D)[0].Key; !transforms[name] {
			return nil, command.Errorf(command.CodeInvalidOptions, "%s is not allowed to be used within an update", name)
		}
	}
	p, err := Compile(list, o)
	if err != nil {
		return nil, err
	}
	return func(d bson.D) (bson.D, error) {
		out, err := p.Apply(context.Background(), nil, []bson.D{d})
		if err != nil {
			return nil, err
		}
		if len(out) != 1 {
			return nil, command.Errorf(command.CodeInternalError, "an update pipeline gave %d documents", len(out))
		}
		return out[0], nil
	}, nil
}

// each makes a stage of a function of one document.
func each(f func(bson.D) (bson.D, error)) stage {
	return func(ctx context.Context, _ Host, docs []bson.D) ([]bson.D, error) {
		out := make([]bson.D, len(docs))
		var made volume
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

// maxVolume is how much a stage may give, in bytes. A server's limits of memory are alike.
const maxVolume = 128 << 20

// volume is how much a stage has made.
type volume int

func (v *volume) add(doc bson.D) error {
	n := value.Size(doc)
	if n > value.MaxBuilt {
		return errTooLarge()
	}
	if *v += volume(n); *v > maxVolume {
		return command.Errorf(command.CodeQueryExceededMemoryLimitNoDiskUseAllowed, "a stage makes more than %d bytes", maxVolume)
	}
	return nil
}

// fits refuses a value that is too large to be handed on.
func fits(v any) error {
	if value.Size(v) > value.MaxBuilt {
		return errTooLarge()
	}
	return nil
}

func errTooLarge() error {
	return command.Errorf(command.CodeBSONObjectTooLarge, "BSONObj size is invalid: a stage makes more than %d bytes of a document", value.MaxBuilt)
}

// subPipeline parses a nested pipeline, which may not write.
func subPipeline(v any, o Options, depth int, where string) (*Pipeline, error) {
	list, ok := v.(bson.A)
	if !ok {
		return nil, command.Errorf(40170, "arguments to %s must be arrays, but is %s", where, value.TypeName(v))
	}
	p, err := compile(list, o, depth+1)
	if err != nil {
		return nil, err
	}
	if p.Writes != "" {
		return nil, command.Errorf(40600, "%s is not allowed to be used within a %s stage", p.Writes, where)
	}
	return p, nil
}
