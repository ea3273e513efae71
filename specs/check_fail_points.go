package specs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/internal/wire/failpoints"
)

// failPointCheck checks one configureFailPoint command. It reports what servers refuse as fail-point, and what they
// ignore as fail-point-data.
type failPointCheck struct {
	*inspection
	test   *Test
	allows bool // the operation allows an error, such as a refusal
}

func (c failPointCheck) refused(p place, format string, args ...any) {
	if !c.allows {
		c.report("fail-point", p, format, args...)
	}
}

func (c failPointCheck) ignored(p place, format string, args ...any) {
	c.report("fail-point-data", p, format, args...)
}

// checkFailPoints checks the fail points of an operation: of the operations failPoint and targetedFailPoint, and
// commands. The operations of a loop are checked, too, although loops are not supported.
func (i *inspection) checkFailPoints(s step, test *Test) {
	if s.get("expectError").exists() {
		return // the test is about the refusal
	}
	c := failPointCheck{i, test, s.get("ignoreResultAndError").Value.IsTrue()}
	arguments := s.get("arguments")
	if f := arguments.get("failPoint"); s.Known && f.exists() {
		c.point(f)
	}
	if f := arguments.get("command"); f.exists() && len(f.Fields) > 0 && f.Fields[0].Key == configureFailPoint {
		c.point(f)
	}
	if s.Name == "loop" {
		arguments.get("operations").each(func(o place) {
			i.checkFailPoints(step{o, Step{Operation: DecodeOperation(o.Value), Known: true}}, test)
		})
	}
}

const configureFailPoint = "configureFailPoint"

func (c failPointCheck) point(f place) {
	if f.Kind != source.Document || len(f.Fields) == 0 || f.Fields[0].Key != configureFailPoint ||
		f.Fields[0].Value.Kind != source.String {
		c.refused(f, "a fail point must be a document whose first key is configureFailPoint, with the name of a fail point")
		return
	}
	known, isKnown := c.name(f.get(configureFailPoint))
	c.mode(f)
	if m := f.get("mode"); m.exists() && isKnown && known.Since == "" && m.Kind == source.Document {
		c.refused(m, "the mode of %s must be \"off\" or \"alwaysOn\", not %s", known.Name, m.JSON())
	}
	c.keys(f, known)
	on := isKnown && !isOff(f) // servers ignore the data of a fail point that is off
	switch data := f.get("data"); {
	case !data.exists():
		if on {
			c.effect(f, known)
		}
	case data.ExtendedScalar() || data.Kind != source.Document && data.Kind != source.Array:
		c.refused(data, "data must be a document, not %s", data.JSON())
	case data.Kind == source.Array:
		c.ignored(data, "data must be a document: servers ignore an array")
	case on:
		c.fields(data, known.Fields)
		c.effect(data, known)
	}
}

// name checks the name of a fail point, and returns its entry in the table.
func (c failPointCheck) name(name place) (known failpoints.Point, isKnown bool) {
	known, isKnown = failpoints.PointNamed(name.String)
	likely := suggest.Word(name.String, failpoints.PointNames())
	switch hint := suggest.Hint(name.String, failpoints.PointNames()); {
	case isKnown:
		c.exists(name, "fail point "+name.String, known.Since, "")
	case likely != "" && abs(len(likely)-len(name.String)) <= 2: // misspelled, and not just unknown to utr
		c.refused(name, "servers do not have a fail point %s%s", name.String, hint)
	case !c.allows:
		c.ignored(name, "utr does not know the fail point %s, and a server without it refuses to set it%s", name.String, hint)
	}
	return known, isKnown
}

func abs(n int) int { return max(n, -n) }

func isOff(f place) bool { return f.get("mode").Value.Text() == "off" }

// keys checks the keys of the command itself.
func (c failPointCheck) keys(f place, known failpoints.Point) {
	all := []string{configureFailPoint, "mode", "data"}
	for _, k := range f.Fields {
		_, belongs := known.Field(k.Key)
		switch {
		case slices.Contains(all, k.Key) || slices.Contains(genericArguments(), k.Key) || strings.HasPrefix(k.Key, "$"):
		case belongs:
			c.ignored(place{k.Value, f.path + "." + k.Key}, "%s belongs in data: servers ignore it here", k.Key)
		default:
			c.unknown(f, k, "a fail point does not have", all)
		}
	}
}

// unknown reports a key that servers ignore.
func (c failPointCheck) unknown(of place, k source.Field, lacks string, known []string) {
	c.reportAt("fail-point-data", k.KeyPosition, of.path+"."+k.Key, "%s %s, and servers ignore it%s", lacks, k.Key,
		suggest.Hint(k.Key, known))
}

