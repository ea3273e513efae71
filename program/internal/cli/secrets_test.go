package cli

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// secretNotes contain a secret in every field that an engine, a server or a deployment fills.
func secretNotes(secret string) []result.Note {
	doc, _ := bson.Marshal(bson.D{{Key: "saslStart", Value: secret},
		{Key: "deep", Value: bson.A{bson.D{{Key: secret, Value: bson.Binary{Data: []byte(secret)}}}}}})
	deep := bson.Raw(doc).Lookup("deep")
	failure := &result.Error{Message: "auth with " + secret, CodeName: secret, Labels: []string{secret}, Server: secret,
		Kind:     secret,
		Response: doc, WriteErrors: map[int]result.Document{0: doc}, WriteConcernErrors: []result.Document{doc},
		Partial: result.Value{RawValue: deep}}
	topology := &result.TopologyState{Type: secret, Servers: []result.ServerState{{Address: secret}}}
	verdict := &result.Verdict{
		Status: result.Failed, Reason: "cannot reach mongodb://user:" + secret + "@h/",
		Evidence: result.Evidence{Mismatches: []result.Mismatch{{Path: "p", Message: secret, Want: secret, Got: secret,
			Diff: secret}},
			ServerLog: []result.LogLine{{Server: "host:27017", Text: "somebody wrote " + secret}},
			Operations: []result.OperationLog{{Name: "find",
				Outcome: result.Outcome{Err: failure, Server: secret, Value: result.Value{RawValue: deep},
					Decisions: []result.Decision{{Action: "send", Server: secret, Reason: secret, Deprioritized: []string{secret}}}}}},
			Clients: []result.ClientLog{{Client: "c", Events: []result.Event{
				{Type: result.CommandStarted, Body: doc},
				{Type: result.CommandFailed, Failure: failure, Body: doc},
				{Type: result.PoolCleared, Err: secret},
				{Type: result.ServerHeartbeatFailed, Err: secret, New: topology},
			}}}},
	}
	retried := *verdict
	retried.Status, retried.Attempts = result.Flaky, []*result.Verdict{verdict}
	ready := result.DeploymentReady{Name: "d", Info: "mongodb://user:" + secret + "@h/"}
	return []result.Note{ready, result.TestFinished{Verdict: verdict}, result.TestFinished{Verdict: &retried}}
}

// No output of any command contains a secret of a connection string.
func TestSecretsStayInside(t *testing.T) {
	for _, r := range []struct {
		reason, uri, secret string
		refused             bool // as an invalid connection string
	}{
		{"a password", "mongodb://user:s3cr3t-pw@h:1/?replicaSet=rs", "s3cr3t-pw", false},
		{"an escaped one", "mongodb://user:s3cr3t%2Fpw@h:1/", "s3cr3t/pw", false},
		{"one of a host in DNS", "mongodb+srv://user:s3cr3t-pw@h/", "s3cr3t-pw", false},
		{"a token", "mongodb://h/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:s3cr3t-pw",
			"s3cr3t-pw", true},
		{"the password of a key", "mongodb://h/?tlsCertificateKeyFilePassword=s3cr3t-pw", "s3cr3t-pw", false},
		{"the password of a proxy", "mongodb://h/?proxyHost=p&proxyPassword=s3cr3t-pw", "s3cr3t-pw", false},
		{"an at sign in a password", "mongodb://user:s3cr3t@pw@h/", "s3cr3t@pw", true},
		{"a question mark in a password", "mongodb://user:x?s3cr3t=pw@h/", "x?s3cr3t=pw", false},
		{"and in the options of a host in DNS", "mongodb+srv://user:s3cr3t?x=pw@h/", "s3cr3t?x=pw", false},
		{"a slash in a password", "mongodb://user:s3cr3t/?x=pw@h/", "s3cr3t/?x=pw", true},
		{"and in the options of a host in DNS", "mongodb+srv://user:s3cr3t/?x=pw@h/", "s3cr3t/?x=pw", true},
		{"an invalid escape in a password", "mongodb://user:s3cr3t%zz@h/", "s3cr3t%zz", true},
		{"no host", "mongodb://user:s3cr3t-pw@/", "s3cr3t-pw", true},
		{"an option without such a value", "mongodb://user:s3cr3t-pw@h/?w=-3", "s3cr3t-pw", true},
		{"brackets in a password", "mongodb://user:s3cr3t<pw>@h/", "s3cr3t<pw>", false},
	} {
		b := newBench(t)
		var all strings.Builder
		collect := func(line string) {
			b.utr(line)
			all.WriteString(b.out.String() + b.err.String())
			if b.ran != nil {
				all.WriteString(strings.Join(b.ran.Rerun(result.TestID{File: "suite.yml"}), " "))
			}
			for _, text := range contentsOf(t, ".") {
				all.WriteString(text)
			}
		}
		b.notes = secretNotes(r.secret)
		for _, line := range []string{
			"run --uri '%s' --single-uri '%s' -v --events --json r.json --junit r.xml --html r.html --tap r.tap --sarif r.sarif --markdown r.md suite.yml",
			"run --uri='%s' suite.yml", "run --dry-run --uri '%s' suite.yml", "run --jobs '%s' suite.yml",
			"run --timeout '%s' suite.yml",
			"run --uri '%s' --topology single suite.yml", "run --engine '%s' suite.yml", "run '--%s' suite.yml", "run '%s'",
			"validate '%s'", "validate --json '%s'", "explain '%s'", "schema '%s'", "'%s'", "help '%s'",
		} {
			collect(strings.ReplaceAll(line, "%s", r.uri))
		}
		b.fails = errors.New("cannot reach " + r.uri + ": wrong password " + r.secret)
		collect("UTR_URI='" + r.uri + "' UTR_SINGLE_URI='" + r.uri + "' run suite.yml")
		testkit.Equal(t, r.reason+": refused", b.ran == nil, r.refused)
		collect("run --json r2.json --uri-option 'tlsCertificateKeyFilePassword=" + r.secret + "' suite.yml")
		b.opening = errors.New("bad: " + r.uri)
		collect("run suite.yml")
		if text := all.String(); strings.Contains(text, "s3cr3t") || !r.refused && !says(text, "somebody wrote ***") {
			t.Errorf("%s: …%.200s…", r.reason, text[max(0, strings.Index(text, "s3cr3t")-60):])
		}
		testkit.Same(t, r.reason+": the runner's own notes changed", b.notes[1:], secretNotes(r.secret)[1:])
	}
}
