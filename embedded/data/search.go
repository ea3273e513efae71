package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// createSearchIndexes, dropSearchIndex and updateSearchIndex look whether the
// command is well-formed, and refuse it: there is no Atlas Search.
func (d *Data) createSearchIndexes(s *scope, a *args) (bson.D, error) {
	list := a.array("indexes")
	if err := wellFormed(a, "indexes", " indexes "); err != nil {
		return nil, err
	}
	for _, v := range list {
		doc, ok := v.(bson.D)
		if !ok {
			return nil, command.Errorf(14, "BSON field 'createSearchIndexes.indexes' is the wrong type '%s', expected type 'object'", value.TypeName(v))
		}
		index := &args{of: "createSearchIndexes.indexes", doc: doc}
		index.document("definition")
		index.str("name")
		index.str("type")
		if err := wellFormed(index, "definition", " name type definition "); err != nil {
			return nil, err
		}
	}
	return nil, noSearch(s.req)
}

func (d *Data) dropSearchIndex(s *scope, a *args) (bson.D, error) {
	a.str("id")
	a.str("name")
	if err := wellFormed(a, "", " id name "); err != nil {
		return nil, err
	}
	return nil, noSearch(s.req)
}

func (d *Data) updateSearchIndex(s *scope, a *args) (bson.D, error) {
	a.str("id")
	a.str("name")
	a.document("definition")
	if err := wellFormed(a, "definition", " id name definition "); err != nil {
		return nil, err
	}
	return nil, noSearch(s.req)
}

// wellFormed checks that a command has a name, no field of the wrong type, none
// that it does not know, and the one that it must have.
func wellFormed(a *args, required, fields string) error {
	if len(a.doc) > 0 && a.doc[0].Key == a.of {
		a.name()
	}
	if err := unknown(a.of, a.doc, fields); err != nil {
		return err
	}
	if a.err == nil && required != "" && !a.has(required) {
		return command.Errorf(40414, "BSON field '%s.%s' is missing but a required field", a.of, required)
	}
	return a.err
}

// noSearch is what a server without Atlas Search answers. Before 8.0 it is the
// Enterprise Server that is imitated: in Community the commands do not exist.
func noSearch(req *command.Request) error {
	if w := wire(req); w > 0 && w < wire80 {
		return command.Errorf(115, "Search index commands are only supported with Atlas.")
	}
	return command.Errorf(31082, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
		"Please connect to Atlas or an AtlasCLI local deployment to enable. "+
		"For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.")
}

// searchStage is what becomes of $listSearchIndexes.
func searchStage(req *command.Request) error {
	w := wire(req)
	if w > 0 && w < wire60 {
		return command.Errorf(40324, "Unrecognized pipeline stage name: '$listSearchIndexes'")
	}
	err := noSearch(req)
	// From 8.0 on it fails before it runs.
	if e, ok := err.(*command.Error); ok && w > 0 && w < wire80 && !mongos(req) {
		e.Message = "PlanExecutor error during aggregation :: caused by :: " + e.Message
	}
	return err
}
