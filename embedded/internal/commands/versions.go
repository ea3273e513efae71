package commands

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Wire versions of server releases.
const (
	wire44 = 9
	wire50 = 13
	wire60 = 17
	wire70 = 21
	wire80 = 25
	wire81 = 26
)

// newFields are the fields of commands and subdocuments that were added in a wire version. message, with the field, and
// code are the error of older servers; the default is that of an unknown field.
var newFields = []struct {
	fields   []string
	wire     int
	commands []string
	message  string
	code     int32
}{
	{fields: []string{"let"}, wire: wire50, commands: []string{"aggregate"}, message: "unrecognized field '%s'", code: 9},
	{fields: []string{"let"}, wire: wire50, commands: []string{"find"}, message: "Unrecognized field '%s'", code: 9},
	{fields: []string{"let"}, wire: wire50, commands: []string{"findAndModify"}, message: "BSON field '%s' is an unknown field.", code: 40415},
	{fields: []string{"let"}, wire: wire50, commands: []string{"update", "delete"}},
	{fields: []string{"allowDiskUse"}, wire: wire44, commands: []string{"find"}, message: "Unrecognized field '%s'", code: 9},
	{fields: []string{"hint"}, wire: wire44, commands: []string{"findAndModify", "delete.deletes"}},
	{fields: []string{"sort"}, wire: wire80, commands: []string{"update.updates"}},
	{fields: []string{"comment"}, wire: wire44, commands: []string{"insert", "update", "delete", "findAndModify", "distinct", "count", "getMore"}},
	{fields: []string{"timeseries"}, wire: wire50, commands: []string{"create"}},
	{fields: []string{"changeStreamPreAndPostImages"}, wire: wire60, commands: []string{"create", "collMod"}},
	{fields: []string{"clusteredIndex", "encryptedFields"}, wire: wire60, commands: []string{"create"}},
	{fields: []string{"unique", "prepareUnique"}, wire: wire50, commands: []string{"collMod.index"},
		message: "Unrecognized field '%s' in 'index' option", code: 72},
	{fields: []string{"unique", "prepareUnique"}, wire: wire60, commands: []string{"collMod.index"}},
	{fields: []string{"showExpandedEvents", "fullDocumentBeforeChange"}, wire: wire60, commands: []string{"$changeStream"}},
}

// tooNew returns an error if a command or a subdocument has a field that the server's version does not support.
func tooNew(req *Request, of string, doc bson.D) error {
	w := wire(req)
	if w >= wire80 {
		return nil
	}
	for _, e := range doc {
		for _, f := range newFields {
			if !slices.Contains(f.fields, e.Key) || w >= f.wire || !slices.Contains(f.commands, of) {
				continue
			}
			if f.message != "" {
				return fault.Errorf(f.code, f.message, e.Key)
			}
			return fault.Errorf(fault.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", of, e.Key)
		}
		if e.Key != "comment" {
			continue
		}
		_, text := e.Value.(string)
		if (of == "find" || of == "aggregate") && !text && w < wire44 {
			return fault.Errorf(fault.FailedToParse, "\"comment\" had the wrong type. Expected string, found %s", value.TypeName(e.Value))
		}
		// count supports comment since 4.4.14.
		if of == "count" && slices.Compare(req.Server.Version[:], []int{4, 4, 14}) < 0 {
			return fault.Errorf(fault.IDLUnknownField, "BSON field 'count.comment' is an unknown field.")
		}
	}
	return nil
}

// noDollars notes an error for a field with a leading dollar in a value, which servers before 5.0 did not store.
func noDollars(p *fault.First, v any, path string) {
	switch x := v.(type) {
	case bson.D:
		for _, e := range x {
			reference := e.Key == "$ref" || e.Key == "$id" || e.Key == "$db"
			p.Refuse(strings.HasPrefix(e.Key, "$") && !reference, fault.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", e.Key, path+e.Key)
			noDollars(p, e.Value, path+e.Key+".")
		}
	case bson.A:
		for _, item := range x {
			noDollars(p, item, path)
		}
	}
}
