package specs

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// Client Operations and the sections after it: an operation is an API method of the entity's class.
func (i *inspection) checkOperationName(s step) {
	if s.Known || s.Kind == "" {
		return // refer reports an undefined object
	}
	var others []string
	for _, k := range operations.KindsWith(s.Name) {
		others = append(others, string(k))
	}
	name := s.get("name")
	switch {
	case s.Name == "loop":
		i.report("unknown-operation", name,
			"the loop operation is not supported: it is deprecated, and only for Atlas tests that a signal ends")
	case s.Kind == entities.Thread || s.Kind == entities.Topology || s.Kind == entities.SavedValue:
		i.report("unknown-operation", name, "entity %q is a %s and has no operations", s.Object, s.Kind)
	case others != nil:
		i.report("unknown-operation", name, "operation %s does not exist on a %s, only on: %s", s.Name, s.Kind,
			strings.Join(others, ", "))
	default:
		i.report("unknown-operation", name, "unknown operation %s%s", s.Name, likelyOperation(s.Name, s.Kind))
	}
}

// likelyOperation returns the end of a message with the operation that an unknown name probably means: an operation of
// the entity, an operation of another kind of entity, or the operations that send a command of this name.
func likelyOperation(name string, kind entities.Kind) string {
	var own, others, sending []string
	for _, o := range operations.All() {
		switch {
		case o.Kind != kind:
			others = append(others, o.Name)
		case operations.SpanName(o.Name) == name:
			sending = append(sending, o.Name)
			fallthrough
		default:
			own = append(own, o.Name)
		}
	}
	if sending != nil {
		return "; it is the command of " + strings.Join(sending, ", ")
	}
	slices.Sort(others)
	return cmp.Or(suggest.Hint(name, own), suggest.Hint(name, slices.Compact(others)))
}

func (i *inspection) checkArguments(s step, sc scope) {
	arguments := s.get("arguments")
	for _, f := range arguments.fields() {
		_, found := s.Row.Argument(f.Key)
		switch path := arguments.path + "." + f.Key; {
		case !s.Known || found:
		case slices.Contains(URIOptions(), f.Key):
			i.reportAt("client-option", f.KeyPosition, path, "%s is an option of clients, not an argument of operation %s",
				f.Key, s.Name)
		default:
			i.reportAt("unknown-argument", f.KeyPosition, path, "operation %s has no argument %s%s",
				s.Name, f.Key, suggest.Hint(f.Key, s.Row.ArgumentNames()))
		}
	}
	for _, a := range s.Row.Arguments {
		v := arguments.get(a.Name)
		i.checkArgument(s, a, v)
		if a.Entity != "" {
			i.refer(v, sc, a.Entity)
		}
	}
	// findOneAndReplace and findOneAndUpdate: matched case-insensitively.
	if v := arguments.get("returnDocument"); v.exists() && !strings.EqualFold(v.String, "Before") &&
		!strings.EqualFold(v.String, "After") {
		i.report("argument-value", v, "argument returnDocument must be one of Before, After%s",
			suggest.Hint(v.String, []string{"Before", "After"}))
	}
	// upload and uploadWithId.
	if bytes := arguments.get("source"); s.Kind == entities.Bucket && bytes.exists() {
		if v := bytes.Value.Get("$$hexBytes"); v == nil || len(bytes.Fields) != 1 || !isHexBytes(v) {
			i.report("argument-value", bytes, "source must be {$$hexBytes: an even number of hexadecimal digits}")
		}
	}
}

func (i *inspection) checkArgument(s step, a operations.Argument, v place) {
	switch {
	case !v.exists():
		if a.Required {
			i.report("missing-argument", s.place, "operation %s requires argument %s", s.Name, a.Name)
		}
	case a.Type == "integer":
		if n, whole := v.Integer(); !whole || n < 0 {
			i.report("argument-value", v, "argument %s must be a non-negative integer, not %s", a.Name, v.JSON())
		}
	case a.Type != "" && v.Kind.String() != a.Type:
		i.report("argument-value", v, "argument %s must be of type %s, not %s", a.Name, a.Type, v.Kind)
	}
}

func isHexBytes(v *source.Value) bool {
	_, err := hex.DecodeString(v.String)
	return v.Kind == source.String && err == nil
}

func (i *inspection) checkSpecialOperation(s step, sc scope) {
	// Special Test Operations: not to be combined with expectations or results.
	for _, key := range []string{"expectError", "expectResult", "saveResultAsEntity", "ignoreResultAndError"} {
		if v := s.get(key); v.exists() {
			i.report("special-operation", v, "%s cannot be used with a test runner operation", key)
		}
	}
	arguments := s.get("arguments")
	i.checkMatched(arguments.get("event"))
	i.checkObservedEvent(arguments.get("event"), s.Arguments.Get("client").Text(), sc.observed)
	// failPoint: the client should use one mongos. Otherwise the fail point may be set on one mongos, and the
	// operations may reach another.
	sharded := mayBeSharded(i.suite.Requirements) && mayBeSharded(sc.test.Requirements)
	if client := arguments.get("client"); s.Name == "failPoint" && client.exists() && sc.many[client.String] && sharded {
		i.report("ambiguous-fail-point", client,
			"client %q can use several mongoses of a sharded cluster, and the fail point is on "+
				"one of them: use a client with useMultipleMongoses: false, or targetedFailPoint", client.String)
	}
}

// mayBeSharded reports whether requirements allow a sharded cluster.
func mayBeSharded(requirements []Requirement) bool {
	return requirements == nil || slices.ContainsFunc(requirements, func(r Requirement) bool {
		return r.Topologies == nil || slices.Contains(r.Topologies, "sharded") ||
			slices.Contains(r.Topologies, "sharded-replicaset")
	})
}
