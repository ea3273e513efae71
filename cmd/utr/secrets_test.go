//go:build unix

package main

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// leaks gives every form of a password that an output could hold: as it is, as
// connection strings, JSON, XML, HTML and shells write it, by itself and with
// its user in the encodings of authentication, and a part of it.
func leaks(user, password string) []string {
	quoted, _ := json.Marshal(password)
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(password))
	digest := md5.Sum([]byte(user + ":mongo:" + password)) // of SCRAM-SHA-1
	forms := []string{
		password, password[:6], url.QueryEscape(password), url.PathEscape(password), url.UserPassword("", password).String()[1:],
		strings.Trim(string(quoted), `"`), escaped.String(), html.EscapeString(password), strings.ReplaceAll(password, `'`, `'\''`),
		hex.EncodeToString([]byte(password)), hex.EncodeToString(digest[:]),
	}
	// What follows other bytes has other letters in base64: PLAIN says
	// user NUL password, Basic says user:password.
	for _, before := range []string{"", "x", "xx", "\x00" + user + "\x00", user + ":"} {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString([]byte(before + password))
			from := (len(before)*8 + 5) / 6 // letters that what stands before has a part in
			forms = append(forms, text[from:len(text)-1])
		}
	}
	return forms
}

// spotless fails the test if a text holds a form of the password.
func spotless(t *testing.T, what, text, user, password string) {
	t.Helper()
	for _, form := range leaks(user, password) {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s holds %q: …%s…", what, form, text[max(0, i-100):min(len(text), i+60)])
		}
	}
}

// The search finds a password in each of its forms, or the test below would
// prove nothing.
func TestLeaksAreFound(t *testing.T) {
	const user, password = "bob", `s3/cr@t%:"<&>'pw`
	for _, r := range []struct{ reason, text string }{
		{"as it is", "x " + password},
		{"in a connection string", url.UserPassword(user, password).String()},
		{"in JSON", func() string { b, _ := json.Marshal([]string{password}); return string(b) }()},
		{"in HTML", html.EscapeString("a " + password)},
		{"Basic", base64.StdEncoding.EncodeToString([]byte(user + ":" + password))},
		{"PLAIN", base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))},
		{"in a document as Extended JSON", func() string {
			b, _ := bson.MarshalExtJSON(bson.D{{Key: "payload", Value: bson.Binary{Data: []byte("\x00" + user + "\x00" + password)}}}, false, false)
			return string(b)
		}()},
		{"in hex", hex.EncodeToString([]byte(password))},
	} {
		found := false
		for _, form := range leaks(user, password) {
			found = found || strings.Contains(r.text, form)
		}
		if !found {
			t.Errorf("%s: %s", r.reason, r.text)
		}
	}
}

// sensitive observes what authentication sends, and fails in each way that
// makes a report long.
const sensitive = `description: "sensitive"
schemaVersion: "1.10"
createEntities:
  - client:
      id: client
      observeSensitiveCommands: true
      observeEvents: [commandStartedEvent, commandSucceededEvent, commandFailedEvent, connectionReadyEvent, poolClearedEvent]
  - database: {id: database, client: client, databaseName: db}
  - collection: {id: collection, database: database, collectionName: coll}
initialData:
  - {databaseName: db, collectionName: coll, documents: []}
tests:
  - description: "passes"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: []}]
  - description: "a result"
    operations: [{name: find, object: collection, arguments: {filter: {}}, expectResult: [{x: 1}]}]
  - description: "an error of authentication"
    operations:
      - name: runCommand
        object: database
        arguments: {commandName: saslStart, command: {saslStart: 1, mechanism: SCRAM-SHA-256, payload: {$binary: {base64: "biwsbj1ib2Iscj1h", subType: "00"}}}}
        expectResult: {ok: 2}
    expectEvents:
      - {client: client, events: [{commandStartedEvent: {commandName: nothing}}]}
  - description: "who is it"
    operations:
      - {name: runCommand, object: database, arguments: {commandName: connectionStatus, command: {connectionStatus: 1, showPrivileges: true}}, expectResult: {ok: 2}}
  - description: "hung"
    operations:
      - name: failPoint
        object: testRunner
        arguments: {client: client, failPoint: {configureFailPoint: failCommand, mode: {times: 1}, data: {failCommands: [find], closeConnection: true}}}
      - {name: find, object: collection, arguments: {filter: {}}, expectError: {errorCode: 1}}
`

