package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// changes lists the fields of options that differ from the defaults of mongod or mongos.
func changes(t *testing.T, o *Options) string {
	t.Helper()
	var words []string
	if o.Mongos {
		words = []string{"--configdb", "c/h:1"}
	}
	defaults, err := Parse(o.Mongos, words, "")
	testkit.Check(t, err)
	var out []string
	got, want := reflect.ValueOf(*o), reflect.ValueOf(*defaults)
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		if name == "Arguments" || name == "Version" ||
			reflect.DeepEqual(got.Field(i).Interface(), want.Field(i).Interface()) {
			continue
		}
		out = append(out, fmt.Sprintf("%s=%v", name, got.Field(i).Interface()))
	}
	return strings.Join(out, " ")
}

// The effect of command lines, or their errors. The lines after a command line are its configuration file.
func TestCommandLines(t *testing.T) {
	testkit.PlayCases(t, "testdata/cases/options.txt", func(t *testing.T, in string) string {
		lines := strings.Split(in, " | ")
		words := strings.Fields(lines[0])
		name := filepath.Join(t.TempDir(), "conf")
		if len(lines) > 1 {
			testkit.Check(t, os.WriteFile(name, []byte(strings.Join(lines[1:], "\n")), 0o600))
			words = append(words, "--config", name)
		}
		o, err := Parse(words[0] == "mongos", words[1:], "8.2")
		if err != nil {
			return "error: " + strings.ReplaceAll(err.Error(), name, "FILE")
		}
		return cmp.Or(changes(t, o), "nothing")
	})
}

// A value that is JSON has the type of the JSON.
func TestParameters(t *testing.T) {
	got, err := bson.MarshalExtJSON(parameters([]string{"a=1", "b=true", "c=SCRAM-SHA-1", `d={"x": [1]}`, "e"}),
		false, false)
	testkit.Check(t, err)
	testkit.Equal(t, "parameters", string(got), `{"a":1,"b":true,"c":"SCRAM-SHA-1","d":{"x":[1]},"e":""}`)
}

func TestVersionAndHelp(t *testing.T) {
	for mongos, want := range map[bool]string{false: "db version v7.0.22", true: "mongos version v7.0.22"} {
		o, err := Parse(mongos, []string{"--version", "--utrServerVersion", "7.0"}, "8.2")
		testkit.Check(t, err)
		testkit.Contains(t, o.Print, want)
		o, err = Parse(mongos, []string{"--help"}, "8.2")
		testkit.Check(t, err)
		testkit.Contains(t, o.Print, "usage: mongo", "-keyFile")
		testkit.Equal(t, "dbpath is an option", strings.Contains(o.Print, "-dbpath"), !mongos)
	}
}

func TestProxyHeader(t *testing.T) {
	for _, r := range []struct{ reason, in, want string }{
		{"no header", "abcdef", "abcdef <nil>"},
		{"header", "PROXY TCP4 1.2.3.4 5.6.7.8 1000 2000\r\nabcdef", "abcdef <nil>"},
		{"truncated header", "PROXY TCP4 1.2.3.4", " EOF"},
		{"header without a carriage return", "PROXY UNKNOWN\nabc", "abc malformed header of the PROXY protocol"},
		{"empty input", "", " EOF"},
	} {
		in := bufio.NewReader(strings.NewReader(r.in))
		err := skipProxyHeader(in)
		rest, _ := io.ReadAll(in)
		testkit.Equal(t, r.reason, fmt.Sprint(string(rest), " ", err), r.want)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"--port 5 -vv", "--setParameter a=b", "port=7\nvvv=true", "--bind_ip=*", "-", "--", "-=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := filepath.Join(t.TempDir(), "conf")
		testkit.Check(t, os.WriteFile(name, []byte(s), 0o600))
		for _, mongos := range []bool{false, true} {
			_, _ = Parse(mongos, strings.Fields(s), "")
			_, _ = Parse(mongos, []string{"--config", name}, "")
		}
	})
}
