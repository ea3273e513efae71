package report_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// What SARIF 2.1.0 requires of the properties that we write: required ones, types and values.
//
//go:embed testdata/sarif.schema.json
var sarifSchema []byte

// Every log conforms to the schema, and the schema rejects invalid ones.
func TestSARIFConformsToSchema(t *testing.T) {
	schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(sarifSchema))
	testkit.Check(t, err)
	conforms := func(reason, log string, want bool) {
		r, err := schema.Validate(gojsonschema.NewStringLoader(log))
		testkit.Check(t, err)
		testkit.Equal(t, reason+": "+log, r.Valid(), want)
	}
	whole := string(generate(report.SARIF(), run()))
	conforms("a run", whole, true)
	for reason, notes := range map[string][]result.Note{
		"cells": cells(), "no test": {result.RunFinished{}},
		"a test without a position": {finished(&result.Verdict{Status: result.Broken}), result.RunFinished{}},
	} {
		conforms(reason, string(generate(report.SARIF(), notes)), true)
	}
	for _, r := range []struct{ reason, old, mutant string }{
		{"another version", `"version": "2.1.0"`, `"version": "2.0.0"`},
		{"an unknown level", `"level": "error"`, `"level": "fatal"`},
		{"a result without a message", `"message"`, `"messages"`},
		{"a tool without a name", `"name": "utr"`, `"names": "utr"`},
		{"a rule without an id", `"id": "failed"`, `"ids": "failed"`},
		{"line 0", `"startLine": 30`, `"startLine": 0`},
		{"no verdict on the execution", `"executionSuccessful": false,`, ""},
	} {
		testkit.Equal(t, r.reason+" is another text", strings.Contains(whole, r.old), true)
		conforms(r.reason, strings.Replace(whole, r.old, r.mutant, 1), false)
	}
}

// A log stays small and keeps the place of each failure.
func TestSARIFIsBounded(t *testing.T) {
	var notes []result.Note
	for i := range 2000 {
		n := failing("test", strings.Repeat("long ", 3000)).(result.TestFinished)
		n.Verdict.Position.Line = i + 1
		notes = append(notes, n)
	}
	log := generate(report.SARIF(), append(notes, result.RunFinished{}))
	testkit.Equal(t, "results", strings.Count(string(log), `"startLine": `), 2000)
	testkit.Equal(t, "the log is short", len(log) < 16<<20, true)
}