// genericArguments are the arguments that servers accept of every command.
func genericArguments() []string {
	return []string{"comment", "maxTimeMS", "readConcern", "writeConcern", "lsid", "txnNumber", "autocommit",
		"startTransaction", "apiVersion", "apiStrict", "apiDeprecationErrors"}
}

// modes are the modes that are documents, by the order in which servers look for them, each with its check.
var modes = []struct {
	name  string
	fault func(v place) string
}{{"times", countFault}, {"skip", countFault}, {"activationProbability", probabilityFault}}

func countFault(v place) string {
	n, whole := v.Integer()
	if !whole || n < 0 || n > math.MaxInt32 {
		return fmt.Sprintf("must be an integer from 0 to %d", math.MaxInt32)
	}
	return ""
}

func probabilityFault(v place) string {
	value, _ := v.BSON()
	if p, ok := value.AsFloat64OK(); !ok || !(p >= 0 && p <= 1) {
		return "must be a number from 0 to 1"
	}
	return ""
}

func (c failPointCheck) mode(f place) {
	const all = `"off", "alwaysOn", {times: n}, {skip: n} or {activationProbability: p}`
	m := f.get("mode")
	var names []string
	for _, mode := range modes {
		names = append(names, mode.name)
	}
	switch {
	case !m.exists():
		c.refused(f, "the fail point has no mode")
	case m.Kind == source.String:
		if m.String != "off" && m.String != "alwaysOn" {
			c.refused(m, "the mode must be %s, not %s%s", all, m.JSON(),
				suggest.Hint(m.String, append([]string{"off", "alwaysOn"}, names...)))
		}
	case m.Kind != source.Document || m.ExtendedScalar():
		c.refused(m, "the mode must be %s, not %s", all, m.JSON())
	default:
		c.modeDocument(m, names, all)
	}
}

// modeDocument checks a mode with a value. Servers use the first of the modes that the document has.
func (c failPointCheck) modeDocument(m place, names []string, all string) {
	used := slices.IndexFunc(names, func(name string) bool { return m.get(name).exists() })
	if used < 0 {
		hint := ""
		for _, k := range m.Fields {
			hint = suggest.Hint(k.Key, names)
		}
		c.refused(m, "the mode must be %s, not %s%s", all, m.JSON(), hint)
		return
	}
	v := m.get(names[used])
	if fault := modes[used].fault(v); fault != "" {
		c.refused(v, "%s %s, not %s", names[used], fault, v.JSON())
	}
	for _, k := range m.Fields {
		if k.Key != names[used] {
			c.reportAt("fail-point-data", k.KeyPosition, m.path+"."+k.Key, "servers ignore %s beside %s%s", k.Key, names[used],
				suggest.Hint(k.Key, names))
		}
	}
}

// fields checks the data of a fail point, or an element of a sequence.
func (c failPointCheck) fields(data place, known []failpoints.Field) {
	for _, k := range data.Fields {
		v := data.get(k.Key)
		field := known[max(0, slices.IndexFunc(known, func(f failpoints.Field) bool { return f.Name == k.Key })):]
		switch {
		case len(field) == 0 || field[0].Name != k.Key:
			if !isFalse(v) { // false has no effect, even if the server does not have the field
				c.unknown(data, k, "this fail point does not read", failpoints.Names(known))
			}
		case !hasType(v, field[0].Type):
			c.wrong(k.Key, v, field[0].Type)
		default:
			c.field(data, v, field[0])
		}
	}
}

// wrong reports a value of another type. Where servers expect a string, they read any other value as an empty string.
func (c failPointCheck) wrong(name string, v place, t failpoints.Type) {
	switch t {
	case failpoints.Objects:
		c.refused(v, "%s must be %s, not %s", name, t, v.JSON())
	case failpoints.Text:
		c.ignored(v, "%s must be %s, not %s: servers read it as an empty one", name, t, v.JSON())
	default:
		c.ignored(v, "%s must be %s, not %s: servers ignore it", name, t, v.JSON())
	}
}

// field checks the value of a known field that has the right type.
func (c failPointCheck) field(data, v place, f failpoints.Field) {
	c.exists(v, f.Name, f.Since, "")
	if f.Needs != nil && !slices.ContainsFunc(f.Needs, func(n string) bool { return acts(data.get(n)) }) {
		c.ignored(v, "servers ignore %s without %s", f.Name, strings.Join(f.Needs, " or "))
	}
	switch f.Name {
	case "blockConnection":
		if n, whole := data.get("blockTimeMS").Integer(); v.IsTrue() && (!whole || n < 0) {
			c.ignored(v, "blockConnection needs a non-negative blockTimeMS: servers return the error InvalidOptions instead")
		}
	case "failCommands":
		c.commands(v)
	case "errorLabels":
		v.each(func(label place) {
			if label.Kind != source.String {
				c.ignored(label, "an error label must be a string, not %s", label.JSON())
			}
		})
	case "sequence":
		v.each(func(element place) { c.fields(element, failpoints.Element()) })
	}
}

