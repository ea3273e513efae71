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
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
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

// said is what is written or printed, by where.
type said map[string]string

func (s said) add(texts map[string]string) {
	for path, text := range texts {
		s["file "+path] = text
	}
}

// leak gives what holds a form of a password, and where; "" if nothing does.
func (s said) leak(user, password string) string {
	for what, text := range s {
		for _, form := range leaks(user, password) {
			if i := strings.Index(text, form); i >= 0 {
				return fmt.Sprintf("%s holds %q: …%s…", what, form, text[max(0, i-100):min(len(text), i+60)])
			}
		}
	}
	return ""
}

// spotless fails the test if a text holds a form of a password.
func (s said) spotless(t *testing.T, user, password string) {
	t.Helper()
	testkit.Equal(t, "a leak", s.leak(user, password), "")
}

func TestLeaksAreFound(t *testing.T) {
	const user, password = "bob", `s3/cr@t%:"<&>'pw`
	inJSON, _ := json.Marshal(password)
	for reason, text := range map[string]string{
		"as it is": password, "in a connection string": url.UserPassword(user, password).String(), "in JSON": string(inJSON),
		"in HTML": html.EscapeString(password), "in hex": hex.EncodeToString([]byte(password)),
		"Basic": base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		"PLAIN": base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password)),
	} {
		testkit.Equal(t, reason+": it leaks", said{reason: "x " + text}.leak(user, password) != "", true)
	}
	testkit.Equal(t, "no leak", said{"": "bob and s3/c***"}.leak(user, password), "")
}

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
	testkit.Check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	}))
	return texts
}

// Nothing that a run leaves or says holds the password of its connection
// string: neither a report, nor the lock document, nor the ledger, nor what is
// said of a deployment that cannot be used.
func TestPasswordIsNowhere(t *testing.T) {
	t.Parallel()
	const user, password, keyFile = "bob", `s3/cr@t%:"<&>'pw`, `k3y/f&le%pw`
	p := utrtest.NewPlace(t, "UTR_PASSWORD="+password)
	dir := t.TempDir()
	server := p.Serve("--topology", "replicaset", "--user", user)
	uri := server.URI
	right := url.UserPassword(user, password).String() + "@"
	testkit.Says(t, uri, right)
	suite, said := suiteFile(t, sensitive), said{}
	for _, engine := range []string{"reference", "driver"} {
		reports := filepath.Join(dir, engine)
		testkit.Check(t, os.Mkdir(reports, 0o755))
		said["a run with "+engine] = p.Run(append([]string{"run", "--engine", engine, "--uri", uri, suite}, everyReport(reports)...)...).Want(1).All()
		testkit.Equal(t, "reports", len(folder(t, reports)), 6)
	}
	// Without the events of authentication nothing would be tested.
	testkit.Says(t, folder(t, dir)[filepath.Join(dir, "reference", "report.json")], "connectionStatus", "saslStart")
	option := func(text string) string { return strings.Replace(uri, "replicaSet=rs0", "replicaSet=rs0&"+text, 1) }
	for _, r := range []struct {
		reason string
		code   int
		uri    string
	}{
		{"no TLS there", 3, option("serverSelectionTimeoutMS=200&tls=true")},
		{"nothing listens", 3, "mongodb://" + right + "127.0.0.1:1/?serverSelectionTimeoutMS=100"},
		{"a wrong password", 3, strings.Replace(uri, right, url.UserPassword(user, password+"x").String()+"@", 1)},
		{"a key file that is not there", 2, option("tls=true&tlsCertificateKeyFile=nowhere.pem&tlsCertificateKeyFilePassword=" + url.QueryEscape(keyFile))},
		{"a token", 3, option("serverSelectionTimeoutMS=100&authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:" + url.QueryEscape(keyFile))},
	} {
		said[r.reason+", by --uri"] = p.Run("run", suite, "--uri", r.uri).Want(r.code).All()
		said[r.reason+", by UTR_URI"] = utrtest.NewPlace(t, "UTR_URI="+r.uri).Run("run", suite).Want(r.code).All()
	}
	// A run that is killed leaves all that it has outside itself.
	w := newWitness(t, uri)
	killed := p.Start(append([]string{"run", "--uri", uri, suiteFile(t, armed)}, everyReport(dir)...)...)
	w.sees()
	said["a run that is refused"] = p.Run("run", "--uri", uri, suite).Want(3).All()
	killed.Signal(os.Kill)
	said["a killed run"] = killed.End().All()
	lock, err := w.Database("utr").Collection("lock").FindOne(t.Context(), bson.D{}).Raw()
	testkit.Check(t, err)
	said["the lock document"] = fmt.Sprint(lock, string(lock))
	testkit.Equal(t, "the ledger is empty", len(p.Entries("")) == 0, false)
	said.add(folder(t, p.State))
	said["clean without a password"] = p.Run("clean").Want(3, "password").All()
	said["clean"] = p.Run("clean", "--uri", uri).Want(0).All()
	said.add(folder(t, dir))
	said["serve"] = server.Printed + server.Said()
	said.spotless(t, user, password)
	said.spotless(t, "", keyFile)
}

