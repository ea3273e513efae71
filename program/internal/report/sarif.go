package report

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// SARIF writes a log for code scanning at the end of the run: a result for each place of each cause of failures, at the
// first mismatch of its tests, with their status as the rule. Problems and breaks of the run are notifications. Known
// failures are not in it: whoever reads it would show them as failures.
func SARIF() Generator {
	var out bytes.Buffer
	log := SARIFLog{Rules: []SARIFRule{
		{string(result.Failed), "A test passes."},
		{string(result.Broken), "The set-up, the deployment and the engine of a test work."},
		{string(result.Flaky), "A test passes at the first attempt."},
		{sarifWarning, "A test that passes has no warnings."},
	}}
	held, causes := 0, NewCauses(nil)
	results := map[sarifKey]int{}
	return hooks{
		test: func(v *result.Verdict) {
			if v.Status == result.Passed {
				for _, w := range v.Warnings {
					log.Results = append(log.Results, SARIFResult{Rule: sarifWarning, Level: "warning",
						Text: oneLine(title(v.Test)) + "\n" + oneLine(w), At: v.Position})
				}
			}
			its, _ := causes.Add(v)
			if its == nil {
				return
			}
			f := failureOf(v)
			key := sarifKey{its, f.At}
			if n, known := results[key]; known {
				log.Results[n].Tests++
				return
			}
			results[key] = len(log.Results)
			limit := sarifBytes
			if held > allFaultBytes {
				limit = lateFaultBytes
			}
			text := oneLine(f.Name) + "\n" + strings.Map(visible, shorten(strings.Join(f.lines(), "\n")+"\n", limit))
			held += len(text)
			log.Results = append(log.Results, SARIFResult{string(v.Status), "error", strings.TrimSuffix(text, "\n"), f.At, 1})
		},
		finish: func(s result.Summary) {
			log.Faults, log.Broke = Faults(s), len(s.Breaks) > 0
			out.Write(log.JSON())
		},
	}.generator(&out)
}

// sarifBytes is the limit of the text of a result. Like the faults of JUnit, all texts are in memory until the run
// ends.
const sarifBytes = 8 << 10

// SARIFLog is a log in the Static Analysis Results Interchange Format 2.1.0, of one run of utr.
type SARIFLog struct {
	Version string // of utr, if known
	Rules   []SARIFRule
	Results []SARIFResult
	Faults  []string // what is wrong apart from the results
	Broke   bool     // utr could not do its work
}

// sarifWarning is the id of the rule for warnings of tests that passed.
const sarifWarning = "warning"

// SARIFRule is what a result violates.
type SARIFRule struct{ ID, Doc string }

type sarifKey struct {
	*Cause
	at result.Position
}

// SARIFResult is a violation of a rule. At may be zero or have only a file.
type SARIFResult struct {
	Rule, Level, Text string
	At                result.Position
	Tests             int // that violate it in the same way; 0 if they are not counted
}

// JSON returns the log as it is written.
func (l *SARIFLog) JSON() []byte {
	type object = map[string]any
	rules, results, faults := []object{}, []object{}, []object{}
	for _, r := range l.Rules {
		rules = append(rules, object{"id": r.ID, "shortDescription": object{"text": r.Doc}})
	}
	for _, r := range l.Results {
		found := object{"ruleId": r.Rule, "level": r.Level, "message": object{"text": r.Text}}
		if r.Tests > 0 {
			found["occurrenceCount"] = r.Tests
		}
		if r.At.File != "" {
			uri := (&url.URL{Path: filepath.ToSlash(r.At.File)}).String()
			at := object{"artifactLocation": object{"uri": uri}}
			if r.At.Line > 0 {
				at["region"] = object{"startLine": r.At.Line, "startColumn": max(1, r.At.Column)}
			}
			found["locations"] = []object{{"physicalLocation": at}}
		}
		results = append(results, found)
	}
	for _, f := range l.Faults {
		faults = append(faults, object{"level": "error", "message": object{"text": strings.Map(visible, f)}})
	}
	driver := object{"name": "utr", "rules": rules, "informationUri": "https://github.com/unified-test-runner/utr"}
	if l.Version != "" {
		driver["version"] = l.Version
	}
	// maps of texts can be marshaled
	text, _ := json.MarshalIndent(object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "columnKind": "unicodeCodePoints", "results": results,
			"invocations": []object{{"executionSuccessful": !l.Broke, "toolExecutionNotifications": faults}}}}}, "", "  ")
	return append(text, '\n')
}
