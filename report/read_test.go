package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/xeipuuv/gojsonschema"
)

func read(t *testing.T, text []byte) *report.Past {
	t.Helper()
	p, err := report.Read("r.json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A report that was read makes the same report again, whatever is in it.
func TestReadUndoesJSON(t *testing.T) {
	for reason, notes := range map[string][]result.Note{"every note": run(), "attempts": flaky(), "nothing": nil, "a shard": shard("2/3", run())} {
		text := generate(report.JSON(), notes)
		past := read(t, text)
		again := []result.Note{result.RunStarted{Shard: past.Shard}}
		if past.Run != nil {
			again[0] = result.RunStarted{Shard: past.Shard, Engine: past.Run.Engine, Time: past.Run.Started, Files: past.Run.Files}
		}
		for _, v := range past.Verdicts {
			again = append(again, result.TestFinished{Verdict: v})
		}
		if past.Run != nil {
			again = append(again, result.RunFinished{Summary: result.Summary{Duration: past.Run.Duration, Interrupted: past.Run.Interrupted, Problems: past.Run.Problems}})
		}
		if diff := cmp.Diff(string(text), string(generate(report.JSON(), again))); diff != "" {
			t.Errorf("%s (-written +written again)\n%s", reason, diff)
		}
	}
	// And so do the reports for people.
	past := read(t, generate(report.JSON(), run()))
	notes := run()
	i := 0
	for n, note := range notes {
		if _, ok := note.(result.TestFinished); ok {
			notes[n] = result.TestFinished{Verdict: past.Verdicts[i]}
			i++
		}
	}
	if diff := cmp.Diff(string(generate(report.Text(report.TextOptions{}), run())), string(generate(report.Text(report.TextOptions{}), notes))); diff != "" {
		t.Errorf("(-run +read)\n%s", diff)
	}
}

// shard makes a run the run of a shard.
func shard(name string, notes []result.Note) []result.Note {
	notes = slices.Clone(notes)
	started := notes[0].(result.RunStarted)
	started.Shard = name
	notes[0] = started
	return notes
}

func TestReadRefuses(t *testing.T) {
	whole := string(generate(report.JSON(), run()))
	first := strings.SplitAfter(whole, "\n")[0]
	for reason, text := range map[string]string{
		"no JSON":                 "<testsuites>",
		"half a line":             first + first[:40],
		"a record of no test":     `{"a": 1}`,
		"an unknown status":       strings.Replace(first, `"status":"passed"`, `"status":"fine"`, 1),
		"a field of a later form": strings.Replace(first, `"status"`, `"colour":1,"status"`, 1),
	} {
		if _, err := report.Read("r.json", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "r.json:") {
			t.Errorf("%s: the error is %v", reason, err)
		}
	}
	if p, err := report.Read("r.json", strings.NewReader("\n"+first+"\n"+strings.TrimSuffix(first, "\n"))); err != nil || len(p.Verdicts) != 2 {
		t.Errorf("empty lines, and a last one without end: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "records.json"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(golden)) {
		f.Add(line)
	}
	f.Add(string(generate(report.JSON(), shard("1/2", flaky()))))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := report.Read("r", strings.NewReader(text))
		if err != nil {
			return
		}
		once := generate(report.JSON(), asNotes(p))
		p, err = report.Read("r", bytes.NewReader(once))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
		if twice := generate(report.JSON(), asNotes(p)); !bytes.Equal(once, twice) {
			t.Fatalf("(-once +twice)\n%s", cmp.Diff(string(once), string(twice)))
		}
	})
}

func asNotes(p *report.Past) (notes []result.Note) {
	for _, v := range p.Verdicts {
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	return notes
}

// The records of a shard keep to the schema, its last line included; a line
// that is both a test and a run does not.
func TestShardKeepsToSchema(t *testing.T) {
	schema := gojsonschema.NewBytesLoader(report.Schema())
	all := lines(generate(report.JSON(), shard("2/3", run())))
	if last := all[len(all)-1]; !strings.HasPrefix(last, `{"run":{`) || !strings.Contains(all[0], `"shard":"2/3"`) {
		t.Errorf("%s … %s", all[0], last)
	}
	for _, line := range append(all, "") {
		valid := line != ""
		if !valid {
			line = strings.Replace(all[0], `{`, all[len(all)-1][:len(all[len(all)-1])-1]+",", 1)
		}
		r, err := gojsonschema.Validate(schema, gojsonschema.NewStringLoader(line))
		if err != nil || r.Valid() != valid {
			t.Errorf("%v %v: %s", err, r.Errors(), line)
		}
	}
}
