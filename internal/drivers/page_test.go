package main

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

func verdict(cell, file string, status result.Status, kind result.SkipKind, reason string) *result.Verdict {
	return &result.Verdict{Test: result.TestID{Cell: cell, File: file, Description: "a"}, Status: status, SkipKind: kind, Reason: reason}
}

func TestPage(t *testing.T) {
	page, err := markdown([]*result.Verdict{
		verdict("single_reference_own", "a.yml", result.Passed, "", ""),
		verdict("single_reference_deviations", "specs/deviations/x.yml", result.Passed, "", ""),
		verdict("single_reference_deviations", "specs/deviations/y.yml", result.Skipped, result.SkipRequirement, ""),
		verdict("single_py_own", "a.yml", result.KnownFailing, "", "4.1: sends | twice; CRUD"),
		verdict("sharded_py_own", "a.yml", result.KnownFailing, "", "4.1: sends | twice; CRUD"),
		verdict("sharded_py_own", "b.yml", result.KnownFailing, "", "by chance: not always"),
		verdict("single_py_own", "b.yml", result.Skipped, result.SkipCapability, "the engine does not support collection.count"),
		verdict("single_py_own", "c.yml", result.Skipped, result.SkipRequirement, "server 9.0"),
		verdict("single_py_official", "a.yml", result.Passed, "", ""),
		verdict("sharded_py_deviations", "specs/deviations/x.yml", result.KnownFailing, "", "D1"),
		verdict("single_py_deviations", "specs/deviations/x.yml", result.Passed, "", ""),
		verdict("single_py_deviations", "specs/deviations/y.yml", result.Passed, "", ""),
		verdict("single_py_deviations", "specs/deviations/z.yml", result.KnownFailing, "", "4.1: permitted: D2"),
	})
	testkit.Check(t, err)
	testkit.Golden(t, "testdata/page.md", page)
}

func TestPageIsRefused(t *testing.T) {
	for _, r := range []struct {
		reason string
		of     []*result.Verdict
		says   string
	}{
		{"a failure is not explained", []*result.Verdict{verdict("single_py_own", "a.yml", result.Failed, "", "")},
			`single_py_own: a.yml: "a" failed`},
		{"the night was interrupted", []*result.Verdict{verdict("single_py_own", "a.yml", result.Skipped, result.SkipNotRun,
			"interrupted")}, `single_py_own: a.yml: "a" skipped`},
		{"it is not one of drivers.yml", []*result.Verdict{verdict("", "a.yml", result.Passed, "", "")}, "is not cluster_engine_suites"},
		{"it is empty", nil, "no tests"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			_, err := markdown(r.of)
			testkit.ErrorContains(t, err, r.says)
		})
	}
}
