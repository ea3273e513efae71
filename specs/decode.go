package specs

import (
	"fmt"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/source"
)

// decode returns the typed form of a file that its schema accepts. It reports versions that match the schema's pattern
// but cannot be parsed, and empty version ranges.
func (i *inspection) decode(file string, root *source.Value) *Suite {
	s := &Suite{
		File:         file,
		Root:         root,
		Description:  root.Get("description").Text(),
		Requirements: i.requirements(root.Get("runOnRequirements"), "runOnRequirements"),
		InitialData:  collections(root.Get("initialData")),

		CreateEntities: DecodeEntities(root.Get("createEntities")),
	}
	if v := i.version(root.Get("schemaVersion"), "schemaVersion"); v != nil {
		s.SchemaVersion = *v
	}
	for k, t := range root.Get("tests").Elements() {
		s.Tests = append(s.Tests, i.decodeTest(t, fmt.Sprintf("tests[%d]", k)))
	}
	return s
}

func (i *inspection) version(v *source.Value, path string) *Version {
	if v == nil {
		return nil
	}
	version, err := ParseVersion(v.String)
	if err != nil {
		i.reportAt("version", v.Position, path, "%s", err)
		return nil
	}
	return &version
}

func (i *inspection) requirements(list *source.Value, path string) []Requirement {
	var out []Requirement
	for k, v := range list.Elements() {
		at := fmt.Sprintf("%s[%d]", path, k)
		r := Requirement{
			MinServerVersion: i.version(v.Get("minServerVersion"), at+".minServerVersion"),
			MaxServerVersion: i.version(v.Get("maxServerVersion"), at+".maxServerVersion"),
			Serverless:       v.Get("serverless").Text(),
			ServerParameters: v.Get("serverParameters"),
			Auth:             boolean(v.Get("auth")),
			AuthMechanism:    v.Get("authMechanism").Text(),
			Topologies:       decodeEach(v.Get("topologies"), (*source.Value).Text),
		}
		if r.MinServerVersion != nil && r.MaxServerVersion != nil && r.MinServerVersion.Compare(*r.MaxServerVersion) > 0 {
			i.reportAt("version-range", v.Position, at, "minServerVersion %s is above maxServerVersion %s: no server meets this",
				r.MinServerVersion, r.MaxServerVersion)
		}
		if csfle := v.Get("csfle"); csfle != nil {
			if r.CSFLE = boolean(csfle); csfle.Kind == source.Document {
				yes := true
				r.CSFLE = &yes
				r.MinLibmongocrypt = csfle.Get("minLibmongocryptVersion").Text()
			}
		}
		out = append(out, r)
	}
	return out
}

func (i *inspection) decodeTest(v *source.Value, path string) *Test {
	t := &Test{
		Position:          v.Position,
		Description:       v.Get("description").Text(),
		Requirements:      i.requirements(v.Get("runOnRequirements"), path+".runOnRequirements"),
		ExpectEvents:      v.Get("expectEvents").Elements(),
		ExpectLogMessages: v.Get("expectLogMessages").Elements(),
		ExpectTracing:     v.Get("expectTracingMessages").Elements(),
		Outcome:           collections(v.Get("outcome")),
		Operations:        DecodeOperations(v.Get("operations")),
	}
	if reason := v.Get("skipReason"); reason != nil {
		t.SkipReason = &reason.String
	}
	return t
}

// DecodeOperations returns the typed form of the operations of a test or of a withTransaction callback.
func DecodeOperations(list *source.Value) []Operation {
	return decodeEach(list, DecodeOperation)
}

func decodeEach[T any](list *source.Value, decode func(*source.Value) T) (out []T) {
	for _, v := range list.Elements() {
		out = append(out, decode(v))
	}
	return out
}

// DecodeOperation returns the typed form of an operation. Missing fields stay empty.
func DecodeOperation(v *source.Value) Operation {
	o := Operation{
		Name:               v.Get("name").Text(),
		Object:             v.Get("object").Text(),
		Arguments:          v.Get("arguments"),
		ExpectError:        v.Get("expectError"),
		ExpectResult:       v.Get("expectResult"),
		SaveResultAsEntity: v.Get("saveResultAsEntity").Text(),

		IgnoreResultAndError: v.Get("ignoreResultAndError").IsTrue(),
	}
	if v != nil {
		o.Position = v.Position
	}
	return o
}

// DecodeEntities returns the typed form of createEntities, of a file or of the operation. A valid
// element has one key and is one entity; each further key is another entity.
func DecodeEntities(list *source.Value) []Entity {
	var out []Entity
	for _, v := range list.Elements() {
		for _, f := range v.Fields {
			out = append(out, Entity{Position: f.Value.Position, Kind: entities.Kind(f.Key), ID: f.Value.Get("id").Text(), Value: f.Value})
		}
	}
	return out
}

func collections(list *source.Value) []CollectionData {
	return decodeEach(list, func(v *source.Value) CollectionData {
		return CollectionData{
			Position:       v.Position,
			DatabaseName:   v.Get("databaseName").Text(),
			CollectionName: v.Get("collectionName").Text(),
			CreateOptions:  v.Get("createOptions"),
			Documents:      v.Get("documents").Elements(),
		}
	})
}

func boolean(v *source.Value) *bool {
	if v == nil || v.Kind != source.Bool {
		return nil
	}
	return &v.Bool
}
