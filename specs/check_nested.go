package specs

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
	"github.com/unified-test-runner/utr/specs/schema"
)

// runOnThread, withTransaction, createEntities, waitForEvent and
// assertEventCount hold what the schema describes elsewhere.
func checkNested(i *inspection) {
	for _, p := range schema.Nested(i.suite.Root) {
		i.reportAt(p.Position, p.Path, "%s", p.Message)
	}
}

// bulkWrite and clientBulkWrite: each write model is an object with a single
// key, which names the type of the request.
func checkWriteModels(i *inspection, s step) {
	argument, models := operations.Models(s.Name)
	list := s.get("arguments").get(argument)
	if !s.known || argument == "" || !list.exists() {
		return
	}
	if list.Kind != source.Array {
		i.report(list, "%s must be an array of write models", argument)
		return
	}
	list.each(func(p place) { i.checkWriteModel(p, models) })
}

func (i *inspection) checkWriteModel(p place, models []operations.Model) {
	if p.Kind != source.Document || len(p.Fields) != 1 {
		i.report(p, "a write model is a document with exactly one key, such as insertOne")
		return
	}
	name := p.Fields[0].Key
	at := slices.IndexFunc(models, func(m operations.Model) bool { return m.Name == name })
	body := p.get(name)
	switch {
	case at < 0:
		i.reportAt(p.Fields[0].KeyPosition, body.path, "there is no write model %s", name)
		return
	case body.Kind != source.Document:
		i.report(body, "write model %s must be a document", name)
		return
	}
	for _, f := range body.Fields {
		if _, takes := models[at].Argument(f.Key); !takes {
			i.reportAt(f.KeyPosition, body.path+"."+f.Key, "write model %s has no %s", name, f.Key)
		}
	}
	for _, a := range models[at].Arguments {
		if a.Required && body.Value.Get(a.Name) == nil {
			i.report(body, "write model %s requires %s", name, a.Name)
		}
	}
}

// choices are the arguments with a closed set of values; exact ones are
// compared with regard to case.
var choices = map[string]struct {
	values []string
	exact  bool
}{
	// findOneAndReplace and findOneAndUpdate: matched case-insensitively.
	"returnDocument": {[]string{"Before", "After"}, false},
	// assertSessionTransactionState.
	"state": {[]string{"none", "starting", "in_progress", "committed", "aborted"}, true},
	// Server Discovery and Monitoring, "TopologyType".
	"topologyType": {[]string{"Single", "ReplicaSetNoPrimary", "ReplicaSetWithPrimary", "Sharded", "Unknown", "LoadBalanced"}, true},
}

func checkArgumentValues(i *inspection, s step) {
	for name, choice := range choices {
		v := s.Arguments.Get(name)
		if _, takes := s.row.Argument(name); v == nil || !takes {
			continue
		}
		ok := slices.ContainsFunc(choice.values, func(c string) bool {
			return v.String == c || !choice.exact && strings.EqualFold(v.String, c)
		})
		if v.Kind != source.String || !ok {
			i.reportAt(v.Position, s.path+".arguments."+name, "argument %s must be one of %s", name, strings.Join(choice.values, ", "))
		}
	}
	// upload and uploadWithId.
	if bytes := s.get("arguments").get("source"); s.kind == operations.Bucket && bytes.exists() {
		if v := bytes.Value.Get("$$hexBytes"); v == nil || len(bytes.Fields) != 1 || !isHexBytes(v) {
			i.report(bytes, "source must be {$$hexBytes: an even number of hexadecimal digits}")
		}
	}
}

func isHexBytes(v *source.Value) bool {
	_, err := hex.DecodeString(v.String)
	return v.Kind == source.String && err == nil
}

// commonOptions are the keys of options that operations and entities share
// ("Common Options").
var commonOptions = map[string][]string{
	"readConcern":    {"level"},
	"readPreference": {"mode", "tagSets", "maxStalenessSeconds", "hedge"},
	"writeConcern":   {"journal", "w", "wtimeoutMS"},
}

// entityOptions are the keys of options into which the schema does not look:
// Causal Consistency, Snapshot Reads, Transactions and Client Side Operations
// Timeout for sessions; GridFS, "Configurable GridFSBucket class", for buckets.
var entityOptions = map[string][]string{
	"sessionOptions":            {"causalConsistency", "defaultTimeoutMS", "defaultTransactionOptions", "snapshot", "snapshotTime"},
	"defaultTransactionOptions": {"maxCommitTimeMS", "readConcern", "readPreference", "timeoutMS", "writeConcern"},
	"bucketOptions":             {"bucketName", "chunkSizeBytes", "disableMD5", "readConcern", "readPreference", "timeoutMS", "writeConcern"},
}

func checkCommonOptions(i *inspection) {
	for _, s := range i.steps {
		if s.known {
			i.checkOptions(s.get("arguments"), commonOptions)
		}
	}
	for _, e := range i.entities {
		i.checkOptions(e, entityOptions)
		for _, key := range []string{"databaseOptions", "collectionOptions", "bucketOptions", "sessionOptions"} {
			options := e.get(key)
			if !options.exists() {
				continue
			}
			i.checkOptions(options, commonOptions)
			i.checkOptions(options, entityOptions)
			if d := options.get("defaultTransactionOptions"); d.exists() {
				i.checkOptions(d, commonOptions)
			}
		}
	}
}

// checkOptions looks at those members of a document whose keys are known.
func (i *inspection) checkOptions(in place, known map[string][]string) {
	for name, keys := range known {
		v := in.get(name)
		if !v.exists() {
			continue
		}
		if v.Kind != source.Document {
			i.report(v, "%s must be a document", name)
		}
		for _, f := range v.Fields {
			if !slices.Contains(keys, f.Key) {
				i.reportAt(f.KeyPosition, v.path+"."+f.Key, "%s has no %s; there is: %s", name, f.Key, strings.Join(keys, ", "))
			}
		}
	}
}
