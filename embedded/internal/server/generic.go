package server

import (
	_ "embed" // for help.txt
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// internalFields are fields that servers send each other. If a client sends one, it is checked and has no effect.
var internalFields = []struct {
	name    string
	since   string // release
	routing bool
	check   func(*exchange, bson.RawValue) error
}{
	{"$audit", "", false, func(x *exchange, v bson.RawValue) error {
		doc, ok := v.DocumentOK()
		if !ok {
			return nil
		}
		return commands.CheckDocument(&x.request, "$audit", value.Must(doc))
	}},
	{"$client", "", false, func(x *exchange, v bson.RawValue) error { return checkMetadata(v, x.view.isMongos()) }},
	{"$configServerState", "", false, documentWith("ConfigServerMetadata", "opTime")},
	{"tracking_info", "", false, documentWith("TrackingMetadata", "operId")},
	{"clientOperationKey", "4.4", false, func(_ *exchange, v bson.RawValue) error {
		if kind, data, _ := v.BinaryOK(); kind == bson.TypeBinaryUUID && len(data) == 16 {
			return nil
		}
		return fault.Errorf(fault.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
	}},
	{"shardVersion", "", true, func(_ *exchange, v bson.RawValue) error {
		if v.Type == bson.TypeArray {
			return nil
		}
		return fault.Errorf(fault.TypeMismatch, "Invalid type %s for shardVersion element. Expected an array",
			value.RawTypeName(v))
	}},
	{"databaseVersion", "", true, func(x *exchange, v bson.RawValue) error {
		doc, ok := v.DocumentOK()
		if !ok {
			return fault.Errorf(fault.BadValue, "expected databaseVersion element to be an object, got databaseVersion: %s",
				shown(v))
		}
		return commands.CheckDocument(&x.request, "DatabaseVersion", value.Must(doc))
	}},
}

// documentWith returns a check that a value is a document with a field.
func documentWith(title, field string) func(*exchange, bson.RawValue) error {
	return func(_ *exchange, v bson.RawValue) error {
		var p fault.First
		doc, ok := v.DocumentOK()
		p.Refuse(!ok, fault.TypeMismatch, "%s element has incorrect type: expectedobject but got %s", title, // sic
			value.RawTypeName(v))
		p.Refuse(!value.Has(doc, field), fault.NoSuchKey, "Missing expected field \"%s\"", field)
		return p.Err
	}
}

// metadata checks the fields of internalFields that every server reads before it runs a command.
func (x *exchange) metadata() error { return x.checkInternal(false) }

// routing checks the fields of internalFields that a mongos sends to a shard.
func (x *exchange) routing() error {
	if x.view.Role != commands.Standalone && x.view.Role != commands.Primary {
		return nil
	}
	return x.checkInternal(true)
}

func (x *exchange) checkInternal(routing bool) error {
	for _, f := range internalFields {
		if v, err := x.request.Body.LookupErr(f.name); err == nil && f.routing == routing &&
			(version.Range{Since: f.since}).Has(x.view.Wire) {
			if err := f.check(x, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// beforeParsing refuses an option that a mongos looks for before it parses the command.
func (x *exchange) beforeParsing() error {
	if x.view.isMongos() && value.Has(x.request.Body, "$maxTimeMS") {
		return noMaxTime()
	}
	return nil
}

// options refuses the options for time limits that clients may not send, and answers a request for help.
func (x *exchange) options() error {
	body := x.request.Body
	if value.Has(body, "maxTimeMSOpOnly") && !x.conn.internal && !x.view.isMongos() {
		return fault.Errorf(fault.InvalidOptions, "Can not specify maxTimeMSOpOnly for non internal clients")
	}
	if value.Has(body, "$maxTimeMS") {
		return noMaxTime()
	}
	v, err := body.LookupErr("help")
	if err == nil && (v.Type == bson.TypeBoolean || !x.view.isMongos()) && value.Truthy(value.FromRaw(v)) {
		x.noTimes, x.answered = true, value.Doc("help", "help for: "+x.row.Name+" "+helpOf(x.row.Name))
	}
	return nil
}

func noMaxTime() error {
	return fault.Errorf(fault.InvalidOptions, "no such command option $maxTimeMs; use maxTimeMS instead")
}

//go:embed help.txt
var helpText string

// helpOf returns the help of a command. See help.txt.
func helpOf(name string) string {
	_, text, found := strings.Cut(helpText, "\n"+name+" ")
	if !found {
		return "no help defined"
	}
	text, _, _ = strings.Cut(text, "\n")
	return strings.ReplaceAll(text, `\n`, "\n")
}

// replData describes the replication of a member for the field $replData of other members.
func (x *exchange) replData() bson.D {
	if !value.Has(x.request.Body, "$replData") || !x.view.isMember() {
		return nil
	}
	now, term := x.server.now(), x.view.Term
	at := value.Doc("ts", now, "t", term)
	primary := x.view.Role == commands.Primary
	source := -1
	if !primary {
		source = slices.IndexFunc(x.view.set.Members, func(m Member) bool { return m.Host == x.view.primary })
	}
	return value.Doc("$replData", value.Doc("term", term, "lastOpCommitted", at,
		"lastCommittedWall", bson.NewDateTimeFromTime(time.Unix(int64(now.T), 0)), "lastOpVisible", at,
		"configVersion", int64(x.view.set.Version), "configTerm", term, "replicaSetId", x.view.set.id,
		"syncSourceIndex", int32(source), "isPrimary", primary))
}

func wrongType(field string, given bson.RawValue, expected string) error {
	return fault.Errorf(fault.TypeMismatch,
		"BSON field '%s' is the wrong type '%s', expected type '%s'", field, value.RawTypeName(given), expected)
}

// need returns a field of a document. It notes an error if the field is missing or has another type.
func need(p *fault.First, doc bson.Raw, name, kind string) bson.RawValue {
	given, err := doc.LookupErr(name)
	p.Refuse(err != nil, fault.NoSuchKey, "Missing expected field \"%s\"", name)
	checkType(p, name, kind, given)
	return given
}

// checkType notes an error if a field has another type.
func checkType(p *fault.First, name, kind string, given bson.RawValue) {
	_, isNumber := given.AsInt64OK()
	found := value.RawTypeName(given)
	p.Refuse(found != kind && !(isNumber && kind == "number"), fault.TypeMismatch,
		"\"%s\" had the wrong type. Expected %s, found %s", name, kind, found)
}

// firstKey returns the name of a command, "" if the document is empty.
func firstKey(doc bson.Raw) string {
	e, err := doc.IndexErr(0)
	if err != nil {
		return ""
	}
	return e.Key()
}
