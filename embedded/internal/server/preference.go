package server

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// modes are the read preference modes, and whether they allow a secondary.
var modes = map[string]bool{
	"primary": false, "primaryPreferred": true, "secondary": true, "secondaryPreferred": true, "nearest": true,
}

// readPreference checks $readPreference. Only a mongos selects members by it.
func (x *exchange) readPreference() error {
	preference, err := x.document("$readPreference")
	if err != nil && x.view.Has.IDL {
		return fault.Errorf(fault.TypeMismatch, "$readPreference has incorrect type: expected object but got %s",
			value.RawTypeName(x.request.Body.Lookup("$readPreference")))
	}
	if preference == nil || err != nil {
		return err
	}
	var p fault.First
	mode, _ := need(&p, preference, "mode", "string").StringValueOK()
	var known bool
	if x.readsSecondary, known = modes[mode]; !known {
		p.Fail(fault.BadValue, "Could not parse $readPreference mode '%s'. Only the modes 'primary', "+
			"'primaryPreferred', 'secondary', 'secondaryPreferred', and 'nearest' are supported. "+
			":: caused by :: Enumeration value '%s' for field 'mode' is not a valid value.", mode, mode)
	}
	if tags, err := preference.LookupErr("tags"); err == nil {
		checkType(&p, "tags", "array", tags)
	}
	limits(&p, preference, mode == "primary")
	if p.Err == nil && x.view.isMongos() {
		selectable(&p, preference)
	}
	return p.Err
}

// notDocument reports whether a tag set is not a document.
func notDocument(set bson.RawValue) bool { return set.Type != bson.TypeEmbeddedDocument }

// limits rejects tags and staleness with mode primary, and values of staleness.
func limits(p *fault.First, preference bson.Raw, primary bool) {
	sets := value.Elements(preference.Lookup("tags"))
	staleness := value.IntAt(preference, "maxStalenessSeconds")
	tagged := len(sets) > 1 || len(sets) == 1 && (notDocument(sets[0]) || len(sets[0].Value) > emptyDocument)
	p.Refuse(primary && tagged, fault.BadValue, "Only empty tags are allowed with primary read preference")
	p.Refuse(staleness < 0, fault.BadValue, "maxStalenessSeconds must be a non-negative integer")
	p.Refuse(staleness > 0 && staleness < 90, fault.MaxStalenessOutOfRange,
		"maxStalenessSeconds value can not be less than 90")
	p.Refuse(primary && value.FlagAt(preference, "hedge", "enabled"), fault.InvalidOptions,
		"cannot enable hedging for $readPreference mode \"primaryOnly\"")
	p.Refuse(primary && staleness != 0, fault.BadValue, "maxStalenessSeconds can not be set for the primary mode")
}

// selectable rejects what else Server Selection, "Document structure", excludes.
func selectable(p *fault.First, preference bson.Raw) {
	tags := preference.Lookup("tags")
	sets := value.Elements(tags)
	p.Refuse(repeats(preference, "mode") || repeats(preference, "tags"), fault.IDLDuplicateField,
		"$readPreference has a duplicate field")
	p.Refuse(!tags.IsZero() && len(sets) == 0, fault.BadValue, "\"tags\" must contain at least one document")
	if i := slices.IndexFunc(sets, notDocument); i >= 0 {
		p.Fail(fault.NotAnObject, "invalid parameter: expected an object (%d)", i)
	}
}

// repeats reports whether a validated document has a field more than once.
func repeats(document bson.Raw, name string) bool {
	elements, _ := document.Elements()
	return len(slices.DeleteFunc(elements, func(e bson.RawElement) bool { return e.Key() != name })) > 1
}