// commands checks the names of commands that a fail point affects. If only other versions have them, that is reported
// once all names have this problem.
func (c failPointCheck) commands(list place) {
	var old []string
	list.each(func(v place) {
		command, known := failpoints.CommandNamed(v.String)
		switch {
		case v.Kind != source.String:
			c.ignored(v, "the name of a command must be a string, not %s: servers ignore it", v.JSON())
		case !known:
			c.ignored(v, "servers do not have a command %s, and ignore it%s", v.String, commandHint(v.String))
		case !c.inRange(command.Since, command.Until):
			old = append(old, v.String)
		}
	})
	if list.Kind == source.Array && len(list.Items) == 0 {
		c.ignored(list, "failCommands is empty: the fail point affects no command")
	}
	if len(old) > 0 && len(old) == len(list.Items) {
		for _, name := range old {
			command, _ := failpoints.CommandNamed(name)
			c.exists(list, "the command "+name, command.Since, command.Until)
		}
	}
}

// effect checks that the data of a fail point says which commands it affects, and what happens to them.
func (c failPointCheck) effect(data place, known failpoints.Point) {
	if r := known.Requires; r != "" && !data.get(r).exists() && !data.get("failAllCommands").exists() {
		c.ignored(data, "the fail point has no %s and affects no command", r)
	}
	has := func(f failpoints.Field) bool { return f.Effect && data.get(f.Name).exists() }
	if !known.Acts && !slices.ContainsFunc(known.Fields, has) {
		var names []string
		for _, f := range known.Fields {
			if f.Effect {
				names = append(names, f.Name)
			}
		}
		c.ignored(data, "the fail point has no effect: it needs one of %s", strings.Join(names, ", "))
	}
}

// exists reports a name that does not exist in any version that the test runs on.
func (c failPointCheck) exists(p place, what, since, until string) {
	switch {
	case c.inRange(since, until):
	case since != "":
		c.ignored(p, "%s exists since version %s, and the test runs only on earlier ones", what, since)
	default:
		c.ignored(p, "%s exists up to version %s, and the test runs only on later ones", what, until)
	}
}

// inRange reports whether the requirements allow a version from since to until; "" means no limit.
func (c failPointCheck) inRange(since, until string) bool {
	if since == "" && until == "" {
		return true
	}
	first, _ := ParseVersion(since)
	last, err := ParseVersion(until)
	if last.Patch = math.MaxInt; err != nil { // the last patch release
		last.Major = math.MaxInt
	}
	for _, of := range ranges(c.suite.Requirements) {
		for _, and := range ranges(c.test.Requirements) {
			from := slices.MaxFunc([]Version{first, of[0], and[0]}, Version.Compare)
			to := slices.MinFunc([]Version{last, of[1], and[1]}, Version.Compare)
			if from.Compare(to) <= 0 {
				return true
			}
		}
	}
	return false
}

// ranges returns the first and the last version of each requirement.
func ranges(requirements []Requirement) (out [][2]Version) {
	if requirements == nil {
		requirements = []Requirement{{}}
	}
	for _, r := range requirements {
		of := [2]Version{{}, {Major: math.MaxInt}}
		if r.MinServerVersion != nil {
			of[0] = *r.MinServerVersion
		}
		if r.MaxServerVersion != nil {
			of[1] = *r.MaxServerVersion
		}
		out = append(out, of)
	}
	return out
}

// isFalse reports whether a value is false.
func isFalse(v place) bool { return v.Kind == source.Bool && !v.Bool }

// acts reports whether a field exists and is not false.
func acts(v place) bool { return v.exists() && !isFalse(v) }

// hasType reports whether servers read a value as a field of a type.
func hasType(v place, t failpoints.Type) bool {
	value, err := v.BSON()
	if err != nil {
		return true // another rule reports it
	}
	switch t {
	case failpoints.Bool:
		return value.Type == bson.TypeBoolean
	case failpoints.Integer:
		_, whole := v.Integer()
		return whole
	case failpoints.Text:
		return value.Type == bson.TypeString
	case failpoints.Object:
		return value.Type == bson.TypeEmbeddedDocument
	case failpoints.Commands:
		return value.Type == bson.TypeArray || value.Type == bson.TypeEmbeddedDocument // servers ignore its keys
	case failpoints.Texts:
		return value.Type == bson.TypeArray
	default:
		return v.Kind == source.Array && !slices.ContainsFunc(v.Items,
			func(item *source.Value) bool { return item.Kind != source.Document })
	}
}
