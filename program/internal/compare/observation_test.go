package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

var raw = testkit.Extended[bson.Raw, string] // a document in Extended JSON

// story builds the log of a client: "insert@a s1 t7" starts a command on server a in
// session 1 with transaction number 7; "ok", "wce", "fail" and "broken" end it; "clear"
// clears a pool; "opened" creates a connection.
func story(t testing.TB, text string) (out []result.Event) {
	t.Helper()
	name, at := "", ""
	for step := range strings.SplitSeq(text, "; ") {
		words := strings.Fields(step)
		e := result.Event{Sequence: int64(len(out)) + 1, CommandName: name, DatabaseName: "d"}
		switch words[0] {
		case "ok":
			e.Type, e.Body = result.CommandSucceeded, result.Document(raw(t, `{"ok":1}`))
		case "wce":
			e.Type, e.Body = result.CommandSucceeded, result.Document(raw(t, `{"ok":1,"writeConcernError":{"code":64}}`))
		case "fail":
			e.Type, e.Failure = result.CommandFailed, &result.Error{Code: 6}
		case "broken":
			e.Type, e.Failure = result.CommandFailed, &result.Error{Client: true}
		case "clear":
			e = result.Event{Sequence: e.Sequence, Type: result.PoolCleared}
		case "opened":
			e = result.Event{Sequence: e.Sequence, Type: result.ConnectionCreated}
		default:
			name, at, _ = strings.Cut(words[0], "@")
			command := `{"` + name + `":"c"`
			for _, w := range words[1:] {
				form := map[byte]string{'s': `,"lsid":{"id":{"$binary":{"base64":"%sAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}}`,
					't': `,"txnNumber":{"$numberLong":"%s"}`}
				command += fmt.Sprintf(form[w[0]], w[1:])
			}
			e.Type, e.CommandName, e.Body = result.CommandStarted, name, result.Document(raw(t, command+"}"))
		}
		e.Address = at
		out = append(out, e)
	}
	return out
}

// lines returns the rest of each line by its first word.
func lines(s testkit.Story) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(s.Text) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		out[verb] = rest
	}
	return out
}

// retold is the text of a story with its results.
func retold(s testkit.Story, results ...string) string {
	given, _, _ := strings.Cut(s.Text, "    ")
	return given + "    " + strings.Join(results, "\n    ") + "\n"
}

func TestFolding(t *testing.T) {
	testkit.PlayStories(t, "testdata/folding.txt", func(t *testing.T, s testkit.Story) string {
		of, sharded := lines(s), strings.HasPrefix(s.Text, "sharded")
		log := func(side string) []string { return logOf(result.ClientLog{Events: story(t, of[side])}, sharded).Lines }
		if slices.Equal(log("left"), log("right")) {
			return retold(s, "same")
		}
		return retold(s, "different")
	})
}

func TestOutcomes(t *testing.T) {
	testkit.PlayStories(t, "testdata/outcomes.txt", func(t *testing.T, s testkit.Story) (shown string) {
		for line := range strings.Lines(s.Text) {
			words, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> ")
			if !ok {
				continue
			}
			var o result.Outcome
			name, what, _ := strings.Cut(words, " ")
			if text, failed := strings.CutPrefix(what, "!"); failed {
				o.Err = &result.Error{}
				testkit.Check(t, json.Unmarshal([]byte(text), o.Err))
			} else if what != "" {
				o.Value.RawValue = raw(t, `{"v":`+what+`}`).Lookup("v")
			}
			shown += line + "    " + outcome(result.OperationLog{Name: name, Outcome: o}, &folder{}) + "\n"
		}
		return shown
	})
}

func TestPairs(t *testing.T) {
	testkit.PlayStories(t, "testdata/pairs.txt", func(t *testing.T, s testkit.Story) string {
		on := func(text string) []*seen {
			part := append(strings.SplitN(text, ", ", 3), "")
			name, deployment, _ := strings.Cut(part[0], " ")
			v := &result.Verdict{Test: result.TestID{File: "f.yml", Description: name, Deployment: deployment},
				Status: result.Status(part[1]), Reason: "why"}
			if part[2] != "" {
				v.Clients = []result.ClientLog{{Client: "client", Events: story(t, part[2])}}
			}
			return []*seen{see(v, false)}
		}
		of, threads := lines(s), func(id result.TestID) bool { return id.Description == "threads" }
		return retold(s, Count(pairs([2]string{}, on(of["left"]), on(of["right"]), false, threads)).String())
	})
}

func TestDescribe(t *testing.T) {
	p := Pair{Differences: []Difference{
		{Aspect: "verdict", Left: "passed", Right: "failed: f.yml:3:1: operations[0]: wrong"},
		{Aspect: "events", Where: "client", Left: "send find\n  find failed", Right: "send find\n  find failed\nsend find"},
	}}
	testkit.Equal(t, "the description", p.Describe("reference", "driver"), `  verdict
    reference: passed
    driver: failed: f.yml:3:1: operations[0]: wrong
  events client (- reference, + driver)
      send find
        find failed
    + send find
`)
}
