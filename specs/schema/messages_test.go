package schema

import (
	"strings"
	"testing"
)

// within puts a fragment into a valid file: the parts of the format that rows
// of the tables are about, each starting at line 4, column 1.
func within(schemaVersion, where, fragment string) string {
	file := "description: a\nschemaVersion: '" + schemaVersion + "'\n"
	const noTests = "tests: [{description: t, operations: []}]\n"
	switch where {
	case "file":
		return file + noTests + fragment + "\n"
	case "requirement":
		return file + noTests + "runOnRequirements:\n- " + fragment + "\n"
	case "entity":
		return file + noTests + "createEntities:\n- " + fragment + "\n"
	case "client":
		return file + noTests + "createEntities:\n- client: " + fragment + "\n"
	case "kms":
		return file + noTests + "createEntities:\n- clientEncryption: {id: e, clientEncryptionOpts: {keyVaultClient: c, keyVaultNamespace: n, kmsProviders:\n    " + fragment + "}}\n"
	case "data":
		return file + noTests + "initialData:\n- " + fragment + "\n"
	case "test":
		return file + "tests:\n- " + fragment + "\n"
	case "operation":
		return file + "tests:\n- description: t\n  operations:\n  - " + fragment + "\n"
	case "error":
		return file + "tests:\n- description: t\n  operations:\n  - {name: find, object: c, expectError:\n    " + fragment + "}\n"
	case "events":
		return file + "tests:\n- description: t\n  operations: []\n  expectEvents:\n  - " + fragment + "\n"
	case "event":
		return file + "tests:\n- description: t\n  operations: []\n  expectEvents:\n  - {client: c, events: [\n    " + fragment + "]}\n"
	case "cmap", "sdam":
		return file + "tests:\n- description: t\n  operations: []\n  expectEvents:\n  - {client: c, eventType: " + where + ", events: [\n    " + fragment + "]}\n"
	case "logs":
		return file + "tests:\n- description: t\n  operations: []\n  expectLogMessages:\n  - " + fragment + "\n"
	case "log":
		return file + "tests:\n- description: t\n  operations: []\n  expectLogMessages:\n  - {client: c, messages: [\n    " + fragment + "]}\n"
	case "tracing":
		return file + "tests:\n- description: t\n  operations: []\n  expectTracingMessages:\n  - " + fragment + "\n"
	default:
		return fragment
	}
}

type row struct {
	reason, version, where, fragment string
	want                             string // problems, one a line
}

func check(t *testing.T, rows []row) {
	t.Helper()
	set := New()
	for _, r := range rows {
		file := within(r.version, r.where, r.fragment)
		version := r.version
		var got []string
		for _, p := range set.Validate(version, parse(t, file)) {
			got = append(got, strings.TrimPrefix(p.String(), "suite.yml:"))
		}
		if strings.Join(got, "\n") != r.want {
			t.Errorf("%s\n%s\n got: %s\nwant: %s", r.reason, file, strings.Join(got, "\n      "), r.want)
		}
	}
}

// TestMessages has, for every constraint of the schema, a file that violates
// it and nothing else, and what a person is told.
func TestMessages(t *testing.T) { check(t, constraints()) }
