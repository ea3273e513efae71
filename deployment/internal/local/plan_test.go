package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// drawn formats a plan: mongods, mongoses, and the sets.
func drawn(t *testing.T, p Plan) string {
	var lines []string
	seen := make(map[string]bool)
	for _, all := range [][]Process{p.Mongods, p.Mongoses} {
		var names []string
		for _, process := range all {
			if seen[process.Name] {
				t.Errorf("two processes have the name %s, and its files", process.Name)
			}
			seen[process.Name] = true
			name := process.Name
			if process.Set != "" {
				name += "@" + process.Set
			}
			if process.Balanced {
				name += "+lb"
			}
			names = append(names, name)
		}
		if names != nil {
			lines = append(lines, strings.Join(names, " "))
		}
	}
	for _, s := range p.Sets {
		lines = append(lines, "set "+s.Name+map[Role]string{RoleConfig: " config", RoleShard: " shard"}[s.Role])
	}
	return strings.Join(lines, "\n")
}

// processOf parses a process: its role, its set, and whether it is balanced.
func processOf(words string) (p Process) {
	for _, word := range strings.Fields(words) {
		role, is := map[string]Role{"standalone": RoleStandalone, "member": RoleMember, "config": RoleConfig,
			"shard": RoleShard, "mongos": RoleMongos}[word]
		switch {
		case is:
			p.Role = role
		case word == "balanced":
			p.Balanced = true
		default:
			p.Set = word
		}
	}
	return p
}

var commands = testkit.Commands{
	"plan": func(t *testing.T, a []string) (string, error) { // a version, and a shape
		v, err := parseVersion("db version v" + a[0])
		testkit.Check(t, err)
		var s Shape
		testkit.Check(t, json.Unmarshal([]byte(a[1]), &s))
		p, err := Release{Mongos: "mongos", Version: v}.Plan(s)
		return drawn(t, p), err
	},
	"argv": func(t *testing.T, a []string) (string, error) { // a version, a process, and a place
		v, err := parseVersion("db version v" + a[0])
		place := Place{Port: 7, BalancerPort: 8, Data: "/d", ConfigDB: "config/h:1"}
		if a[2] == "secure" {
			place.KeyFile, place.Certificate, place.CA = "/k", "/c", "/a"
		}
		return strings.Join(Argv(processOf(a[1]), v, place), " "), err
	},
	"initiate": func(_ *testing.T, a []string) (string, error) { // a set, and its hosts
		name, kind, _ := strings.Cut(a[0], " ")
		role := map[string]Role{"": RoleMember, "of config servers": RoleConfig}[kind]
		text, err := bson.MarshalExtJSON(initiation(Set{name, role}, strings.Fields(a[1])), false, false)
		return string(text), err
	},
	"set": func(t *testing.T, a []string) (string, error) { // the states of its members
		var replies []direct.Hello
		for _, word := range strings.Fields(a[0]) {
			replies = append(replies, direct.Hello{Writable: word == "primary", Secondary: word == "secondary"})
		}
		elected, missing := lacks(replies)
		testkit.Equal(t, "it has a primary", elected, strings.Contains(a[0], "primary"))
		return fmt.Sprint("lacks: ", missing), nil
	},
	"version": func(_ *testing.T, a []string) (string, error) { // the output of a program
		v, err := parseVersion(strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(a[0]))
		return v.String(), err
	},
	"other": func(_ *testing.T, a []string) (string, error) {
		// the arguments of the server on the port of "--port 7 --dbpath /ours"
		return fmt.Sprint(differs(strings.Fields(a[0]), strings.Fields("--port 7 --dbpath /ours"))), nil
	},
	"time": func(_ *testing.T, a []string) (string, error) { // of a log line
		at, found := timeOf(a[0])
		return fmt.Sprint(found, " ", at.UTC()), nil
	},
}

func TestTranscripts(t *testing.T) {
	for _, name := range []string{"plans", "programs"} {
		commands.Play(t, "testdata/"+name+".txt")
	}
}

// script writes a shell script.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.Check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for path, text := range map[string]string{
		"whole/bin/mongod":  "echo db version v8.0.4",
		"whole/bin/mongos":  "echo mongos version v8.0.4",
		"flat/mongod":       "echo db version v4.2.0",
		"suffix/mongod-7.0": "echo db version v7.0.1",
		"suffix/mongos-7.0": "echo mongos version v7.0.1",
		"mixed/mongod":      "echo db version v8.0.4",
		"mixed/mongos":      "echo mongos version v7.0.1",
		"old/mongod":        "echo db version v4.0.28",
		"broken/mongod":     "echo mongod: error while loading shared libraries: libcrypto.so.1.1 >&2; exit 127",
		"silent/mongod":     "true",
		"empty/other":       "",
	} {
		script(t, at(path), text)
	}
	testkit.Check(t, os.WriteFile(at("plain"), nil, 0o644))
	t.Setenv("PATH", at("whole/bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	testkit.Commands{"find": func(t *testing.T, a []string) (string, error) {
		got, err := Find(t.Context(), strings.ReplaceAll(a[0], "DIR", dir))
		if err != nil {
			return "", errors.New(strings.ReplaceAll(err.Error(), dir, "DIR"))
		}
		return strings.ReplaceAll(fmt.Sprint(got), dir, "DIR"), nil
	}}.Play(t, "testdata/find.txt")
	// Find kills a program that does not exit, with its children.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Find(ctx, script(t, at("hangs/mongod"), "sleep 600 & wait"))
	testkit.ErrorContains(t, err, "canceled")
}

func TestEnvironmentKeepsSecrets(t *testing.T) {
	t.Setenv("UTR_URI", "mongodb://u:"+testkit.Secret+"@h/")
	t.Setenv("UTR_PASSWORD", testkit.Secret)
	t.Setenv("HARMLESS", "kept")
	testkit.Contains(t, strings.Join(environment(), "\n"), "HARMLESS=kept")
}