// Whatever kind of secret a night is given, and wherever: no report, log, error or
// plan holds it, and no list of processes while its cells run. What the file of
// the night says is its own.
func TestSecretsOfANight(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"password": "s3/cr@t-of-a-user", "key": "s3cret of a key", "older": "s3cret%20of%20old", "proxy": "s3cret&of;proxy",
		"token": "s3cret-of-a-token", "service": "s3cret-of-a-service"}
	p := utrtest.NewPlace(t, "UTR_PASSWORD="+secrets["password"])
	w := newWitness(t, p.Serve("--topology", "replicaset", "--user", "bob").URI)
	dir := t.TempDir()
	results, reports := filepath.Join(dir, "results"), slices.DeleteFunc(everyReport(dir), func(flag string) bool { return flag == "--events" })
	file := suiteFile(t, fmt.Sprintf(`clusters:
- {name: mine, uri: "${MINE}"}
- {name: theirs, orchestration: {url: "http://ann:%[1]s@127.0.0.1:1", cluster: single}}
- {name: token, uri: "mongodb://bob:%[1]s@127.0.0.1:1/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:%[2]s&serverSelectionTimeoutMS=100"}
engines: [{engine: reference}, {engine: driver}]
suites: {name: s, paths: [%[3]s, %[4]s]}
defaults:
  jobs: 1
  uri-options: {tlsCertificateKeyFilePassword: %[5]q, proxyHost: h, proxyPassword: %[6]q, sslClientCertificateKeyPassword: %[7]q}
`, secrets["service"], secrets["token"], suiteFile(t, sensitive), suiteFile(t, armed), secrets["key"], secrets["proxy"], secrets["older"]))
	set, said := suiteFile(t, "--set=MINE="+w.uri+"\n"), said{}
	said["the plan"] = p.Run("matrix", "@"+set, file, "--dry-run", "-v").Want(0, "tlsCertificateKeyFilePassword=***").All()
	night := p.Start(append([]string{"matrix", "@" + set, file, "--results", results}, reports...)...)
	w.sees()
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	testkit.Check(t, err)
	found := len(lists) == 0
	for _, f := range lists {
		text, _ := os.ReadFile(f) // the process may be gone
		said[f] = string(text)
		found = found || strings.Contains(string(text), "mine_reference_s")
	}
	testkit.Equal(t, "the list of processes has the cell", found, true)
	night.Signal(os.Interrupt)
	said["the night"] = night.End().Want(3).All()
	said["the rest of it"] = p.Run(append([]string{"matrix", "@" + set, file, "--results", results, "--only", "token|theirs"}, reports...)...).Want(3).All()
	said.add(folder(t, dir))
	said.add(folder(t, p.State))
	for _, secret := range secrets {
		said.spotless(t, "bob", secret)
	}
}
