//go:build unix

package command

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

// leaks returns every form of a password that an output could contain: unchanged, a part of it, escaped for connection
// strings, JSON, XML, HTML and shells, and encoded for authentication, alone and with its user.
func leaks(user, password string) []string {
	quoted, _ := json.Marshal(password)
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(password))
	digest := md5.Sum([]byte(user + ":mongo:" + password)) // SCRAM-SHA-1
	forms := []string{
		password, password[:6], url.QueryEscape(password), url.PathEscape(password),
		url.UserPassword("", password).String()[1:],
		strings.Trim(string(quoted), `"`), escaped.String(), html.EscapeString(password),
		strings.ReplaceAll(password, `'`, `'\''`),
		hex.EncodeToString([]byte(password)), hex.EncodeToString(digest[:]),
	}
	// The base64 form depends on preceding bytes: PLAIN sends user NUL password, Basic user:password.
	for _, before := range []string{"", "x", "xx", "\x00" + user + "\x00", user + ":"} {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString([]byte(before + password))
			from := (len(before)*8 + 5) / 6 // letters that depend on the preceding bytes
			forms = append(forms, text[from:len(text)-1])
		}
	}
	return forms
}

// outputs are texts by their origin.
type outputs map[string]string

func (s outputs) add(texts map[string]string) {
	for path, text := range texts {
		s["file "+path] = text
	}
}

// leak describes where a form of a password occurs, or returns "".
func (s outputs) leak(user, password string) string {
	for what, text := range s {
		for _, form := range leaks(user, password) {
			if i := strings.Index(text, form); i >= 0 {
				return fmt.Sprintf("%s contains %q: …%s…", what, form, text[max(0, i-100):min(len(text), i+60)])
			}
		}
	}
	return ""
}

// spotless fails the test if a text contains a form of a password.
func (s outputs) spotless(t *testing.T, user, password string) {
	t.Helper()
	testkit.Equal(t, "a leak", s.leak(user, password), "")
}

func TestLeaksAreFound(t *testing.T) {
	const user, password = "bob", `s3/cr@t%:"<&>'pw`
	inJSON, _ := json.Marshal(password)
	for reason, text := range map[string]string{
		"unchanged": password, "in a connection string": url.UserPassword(user, password).String(), "in JSON": string(inJSON),
		"in HTML": html.EscapeString(password), "in hex": hex.EncodeToString([]byte(password)),
		"Basic": base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		"PLAIN": base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password)),
	} {
		testkit.Equal(t, reason+": it leaks", outputs{reason: "x " + text}.leak(user, password) != "", true)
	}
	testkit.Equal(t, "no leak", outputs{"": "bob and s3/c***"}.leak(user, password), "")
}

// reportFiles returns the flags for all reports, into a folder.
func reportFiles(dir string) (args []string) {
	for _, kind := range []string{"json", "junit", "tap", "sarif", "markdown", "html", "badge"} {
		args = append(args, "--"+kind, filepath.Join(dir, "report."+kind))
	}
	return args
}

// everyReport returns the flags for all reports with all that they can have.
func everyReport(dir string) []string {
	return append(reportFiles(dir), "--annotations", "--timings", "--events", "-v")
}

// folder returns the text of all files below a folder.
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