// everyReport are the flags for all reports, into a folder.
func everyReport(dir string) (args []string) {
	for _, kind := range []string{"json", "junit", "tap", "markdown", "html", "badge"} {
		args = append(args, "--"+kind, filepath.Join(dir, "report."+kind))
	}
	return append(args, "--annotations", "--timings", "--events", "-v")
}

// folder gives the text of all files below a folder.
func folder(t *testing.T, dir string) (texts map[string]string) {
	t.Helper()
	texts = make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Nothing that a run leaves or says holds the password of its connection
// string: neither a report, nor the lock document, nor the ledger, nor what is
// said of a deployment that cannot be used.
func TestPasswordIsNowhere(t *testing.T) {
	const user, password = "bob", `s3/cr@t%:"<&>'pw`
	state, dir := t.TempDir(), t.TempDir()
	env := []string{ledger.EnvDir + "=" + state, "UTR_PASSWORD=" + password}
	said := make(map[string]string)
	server := startIn(t, env, "serve", "--topology", "replicaset", "--user", user, "--uri-file", filepath.Join(state, "uri"))
	said["serve"] = server.line(t, "connection string", func(s string) bool { return strings.HasPrefix(s, "mongodb://") })
	secret, err := os.ReadFile(filepath.Join(state, "uri"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(state, "uri")); err != nil { // it is there to hold the password
		t.Fatal(err)
	}
	uri := strings.TrimSpace(string(secret))
	if !strings.Contains(uri, url.UserPassword(user, password).String()+"@") {
		t.Fatalf("the connection string holds no password: %s", uri)
	}
	ran := func(what string, code int, args ...string) {
		t.Helper()
		u := startIn(t, env, args...)
		said[what] = u.all(t)
		if got := u.exit(t); got != code {
			t.Errorf("%s: exit code %d, want %d: %s", what, got, code, u.said())
		}
		said[what] += u.said()
	}
	suite := suiteFile(t, sensitive)
	for _, engine := range []string{"reference", "driver"} {
		reports := filepath.Join(dir, engine)
		if err := os.Mkdir(reports, 0o755); err != nil {
			t.Fatal(err)
		}
		ran("a run with "+engine, 1, append([]string{"run", "--engine", engine, "--uri", uri, suite}, everyReport(reports)...)...)
		if n := len(folder(t, reports)); n != 6 {
			t.Errorf("%d reports were written", n)
		}
	}
	if text := folder(t, dir)[filepath.Join(dir, "reference", "report.json")]; !strings.Contains(text, "connectionStatus") || !strings.Contains(text, "saslStart") {
		t.Error("the events of authentication are not in the report: nothing was tested")
	}
	ran("a dry run", 0, "run", "--dry-run", "--uri", uri, suite)
	ran("a wrong host", 3, "run", "--uri", strings.Replace(uri, "replicaSet=rs0", "replicaSet=rs0&serverSelectionTimeoutMS=200", 1)+"&tls=true", suite)
	ran("a wrong password", 3, "run", "--uri", strings.Replace(uri, url.UserPassword(user, password).String(), url.UserPassword(user, password+"x").String(), 1), suite)
	ran("bad usage", 2, "run", "--uri", uri, "--topology", "single", suite)
	// A run that is killed leaves all that it has outside itself.
	ping := witness(t, uri)
	killed := startIn(t, env, append([]string{"run", "--uri", uri, suiteFile(t, armed)}, everyReport(dir)...)...)
	until(t, "the fail point is on", func() bool { return ping() != nil })
	ran("a run that is refused", 3, "run", "--uri", uri, suite)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	said["a killed run"] = killed.all(t)
	killed.exit(t)
	lock, err := onlooker(t, uri).Database("utr").Collection("lock").FindOne(t.Context(), bson.D{}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	said["the lock document"] = fmt.Sprint(lock, string(lock))
	left := folder(t, state)
	if len(left) == 0 {
		t.Error("the killed run left nothing in the ledger")
	}
	for path, text := range left {
		said["ledger "+path] = text
	}
	ran("clean without a password", 3, "clean")
	ran("clean", 0, "clean", "--uri", uri)
	for path, text := range folder(t, dir) {
		said["report "+path] = text
	}
	said["serve, on standard error"] = server.said()
	for what, text := range said {
		spotless(t, what, text, user, password)
	}
}
