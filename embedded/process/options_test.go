package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// changes are the fields of options that differ from those of a mongod, or of a
// mongos of c/h:1, which is told nothing.
func changes(t *testing.T, o *Options) string {
	t.Helper()
	var words []string
	if o.Mongos {
		words = []string{"--configdb", "c/h:1"}
	}
	plain, err := Parse(o.Mongos, words, "")
	testkit.Check(t, err)
	var out []string
	got, usual := reflect.ValueOf(*o), reflect.ValueOf(*plain)
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		if name == "Arguments" || name == "Parsed" || name == "Profile" || reflect.DeepEqual(got.Field(i).Interface(), usual.Field(i).Interface()) {
			continue
		}
		value := got.Field(i).Interface()
		if doc, ok := value.(bson.D); ok {
			text, _ := bson.MarshalExtJSON(doc, false, false)
			value = string(text)
		}
		out = append(out, fmt.Sprintf("%s=%v", name, value))
	}
	return strings.Join(out, " ")
}

// What a command line changes, or why it is refused. The lines after it, which begin with a bar, are
// the file of --config.
func TestCommandLines(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/options.txt", func(t *testing.T, in string) string {
		lines := strings.Split(in, " | ")
		words := strings.Fields(lines[0])
		if len(lines) > 1 {
			name := filepath.Join(t.TempDir(), "conf")
			testkit.Check(t, os.WriteFile(name, []byte(strings.Join(lines[1:], "\n")), 0o600))
			words = append(words, "--config", name)
		}
		o, err := Parse(words[0] == "mongos", words[1:], "8.2")
		if usage := (*UsageError)(nil); errors.As(err, &usage) {
			return "error: " + strings.ReplaceAll(usage.Error(), "\n", "; ")
		}
		testkit.Check(t, err)
		return cmp.Or(changes(t, o), "nothing")
	})
}

// What getCmdLineOpts answers, as the configuration file would say it, without
// a password.
func TestParsed(t *testing.T) {
	o, err := Parse(false, strings.Fields("--port 5 --auth --nojournal -vv --replSet r --setParameter quiet=1 "+
		"--tlsMode disabled --tlsCertificateKeyFilePassword secret"), "")
	testkit.Check(t, err)
	if plain, err := Parse(false, nil, ""); err != nil || plain.Port != 27017 || fmt.Sprint(plain.Bind) != "[localhost]" {
		t.Errorf("without options: %+v, %v", plain, err)
	}
	got, err := bson.MarshalExtJSON(o.Parsed, false, false)
	const want = `{"systemLog":{"verbosity":2},"net":{"port":5,"tls":{"mode":"disabled","certificateKeyFilePassword":"<password>"}},` +
		`"setParameter":{"quiet":"1"},"security":{"authorization":"enabled"},"replication":{"replSetName":"r"},"storage":{"journal":{"enabled":false}}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
}

// No name or short form of an option is taken twice, and every option that the
// code asks for exists.
func TestOptionTable(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range optionTable {
		for _, name := range []string{o.name, "-" + o.short} {
			if name != "-" && seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
	}
	source, err := os.ReadFile("options.go")
	testkit.Check(t, err)
	for _, call := range regexp.MustCompile(`given\.(?:on|text|number)\(([^)]*)\)`).FindAllSubmatch(source, -1) {
		for _, name := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(call[1], -1) {
			if !seen[string(name[1])] {
				t.Errorf("the code asks for %s, which is not an option", name[1])
			}
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	for mongos, want := range map[bool]string{false: "db version v7.0.22\n", true: "mongos version v7.0.22\n"} {
		o, err := Parse(mongos, []string{"--version", "--utrServerVersion", "7.0"}, "8.2")
		testkit.Check(t, err)
		testkit.Says(t, o.VersionText()+o.HelpText(), want, "--keyFile arg")
		testkit.Equal(t, "dbpath is an option", strings.Contains(o.HelpText(), "--dbpath"), !mongos)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"--port 5 -vv", "--setParameter a=b", "net: {port: 1}", "port=7\nvvv=true", "-f", "--bind_ip=*",
		"setParameter: [1]", "a: &a [*a]", "-", "--", "-=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range []program{{"mongod", onMongod}, {"mongos", onMongos}} {
			if given, err := p.commandLine(strings.Fields(s)); err == nil {
				_ = p.parsed(given)
			}
			name := filepath.Join(t.TempDir(), "conf")
			testkit.Check(t, os.WriteFile(name, []byte(s), 0o600))
			given, err := p.file(name)
			var usage *UsageError
			if err != nil && !errors.As(err, &usage) {
				t.Errorf("%T: %v", err, err)
			}
			if err == nil {
				_ = p.parsed(given)
			}
		}
	})
}