// Neither reports, the lock document, the ledger, nor messages about an unusable deployment contain the password of the
// connection string.
func TestPasswordIsNowhere(t *testing.T) {
	t.Parallel()
	const user, password, keyFile = "bob", `s3/cr@t%:"<&>'pw`, `k3y/f&le%pw`
	p := utrtest.NewPlace(t, "UTR_PASSWORD="+password)
	dir := t.TempDir()
	server := p.Serve("--topology", "replicaset", "--user", user)
	uri := server.URI
	right := url.UserPassword(user, password).String() + "@"
	testkit.Contains(t, uri, right)
	suite, said := suiteFile(t, sensitive), outputs{}
	for _, engine := range []string{"reference", "driver"} {
		reports := filepath.Join(dir, engine)
		testkit.Check(t, os.Mkdir(reports, 0o755))
		said["a run with "+engine] = p.Run(append([]string{"run", "--engine", engine, "--uri", uri, suite},
			everyReport(reports)...)...).Want(1).All()
		testkit.Equal(t, "reports", len(folder(t, reports)), 7)
	}
	// Without events of authentication commands, nothing would be tested.
	testkit.Contains(t, folder(t, dir)[filepath.Join(dir, "reference", "report.json")], "connectionStatus", "saslStart")
	option := func(text string) string { return strings.Replace(uri, "replicaSet=rs0", "replicaSet=rs0&"+text, 1) }
	for _, r := range []struct {
		reason string
		code   int
		uri    string
	}{
		{"a server without TLS", 3, option("serverSelectionTimeoutMS=200&tls=true")},
		{"nothing listens", 3, "mongodb://" + right + "127.0.0.1:1/?serverSelectionTimeoutMS=100"},
		{"a wrong password", 3, strings.Replace(uri, right, url.UserPassword(user, password+"x").String()+"@", 1)},
		{"a missing key file", 2, option("tls=true&tlsCertificateKeyFile=nowhere.pem&tlsCertificateKeyFilePassword=" +
			url.QueryEscape(keyFile))},
		{"a token", 3, option("serverSelectionTimeoutMS=100&authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:" + url.QueryEscape(keyFile))},
	} {
		said[r.reason+", by --uri"] = p.Run("run", suite, "--uri", r.uri).Want(r.code).All()
		said[r.reason+", by UTR_URI"] = utrtest.NewPlace(t, "UTR_URI="+r.uri).Run("run", suite).Want(r.code).All()
	}
	// A killed run leaves its lock, fail points and ledger entries.
	w := newWitness(t, uri)
	killed := p.Start(append([]string{"run", "--uri", uri, suiteFile(t, armed)}, everyReport(dir)...)...)
	w.sees(killed)
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
	said["serve"] = server.Printed + server.Errors()
	said.spotless(t, user, password)
	said.spotless(t, "", keyFile)
}

// Secrets of all kinds occur in no report, log, error or plan of a matrix, and in no list of processes while its cells
// run. Only the matrix file may contain them.
func TestSecretsOfANight(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"password": "s3/cr@t-of-a-user", "key": "s3cret of a key", "older": "s3cret%20of%20old",
		"proxy": "s3cret&of;proxy",
		"token": "s3cret-of-a-token", "service": "s3cret-of-a-service"}
	p := utrtest.NewPlace(t, "UTR_PASSWORD="+secrets["password"])
	w := newWitness(t, p.Serve("--topology", "replicaset", "--user", "bob").URI)
	dir := t.TempDir()
	results, reports := filepath.Join(dir, "results"),
		slices.DeleteFunc(everyReport(dir), func(flag string) bool { return flag == "--events" })
	file := suiteFile(t, fmt.Sprintf(`clusters:
- {name: mine, uri: "${MINE}"}
- {name: theirs, orchestration: {url: "http://ann:%[1]s@127.0.0.1:1", cluster: single}}
- {name: token, uri: "mongodb://bob:%[1]s@127.0.0.1:1/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:%[2]s&serverSelectionTimeoutMS=100"}
engines: [{engine: reference}, {engine: driver}]
suites: {name: s, paths: [%[3]s, %[4]s]}
defaults:
  jobs: 1
  uri-options: {tlsCertificateKeyFilePassword: %[5]q, proxyHost: h, proxyPassword: %[6]q, sslClientCertificateKeyPassword: %[7]q}
`, secrets["service"], secrets["token"], suiteFile(t, sensitive), suiteFile(t, armed), secrets["key"], secrets["proxy"],
		secrets["older"]))
	set, said := suiteFile(t, "--set=MINE="+w.uri+"\n"), outputs{}
	said["the plan"] = p.Run("matrix", "@"+set, file, "--dry-run", "-v").Want(0, "tlsCertificateKeyFilePassword=***").All()
	night := p.Start(append([]string{"matrix", "@" + set, file, "--results", results}, reports...)...)
	w.sees(night)
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	testkit.Check(t, err)
	found := len(lists) == 0
	for _, f := range lists {
		text, _ := os.ReadFile(f) // the process may have ended
		said[f] = string(text)
		found = found || strings.Contains(string(text), "mine_reference_s")
	}
	testkit.Equal(t, "the list of processes has the cell", found, true)
	night.Signal(os.Interrupt)
	said["the night"] = night.End().Want(3).All()
	said["the rest of it"] = p.Run(append([]string{"matrix", "@" + set, file, "--results", results, "--only",
		"token|theirs"}, reports...)...).Want(3).All()
	said.add(folder(t, dir))
	said.add(folder(t, p.State))
	for _, secret := range secrets {
		said.spotless(t, "bob", secret)
	}
}
